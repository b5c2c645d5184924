"""The common interface of all kinds of splits."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Node
from trainer.tree.splits import Interval, Linear, Subset, Threshold

SCHEMA = (
    ColumnSchema(name="age", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="income", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="height", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=("red", "green", "blue", "white", "black")),
)
CUT = Threshold(feature=0, threshold=2.5)
BAND = Interval(feature=1, low=1.0, high=3.0)
SET = Subset(feature=3, codes=(0, 2))
LINE = Linear(features=(0, 1), levels=(-1, -1), coefficients=(1.0, -2.0), threshold=0.5)
PLANE = Linear(features=(0, 1, 2), levels=(-1, -1, -1), coefficients=(1.0, -2.0, 3.0), threshold=0.5)


@pytest.mark.parametrize(
    ("split", "cut", "weighted", "brief"),
    [
        (CUT, (0, 2.5), None, "age ≤ 2.5"),
        (BAND, None, None, "1 < income ≤ 3"),
        (SET, None, None, "colour is one of red, blue"),
        (LINE, None, (((0, -1, 1.0), (1, -1, -2.0)), 0.5), "age − 2 × income ≤ 0.5"),
        (PLANE, None, (((0, -1, 1.0), (1, -1, -2.0), (2, -1, 3.0)), 0.5), "Weighs 3 columns"),
    ],
    ids=["threshold", "interval", "subset", "line", "plane"],
)
def test_split_text_equals_question_on_pages(split, cut, weighted, brief):
    assert split.cut == cut
    assert split.weighted == weighted
    assert split.brief(SCHEMA) == brief
    assert split.many is (split is PLANE)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("most", [1, 2])
def test_smaller_category_set_routes_rows_equally(seed, most):
    rng = np.random.default_rng(seed)
    rows = np.zeros((30, 4))
    # one side of any split then has at most `most` categories
    rows[:, 3] = rng.choice(rng.permutation(5)[: most + 1], 30)
    split = Subset(feature=3, codes=tuple(sorted(rng.permutation(5)[: rng.integers(1, 5)].tolist())))
    found = split.limit_categories(most, (0, 0, 0, 5), rows)
    seen = {int(v) for v in rows[:, 3]}
    if min(len(seen & set(split.codes)), len(seen - set(split.codes))) <= most:
        assert min(len(found.codes), 5 - len(found.codes)) <= most
        assert (found.goes_left(rows) == split.goes_left(rows)).all()


def test_other_splits_have_no_set_to_make_smaller():
    assert all(split.limit_categories(1, (0, 0, 0, 5), np.zeros((2, 4))) is split for split in (CUT, BAND, LINE, PLANE))


@pytest.mark.parametrize(
    ("impurity", "bound", "proved"), [(2.0, 2.0, True), (2.0, 1.9, False), (2.0, None, False), (None, None, False)]
)
def test_a_split_is_proved_where_it_meets_its_bound(impurity, bound, proved):
    assert Node(id=0, counts=(5, 5), label=0, impurity=impurity, impurity_bound=bound).split_proved is proved


def test_a_category_with_a_comma_is_quoted_among_others():
    schema = (ColumnSchema(name="town", kind=ColumnKind.CATEGORICAL, categories=("Rome, Italy", "Oslo", "Bonn")),)
    assert Subset(feature=0, codes=(0, 1)).text(schema) == 'town is one of "Rome, Italy", Oslo'
    assert Subset(feature=0, codes=(0, 1)).text(schema, 1) == 'town is one of "Rome, Italy" + 1 more'
    assert Subset(feature=0, codes=(0,)).text(schema) == "town is Rome, Italy"


def test_years_have_no_comma_and_other_numbers_do():
    def question(name, value):
        return Threshold(feature=0, threshold=value).text([ColumnSchema(name=name, kind=ColumnKind.NUMERIC)])

    for name in (
        "year",
        "Aufnahme year",
        "YearBuilt",
        "built_year",
        "modelYear",
        "GarageYrBlt",
        "Baujahr",
        "Jahr (Bau)",
        "année",
    ):
        assert question(name, 2024.5) == f"{name} ≤ 2024.5"
        assert question(name, 12_345.0) == f"{name} ≤ 12,345"  # this number cannot be a year
    for name in ("yearly cost", "Jahreskosten", "income", "tyre"):
        assert question(name, 2024.5) == f"{name} ≤ 2,024.5"
