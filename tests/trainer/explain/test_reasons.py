"""Principal reasons and sufficient values equal enumeration over a grid."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.trainer.explain.flip_cases import grid, random_case
from tests.trainer.random_trees import naive_leaf
from trainer.data.column_statistics import statistics
from trainer.explain.permission import FREE
from trainer.explain.reasons import (  # three are private: a kernel with an oracle
    LARGEST,
    MAX_REASONS,
    ReasonFinder,
    _double,
    _last_with_first_answer,
    _ordinal,
    path_splits,
    reasons_record,
)
from trainer.explain.record import path
from trainer.explain.region import Sum
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Subset, goes_left
from trainer.tree.splits.base import VALUE


def finder_of(tree, matrix):
    return ReasonFinder(tree, statistics(tree.schema, matrix))


def other_rows(tree, row, columns):
    """Yield every row of the grid that differs from `row` in all of `columns` and nowhere else, with another class."""
    own = tree.nodes[naive_leaf(tree, row)].label
    for values in itertools.product(*([v for v in grid(j, FREE) if v != row[j]] for j in columns)):
        other = row.copy()
        other[list(columns)] = values
        label = tree.nodes[naive_leaf(tree, other)].label
        if label != own:
            yield other, label


def parts_by_enumeration(tree, row):
    """Return all sets of changed answers and further columns with which a row of the grid has another class."""
    splits = path_splits(tree, row)
    found = set()
    for size in range(1, len(tree.used_columns) + 1):
        for columns in itertools.combinations(tree.used_columns, size):
            for other, _ in other_rows(tree, row, columns):
                changed = [s for s in splits if bool(s.split.goes_left(other.reshape(1, -1))[0]) != s.left]
                tested = {j for s in changed for j in s.split.used}
                further = {("column", j) for j in columns if j not in tested}
                found.add(frozenset({("node", s.node) for s in changed} | further))
    return found


def smallest(sets):
    return {parts for parts in sets if not any(other < parts for other in sets)}


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 300), marks=pytest.mark.slow)])
def test_reasons_are_the_smallest_sets_of_answers(seeds, holes):
    counted = 0
    for seed in seeds:
        tree, matrix, _ = random_case(seed, sums=False, holes=holes)
        if len(tree.used_columns) > 2 + (seed > 250):
            continue
        finder = finder_of(tree, matrix)
        for row in matrix[:2]:
            if np.isnan(row[3]) or any(math.isnan(row[j]) for j in tree.refused_columns):
                continue
            expected = smallest(parts_by_enumeration(tree, row))
            reasons = finder.principal(row)
            by_answers = {}
            for parts in expected:
                by_answers.setdefault(frozenset(p for p in parts if p[0] == "node"), []).append(len(parts))
            assert {reason.parts for reason in reasons} <= expected
            assert len({reason.nodes for reason in reasons}) == len(reasons) == min(len(by_answers), MAX_REASONS)
            assert [len(r.parts) for r in reasons] == sorted(map(min, by_answers.values()))[:MAX_REASONS]
            for reason in reasons:
                assert tree.nodes[naive_leaf(tree, reason.flip.row)].label != tree.nodes[naive_leaf(tree, row)].label
            counted += len(reasons)
    assert counted > 10


def test_sets_behind_sums_are_not_called_smallest():
    tree, matrix, _ = random_case(4, sums=True)
    finder = finder_of(tree, matrix)
    found = {reason.parts for reason in finder.principal(matrix[0])}
    assert any(other < parts for parts in found for other in parts_by_enumeration(tree, matrix[0]))
    assert not reasons_record(finder, matrix[0])["exact"]
    tree, matrix, _ = random_case(4, sums=False)
    assert reasons_record(finder_of(tree, matrix), matrix[0])["exact"]


def test_categories_are_tested_together(monkeypatch):
    words = tuple(map(str, range(400)))
    schema = (ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=words),)
    rng = np.random.default_rng(1)
    matrix = np.arange(400, dtype=float).reshape(-1, 1)
    first, *rest = (Subset(feature=0, codes=tuple(np.flatnonzero(rng.random(400) < 0.5).tolist())) for _ in range(3))
    leaves = [DraftLeaf(label=k) for k in range(4)]
    branches = [DraftBranch(split=s, left=leaves[2 * k], right=leaves[2 * k + 1]) for k, s in enumerate(rest)]
    draft = DraftBranch(split=first, left=branches[0], right=branches[1])
    tree = grow(draft, matrix, rng.integers(0, 4, 400), schema=schema, classes=("a", "b", "c", "d"))
    calls = []
    monkeypatch.setattr("trainer.explain.reasons.goes_left", lambda *a: calls.append(a) or goes_left(*a))
    reasons = finder_of(tree, matrix).principal(matrix[0])
    assert {reason.parts for reason in reasons} == smallest(parts_by_codes(tree, matrix))
    assert len(calls) < 100


@pytest.mark.parametrize("others", [(2.0, -3.0), (1e300, 1e300), (1e300, -1e300), (5e-324, 0.0)])
@pytest.mark.parametrize("coefficients", [(1.0, 0.1, -3.0), (-1e-9, 1e9, 1e9), (1e-300, 1.0, -1.0)])
def test_threshold_of_a_sum_is_that_of_bisection(others, coefficients):
    """Few evaluations find the double that a bisection over all doubles finds, also if the other products overflow."""
    terms = tuple((j, VALUE, a) for j, a in enumerate(coefficients))
    total = Sum(terms=terms, threshold=0.7, left=True)
    row = np.array([0.0, *others])
    low, high = _ordinal(-LARGEST), _ordinal(LARGEST)

    def holds(place):
        return total.holds(np.array([_double(place), *others]))

    first = holds(low)
    expected = None
    if holds(high) != first:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(middle) == first else (low, middle)
        expected = _double(low)
    assert _last_with_first_answer(total, row, 0) == expected


def parts_by_codes(tree, matrix):
    """Return the sets of answers of the first row that another row with another class changes."""
    splits = path_splits(tree, matrix[0])
    labels = tree.predict(matrix)
    others = [row for row, label in zip(matrix, labels, strict=True) if label != labels[0]]
    return {
        frozenset(("node", s.node) for s in splits if bool(s.split.goes_left(row[None])[0]) != s.left) for row in others
    }


def test_answers_that_an_empty_cell_decides_name_it():
    named = 0
    for seed in range(12):
        tree, matrix, _ = random_case(seed, sums=False, holes=True)
        finder = finder_of(tree, matrix)
        for row in matrix[:4]:
            if np.isnan(row[3]) or any(math.isnan(row[j]) for j in tree.refused_columns):
                continue
            steps = {
                step["node"]: step.get("empty") for step in path(finder.flipper, row, int(tree.apply(row[None])[0]))
            }
            for reason in reasons_record(finder, row)["principal"]:
                assert [a.get("empty") for a in reason["answers"]] == [steps[a["node"]] for a in reason["answers"]]
                named += sum("empty" in answer for answer in reason["answers"])
    assert named > 5


@pytest.mark.parametrize(("sums", "holes"), [(False, False), (False, True), (True, False), (True, True)])
def test_enough_values_are_all_values_of_the_column(sums, holes):
    counted = 0
    for seed in range(60):
        tree, matrix, _ = random_case(seed, sums=sums, holes=holes)
        finder = finder_of(tree, matrix)
        for row, j in itertools.product(matrix[:3], tree.used_columns):
            if np.isnan(row[3]) or any(math.isnan(row[k]) for k in tree.refused_columns):
                continue
            items = finder.enough(row, j)
            expected = {(float(other[j]), label) for other, label in other_rows(tree, row, (j,))}
            for value in grid(j, FREE):
                said = {
                    item.label
                    for item in items
                    if (
                        value in item.codes
                        if tree.schema[j].kind is ColumnKind.CATEGORICAL
                        else item.low < value <= item.high
                    )
                }
                assert said == {label for at, label in expected if at == value}, (seed, j, value)
            counted += len(items)
    assert counted > 40


def test_threshold_of_a_sum_is_exact_to_the_last_bit():
    checked = 0
    for seed in range(0, 180, 3):  # these seeds have trees with at most one split
        tree, matrix, _ = random_case(seed, sums=True)
        finder = finder_of(tree, matrix)
        row = matrix[0]
        for j in {0, 1} & set(tree.used_columns):
            for item in finder.enough(row, j):
                last = item.high if math.isfinite(item.high) else item.low
                labels = []
                for value in (last, math.nextafter(last, math.inf)):
                    other = row.copy()
                    other[j] = value
                    labels.append(tree.nodes[naive_leaf(tree, other)].label)
                assert labels == ([item.label, labels[1]] if last == item.high else [labels[0], item.label])
                assert labels[0] != labels[1]
                checked += 1
    assert checked > 10
