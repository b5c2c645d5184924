"""The badges of a model state the whole scope of its claim, for every method."""

from __future__ import annotations

import io
import re

import pytest

from octweb.datasets import actions as datasets
from octweb.registry.document.claims import claim_badges
from octweb.registry.lifecycle import actions
from tests.octweb.small_models import trained
from trainer.training.claims import plain_scope
from trainer.training.run import TrainRequest, train


@pytest.mark.one_database
@pytest.mark.parametrize("method", ["exact", "bendoct", "bivariate", "cart"])
def test_a_badge_names_the_scope(method, owner, media):
    text = "x,y,answer\n" + "".join(f"{i % 7},{i % 5},{'ab'[(i % 7 > 3) ^ (i % 11 == 0)]}\n" for i in range(40))
    choice = datasets.ColumnChoice(target="answer")
    table = datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="t.csv", name="t", choice=choice)
    rows, labels = datasets.load(table)
    asked = {"depth": 2} | ({"max_leaves": 3} if method == "bendoct" else {"min_leaf": 4})
    result = train(TrainRequest(table=rows, labels=labels, method=method, parameters=asked))
    document = result.model.to_json()
    scope = document["certificate"]["scope"]
    assert scope.endswith("at most 3 leaves" if method == "bendoct" else "at least 4 rows in a leaf")
    model = actions.register(owner=owner, document=document, dataset=table, title="T")
    assert [scope in claim.tip for claim in claim_badges(model)].count(True) == 1


@pytest.mark.one_database
def test_page_of_proved_subtrees_calls_nothing_optimal(client, register, owner, media):
    model = register(document=trained("local-search", depth=4, leaf_penalty=0.02))
    whole, parts = claim_badges(model)
    assert (whole.kind, parts.kind) == ("heuristic", "proved")
    assert re.fullmatch(r"(\d+) of \1 subtrees proved", parts.words)
    client.force_login(owner)
    for mode in ("", "?mode=proof", "?mode=performance"):
        text = client.get(f"/models/{model.pk}/{mode}").content.decode()
        assert "subtrees proved" in text
        assert "optimal" not in text.lower().replace("proved_optimal", "")


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        ({"scope": "all trees with depth ≤ 3, 98 thresholds"}, "all trees of at most three questions in a row"),
        ({"scope": "all trees with depth ≤ 1"}, "all trees of at most one question in a row"),
        (
            {"scope": "all trees with depth ≤ 2", "wishes": [{"wish": "forbid root sex"}]},
            "all trees of at most two questions in a row that keep this wish: “At the root and below: never ask sex”",
        ),
        ({"scope": ""}, ""),
        ({}, ""),
    ],
)
def test_scope_is_stated_in_plain_words(certificate, words):
    assert plain_scope(certificate) == words
