"""The checker's search for trees of subsets within a topology agrees with enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.proof_within_cases import document
from tests.trainer.exact.workbench_cases import INFINITE
from tests.trainer.odt.workbench_cases import UNEVEN, uneven
from trainer.check.proof.model import ModelTable
from trainer.check.recount.search import small


def claim(seed):
    """Return a model file's statement of a tree with constraints, its rows, and all trees of the topology."""
    problem, bench, texts, _, brute, _ = uneven(seed)
    wishes = bench.wishes(texts)
    model = document(problem, 2, None, [w.text for w in wishes]) | {"method": "odt"}
    model["parameters"] = {"depth": 2, "topology": UNEVEN[seed % len(UNEVEN)], "bins": 4}
    model["certificate"]["leaf_penalty"] = "0"
    model["certificate"]["scope"] = "all trees with this topology"
    values = [np.asarray(c.values, float) for c in problem.table.columns]
    return model, ModelTable(values, problem.y, problem.row_weights, problem.row_weights), brute, wishes


def objective(cost, rows):
    return 1 - Fraction(int(cost), int(rows.weights.sum()))


@pytest.mark.slow
@seeds(60)
def test_search_finds_optimum_with_and_without_wishes(seed):
    model, rows, brute, asked = claim(seed)
    found, _ = small.best(model, rows)
    assert found is not None
    assert found.is_whole
    want = brute.best(asked)
    assert found.value == (-1 if want == INFINITE else objective(want, rows))
    assert small.optimum_without(model, rows, range(len(asked))) == objective(brute.best([]), rows)
    for i in range(len(asked)):
        rest = brute.best(asked[:i] + asked[i + 1 :])
        assert small.optimum_without(model, rows, [i]) == (None if rest == INFINITE else objective(rest, rows))


def test_skipped_search_is_not_called_searched(monkeypatch):
    model, rows, *_ = claim(4)
    monkeypatch.setattr(small, "VISITS", 0)
    found, why = small.best(model, rows)
    assert found is None or not found.is_whole
    assert why
