"""Bivariate trees find the first monks problem, (a1 = a2) or a5 = 1, from its 124 training rows."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trainer import make_classifier

DATA = Path(os.environ.get("OCTWEB_BENCH_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
DOMAIN = np.array(list(itertools.product((1, 2, 3), (1, 2, 3), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2))), float)
TRUTH = (DOMAIN[:, 0] == DOMAIN[:, 1]) | (DOMAIN[:, 4] == 1)


def says_the_rule(model, last):
    """Assert that a model has three splits that state the rule.

    They are the threshold (or subset) on a5 and two lines on a1 and a2. Each line cuts off one side of the diagonal.
    """
    tree = model.tree_
    used = [[b.split.feature] if hasattr(b.split, "feature") else sorted(b.split.features) for b in tree.branches]
    assert sorted(used) == [[0, 1], [0, 1], [4]]
    assert tree.n_leaves == 4
    assert model.certificate_.splits == model.certificate_.splits_proved == 3
    frame = pd.DataFrame(DOMAIN.astype(int), columns=[f"a{j}" for j in range(1, 7)]).astype({"a5": last})
    assert np.array_equal(model.predict(frame).astype(int), TRUTH.astype(int))


@pytest.mark.parametrize("last", ["int", "str"])
@pytest.mark.parametrize("impurity", ["gini", "entropy"])
def test_three_splits_are_learned_from_the_training_rows(impurity, last):
    path = DATA / "monk1.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there; set OCTWEB_BENCH_DATA to the folder of the data sets")
    table = pd.read_csv(path).astype({"a5": last})
    model = make_classifier("bivariate", depth=3, impurity=impurity).fit(table.drop(columns="class"), table["class"])
    says_the_rule(model, last)


def test_three_splits_are_learned_from_all_rows_with_entropy():
    frame = pd.DataFrame(DOMAIN.astype(int), columns=[f"a{j}" for j in range(1, 7)])
    says_the_rule(make_classifier("bivariate", depth=3, impurity="entropy").fit(frame, TRUTH.astype(int)), "int")
