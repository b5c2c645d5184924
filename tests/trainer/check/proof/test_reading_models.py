"""The checker of proofs reads margins, topologies, subsets and wishes of model files."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.space import topology_of
from trainer.check.proof.space.subsets import subsets
from trainer.check.proof.space.wishes import wishes_of
from trainer.check.proof.subject import NoProof

COLUMNS = [{"name": "size", "kind": "numeric"}, {"name": "town", "kind": "categorical", "categories": ["a", "b", "c"]}]


def odt_model(**certificate):
    return {"method": "odt", "columns": COLUMNS, "classes": ["no", "yes"], "parameters": {}, "certificate": certificate}


def test_automatic_topology_is_read_from_the_evidence():
    automatic = {"topology": " auto"}
    chosen = {"kind": "topology-choice", "chosen": "depth-2"}
    expected = topology_of(odt_model() | {"parameters": {"topology": "depth-2"}})
    assert expected is not None
    assert topology_of(odt_model(evidence=[chosen]) | {"parameters": automatic}) == expected
    for evidence in ([], [chosen, chosen], [chosen | {"chosen": "depth-9"}]):
        with pytest.raises(NoProof, match="does not name the chosen topology"):
            topology_of(odt_model(evidence=evidence) | {"parameters": automatic})


@pytest.mark.parametrize(
    ("certificate", "sets"), [({}, [{1}, {2}, {1, 2}]), ({"wishes": [1]}, [{0}, {1}, {0, 1}, {2}, {0, 2}, {1, 2}])]
)
def test_subsets_come_in_the_order_of_their_bits(certificate, sets):
    towns = np.array([0.0, 1.0, 2.0, 1.0])
    rows = ModelTable([towns], np.zeros(4, np.int32), np.ones(4, np.int64), np.ones(4, np.int64))
    answers, columns = subsets(odt_model(**certificate) | {"columns": COLUMNS[1:]}, rows)
    assert answers.T.tolist() == [[town in chosen for town in towns] for chosen in sets]
    assert columns == [0] * len(sets)


@pytest.mark.parametrize("tail", ["size <= 5", "size between 1 and 2", "size is empty", "town"])
def test_only_categories_can_be_kept_together(tail):
    with pytest.raises(ValueError, match="names no question"):
        wishes_of(odt_model(wishes=[{"wish": f"together root {tail}"}]))
    (wish,) = wishes_of(odt_model(wishes=[{"wish": "together root town in a | b"}]))
    assert (wish.column, wish.split) == (1, ("in", frozenset("ab")))
