"""The checker verifies restrictions, and refutes tampered ones."""

from __future__ import annotations

import pytest

from tests.octweb.small_models import small_table, trained
from trainer.check.recount.restrictions import restrictions


def verdicts(document, **asked):
    document = document | {"parameters": document["parameters"] | asked}
    counts = [node["counts"] for node in document["nodes"]]
    return {f.claim: f.verdict for f in restrictions(document, counts, None, None)}


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({"max_leaves": 4}, True),
        ({"max_leaves": 2}, False),
        ({"max_columns": 3}, True),
        ({"max_columns": 1}, False),
        ({"forbidden": "flag"}, True),
        ({"forbidden": "flag; width"}, False),
        ({"forbidden_pairs": "flag + width"}, True),
        ({"forbidden_pairs": "height + width"}, False),
        ({"forbidden_pairs": "width + colour"}, False),
        ({"recall": "a: 0.5; b: 0.1"}, True),
        ({"recall": "c: 0.8"}, True),
        ({"recall": "a: 1"}, False),
        ({"min_leaf": 3}, True),
        ({"min_leaf": 90}, False),
    ],
)
def test_restriction_is_derived_from_the_tree(asked, holds):
    document = trained("exact", depth=2, bins=5)
    asks = [node["split"]["feature"] for node in document["nodes"] if "split" in node]
    assert asks[0] == "width"
    assert set(asks[1:]) == {"height", "colour"}
    found = verdicts(document, **asked)
    assert len(found) == (2 if ";" in asked.get("recall", "") else 1)
    assert set(found.values()) == {"recounted" if holds else "refuted"}
    assert verdicts(document) == {}
    assert len(small_table()[0]) == sum(document["nodes"][0]["counts"])
