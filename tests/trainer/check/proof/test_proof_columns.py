"""Proofs with a limit on columns come from the branch and bound without another search, and hold."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.proof_limits_cases import Least
from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.steps.steps import _Check
from trainer.check.proof.subject import ProofSpace
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.families.exact import method as exact
from trainer.families.exact.search.column_cases import CHECKED_DEPTH
from trainer.training.run import TrainRequest, train

LIMITS = [
    {}, {"leaf_penalty": 0.01}, {"class_weight": "balanced"}, {"min_leaf": 3}, {"max_leaves": 4}, {"forbidden_pairs": "a+b"},
    {"forbidden": "c"}, {"max_leaves": 3, "min_leaf": 2}, {"recall": "yes: 0.8"},
]  # fmt: skip


def rows(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 50))
    X = rng.integers(0, 4, (n, 5))
    kind = (X[:, 0] > 1).astype(int) + (X[:, 1] == 2) + (X[:, 2] > X[:, 3]) + (rng.random(n) < 0.2)
    names = np.where(kind % 2 == 1, "yes", "no")
    names[:2] = "yes", "no"
    return "a,b,c,d,e,kind\n" + "".join(
        ",".join(map(str, x)) + f",{k}\n" for x, k in zip(X.tolist(), names, strict=True)
    )


def proved(folder, seed, **parameters):
    """Return the document of a training with a limit of columns, and the checker's findings on it and its proof."""
    data = folder / "rows.csv"
    proof = folder / "proof.jsonl.gz"
    model = folder / "model.json"
    data.write_text(rows(seed))
    table, labels, *_ = load(data, target="kind")
    asked = {"bins": 3, "max_columns": 1 + seed % 3} | parameters
    request = TrainRequest(
        table=table, labels=labels, method="exact", parameters=asked, test_share=0, folds=0, proof=proof
    )
    document = json.loads(json.dumps(train(request).model.to_json()))
    model.write_text(json.dumps(document))
    return document, verify(model, data, proof)


@seeds(12)
def test_the_cases_of_the_search_prove_the_best_tree(seed, tmp_path):
    document, found = proved(tmp_path, seed, depth=1 + seed % 4, **LIMITS[seed % len(LIMITS)])
    assert document["certificate"]["status"] == "optimal"
    assert verdict(found) == "proved", [f for f in found if f.verdict not in ("proved", "recounted")]
    assert "step" in next(f.detail for f in found if f.claim == "bound")


@pytest.mark.parametrize("depth", [CHECKED_DEPTH, CHECKED_DEPTH + 1])
def test_nothing_is_searched_again(tmp_path, monkeypatch, depth):
    def again(*_, **__):
        raise AssertionError("a search was begun for the proof")

    monkeypatch.setattr(exact, "limited_proof", again)
    monkeypatch.setattr(exact, "restricted_proof", again)
    for seed in (1, 4, 7):
        document, found = proved(tmp_path, seed, depth=depth)
        written = next(e for e in document["certificate"]["evidence"] if e["kind"] == "proof")
        assert written["made"]
        assert verdict(found) == "proved"


@pytest.mark.parametrize("depth", [CHECKED_DEPTH, CHECKED_DEPTH + 1])
def test_without_room_for_searches_the_proof_is_the_same(tmp_path, monkeypatch, depth):
    kept, _ = proved(tmp_path, 5, depth=depth)
    monkeypatch.setattr("trainer.families.exact.search.search.ExactSearch.size", 1 << 40)
    again, found = proved(tmp_path, 5, depth=depth)
    proofs = [next(e for e in d["certificate"]["evidence"] if e["kind"] == "proof") for d in (kept, again)]
    assert proofs[0]["sha256"] == proofs[1]["sha256"]
    assert verdict(found) == "proved"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "asked"),
    [(5, {"forbidden_pairs": "a+e", "max_columns": 3}), (6, {"forbidden_pairs": "a+b", "max_columns": 3})],
)
def test_no_step_of_a_case_is_about_a_path_that_pairs_forbid(tmp_path, seed, asked):
    _, found = proved(tmp_path, seed, depth=5, **asked)
    assert verdict(found) == "proved"


@pytest.mark.slow
def test_step_on_lower_trees_counts_for_same_rows(tmp_path):
    """The taller trees of the other one have smaller vectors, whose sums are those of no tree of the height."""
    _, found = proved(tmp_path, 8, depth=5, forbidden_pairs="a+e", recall="yes: 0.8", max_columns=None)
    assert verdict(found) == "proved"


@seeds(10)
def test_a_step_holds_with_fewer_questions_too(seed):
    """The step for all columns serves both cases, in which fewer may be asked."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (12, 4)) > 0
    labels = rng.integers(0, 2, 12).astype(np.int32)
    space = ProofSpace(
        "questions",
        X,
        labels,
        np.ones(12, np.int64),
        2,
        2,
        Fraction(1, 7),
        1,
        None,
        np.ones(4, bool),
        None,
        "rows",
        columns=np.arange(4),
        max_columns=1,
    )
    best = Least(space, 7, 1).below([], 2, 4)
    step = {"path": [], "height": 2, "bound": best}
    check = _Check(space, Counting(space, 7, 1))
    check.add(1, step | {"by": "count"})
    check.add(2, step | {"by": "cases", "column": 0, "with": []})
    assert check.step_bound(check.engine.root((1, 2)), 2, 4) == best
    fewer = _Check(space, Counting(space, 7, 1))
    fewer.add(1, step | {"by": "count", "columns": [1, 2]})
    assert fewer.step_bound(fewer.engine.root((1,)), 2, 4) == best
    assert fewer.step_bound(fewer.engine.root(), 2, 4) == 0
