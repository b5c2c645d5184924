"""The kernel for three and more levels of subset splits equals brute force and the other search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.trainer.odt.odt_cases import brute, problem_of, random_problem
from trainer.families.odt.grouping import make_groups
from trainer.families.odt.groups import predict_labels
from trainer.families.odt.search import SubsetSearch
from trainer.families.odt.topology import parse
from trainer.table import ColumnKind

SHAPES = (
    "[[..].]", "depth-2.5", "[[[..][..]][..]]", "depth-3", "imbalanced",
    "[[[[..][..]][..]][..]]", "[[[..][..]][[..][[..][..]]]]", "[.[.[.[..]]]]",
)  # fmt: skip


def groups_of(seed, card, most=14, sizes=5):
    """Return groups of categories and thresholds, with equal rows, constant columns, one class or row weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    p = int(rng.integers(1, 5))
    kinds = [ColumnKind.CATEGORICAL if rng.random() < 0.7 else ColumnKind.NUMERIC for _ in range(p)]
    columns = [rng.integers(0, int(rng.integers(1, sizes)), n) for _ in range(p)]
    y = [int(c) for c in rng.integers(0, int(rng.integers(1, 3)), n)]
    problem = problem_of(columns, [*y[:-1], 1], kinds)
    return problem, make_groups(problem, 60, card)


@pytest.mark.parametrize("card", [0, 1, 2])
@pytest.mark.parametrize("text", SHAPES)
def test_equals_brute_force(text, card):
    shape = parse(text)
    for seed in range(8):
        problem, groups = groups_of(seed, card, most=11, sizes=4 if card else 5)
        rows = np.arange(len(groups.y))
        bounds = []
        search = SubsetSearch(groups=groups, root=shape, on_bound=bounds.append)
        value, draft = search.solve(shape, rows)
        assert value == brute(problem, shape, card), f"seed {seed}"
        assert (predict_labels(groups, draft) == groups.y).sum() == value
        assert all(bound >= value for bound in bounds)


def without_kernel(groups, shape):
    search = SubsetSearch(groups=groups, root=shape)
    search._fits = False
    return search


@pytest.mark.parametrize("card", [0, 2])
@pytest.mark.parametrize("text", SHAPES)
def test_agrees_with_the_search_without_the_kernel(text, card):
    """The groups are larger than brute force can handle, with row weights, and with a value to exceed."""
    shape = parse(text)
    for seed in range(1 + (not card)):
        _, groups = groups_of(500 + seed, card, most=36, sizes=8)
        groups = replace(groups, w=np.random.default_rng(seed).integers(1, 4, len(groups.y)))
        rows = np.arange(len(groups.y))
        value, draft = SubsetSearch(groups=groups, root=shape).solve(shape, rows)
        assert value == without_kernel(groups, shape).solve(shape, rows)[0]
        assert groups.w[predict_labels(groups, draft) == groups.y].sum() == value
        assert SubsetSearch(groups=groups, root=shape).solve(shape, rows, value - 1)[0] == value
        assert SubsetSearch(groups=groups, root=shape).solve(shape, rows, value) == (value, None)


def test_three_classes_are_searched_without_binary_bound():
    for seed in range(15):
        problem = random_problem(3000 + seed)
        shape = parse("imbalanced")
        groups = make_groups(problem, 60, 0)
        assert SubsetSearch(groups=groups, root=shape).solve(shape, np.arange(len(groups.y)))[0] == brute(
            problem, shape, 0
        )


def test_subset_of_rows_is_solved_like_a_whole_table():
    """Values of row sets are cached between calls, including upper bounds of sets that missed the target."""
    for seed in range(20):
        _, groups = groups_of(seed, 0)
        shape = parse("imbalanced")
        search = SubsetSearch(groups=groups, root=shape)
        rows = np.flatnonzero(np.random.default_rng(seed).random(len(groups.y)) < 0.7)
        alone = replace(groups, cat=groups.cat[rows], y=groups.y[rows], w=groups.w[rows])
        best = SubsetSearch(groups=alone, root=shape).value(shape, np.arange(len(rows)))
        assert search.value(shape, rows, best) == best
        assert search.value(shape, rows, best - 1) == best
        assert search.value(shape, rows) == best
