"""The shown rules, as text and JSON, give the model's answer for each row."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.random_trees import cells, random_tree
from trainer.registry import METHODS
from trainer.table import MISSING_CATEGORY, Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train
from trainer.tree.describe import rules_text
from trainer.tree.numbers import number_text, read_number, shortest_between
from trainer.tree.rules import rules_of
from trainer.tree.splits import Interval, Threshold
from trainer.tree.splits.linear import Linear

LEVELS = ("red", "green", "blue", "grey")
QUICK = {"cart", "oc1", "bivariate", "exact", "exact-numeric", "odt"}
TREES = {True: 24, False: 8}  # trees of each quick method and of each of the nine others: 216 in all
OBLIQUE = {"oc1", "bivariate", "cut-h", "cutw-h", "s-oct", "oct-h"}


def table(seed: int, classes: int = 2) -> tuple[Table, Labels]:
    """Return columns as in real files.

    They contain fine decimals, zeros with some positive values, integers, very different sizes, text, and yes or no.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(16, 30))
    numbers = {
        "index": np.round(1.5 + 0.02 * rng.random(n), 5),
        "share": np.where(rng.random(n) < 0.6, 0, np.round(rng.random(n), 2)),
        "count": rng.integers(0, 9, n).astype(float),
        "income": np.round(rng.normal(size=n) * 1e6, -2),
        "tiny": rng.normal(size=n) * 1e-7,
    }
    chosen = [str(name) for name in rng.choice(list(numbers), 2, replace=False)]
    columns = [Column(schema=ColumnSchema(name=name, kind=ColumnKind.NUMERIC), cells=numbers[name]) for name in chosen]
    columns.append(
        Column(schema=ColumnSchema(name="member", kind=ColumnKind.BINARY), cells=rng.integers(0, 2, n).astype(float))
    )
    colour = rng.integers(0, len(LEVELS), n)
    schema = ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=LEVELS)
    columns.append(Column(schema=schema, cells=colour.astype(float)))
    score = sum((c.values > np.median(c.values)).astype(float) for c in columns) + rng.normal(size=n)
    codes = np.clip((score - score.min()) / (np.ptp(score) + 1e-9) * classes, 0, classes - 1).astype(np.int32)
    labels = Labels(name="y", classes=("no", "yes", "perhaps")[:classes], codes=codes)
    return Table(columns=tuple(columns), row_numbers=np.arange(1, n + 1)), labels


def number(text: str) -> float:
    """Parse a number as it is written in a rule."""
    return float(text.replace("−", "-").replace(",", "").split("\u202f")[0])


def holds(question: str, row: dict[str, object]) -> bool:
    """Return whether a row meets a condition of the text."""
    if " ≤ " in question and " < " not in question:
        left, right = question.split(" ≤ ")
        total = 0.0
        for sign, factor, name in re.findall(r"(^−|[+−] |^)(?:([\d.,E+-]+) × )?(\[[^]]+\]|[a-z]+)", left):
            a = number(factor) if factor else 1.0
            level = re.fullmatch(r"\[(\w+) is (\w+)\]", name)
            value = float(row[level[1]] == level[2]) if level else float(row[name])  # type: ignore[arg-type]
            total += (-a if "−" in sign else a) * value
        return total <= number(right)
    if between := re.fullmatch(r"(\S+) < (\w+) ≤ (\S+)", question):
        return number(between[1]) < float(row[between[2]]) <= number(between[3])  # type: ignore[arg-type]
    if above := re.fullmatch(r"(\w+) > (\S+)", question):
        return float(row[above[1]]) > number(above[2])  # type: ignore[arg-type]
    if chosen := re.fullmatch(r"(\w+) is one of (.+)", question):
        return row[chosen[1]] in chosen[2].split(", ")
    name, value = re.fullmatch(r"(\w+) is (\w+)", question).groups()  # type: ignore[union-attr]
    return row[name] == (float(value) if value.isdigit() else value)


def follow(text: str, row: dict[str, object]) -> str:
    """Return the answer of the nested text for a row: the class and its rows."""
    lines = text.splitlines()
    at = 0
    while lines[at].endswith("?"):
        indent = len(lines[at]) - len(lines[at].lstrip())
        question = re.sub(r"^ *(yes: |no: )?", "", lines[at])[:-1]
        answer = "yes: " if holds(question, row) else "no: "
        at = next(i for i in range(at + 1, len(lines)) if lines[i].startswith(" " * (indent + 2) + answer))
    return re.sub(r"^ *(yes: |no: )?", "", lines[at])


def fits(condition: dict, row: dict[str, object]) -> bool:
    """Return whether a row meets a condition of `rules --json`. For unknown categories the answer to a split is no."""
    op = condition["op"]
    value = condition["value"]
    if "terms" in condition:
        total = 0.0
        fills = condition.get("fills", {})
        levels = condition.get("levels", {})
        values = {key: fills.get(key) if row[key] is None else row[key] for key in condition["terms"].keys() - levels}
        if "missing" in condition and None in values.values():
            return condition["missing"]
        for key, a in condition["terms"].items():
            if key in levels:
                name = levels[key]["category"]
                cell = row[levels[key]["column"]]
                asks_empty = name == MISSING_CATEGORY and not key.endswith(f"{MISSING_CATEGORY}]")
                values[key] = float(cell is None if asks_empty else cell == name)
            total += a * (math.nan if values[key] is None else float(values[key]))  # type: ignore[arg-type]
        return total <= float(value) if op == "<=" else not total <= float(value)
    cell = row[condition["column"]]
    if op in ("in", "not in"):
        return (cell in value) is (op == "in")
    if cell is None and "missing" in condition:
        return condition["missing"]
    if op in ("is missing", "is not missing"):
        return (cell is None) == (op == "is missing")
    below = cell is not None and float(cell) <= float(value)  # type: ignore[arg-type]
    return below if op == "<=" else not below


def midpoints(matrix: np.ndarray, schema: tuple[ColumnSchema, ...]) -> np.ndarray:
    """Return rows of values half-way between two neighbours of their column."""
    rows = []
    for j, column in enumerate(schema):
        values = np.unique(matrix[:, j])
        for low, high in pairwise(values.tolist()) if column.kind is ColumnKind.NUMERIC else ():
            row = matrix[len(rows) % len(matrix)].copy()
            row[j] = (low + high) / 2
            rows.append(row)
    return np.array(rows).reshape(-1, len(schema))


def digits(value: float) -> int:
    """Return how many significant digits a number has as it is written."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_rules_as_text_and_as_json_answer_as_the_model_does(method):
    # Any tree will do, but the quick methods must have time for a tree of their own on a busy machine, too.
    asked = {"depth": 2, "time_limit": 0.2 if method.id in QUICK else 0.05}
    names = {p.name for p in method.parameters}
    for seed in range(TREES[method.id in QUICK]):
        rows, labels = table(seed, 2 if method.two_classes or seed % 2 else 3)
        own = asked | ({"binarise": "quantile-buckets"} if seed % 4 == 3 else {})
        settings = {name: value for name, value in own.items() if name in names}
        if method.id in ("cut-h", "cutw-h", "s-oct", "oct-h", "oc1") and seed % 2:
            settings["depth"] = 1
        tree = train(TrainRequest(table=rows, labels=labels, method=method.id, parameters=settings)).tree
        matrix = rows.matrix()
        text = rules_text(tree)
        rules = [rule.to_json() for rule in rules_of(tree)]
        every = np.vstack([matrix, midpoints(matrix, tree.schema)])
        for row, reached in zip(every, tree.apply(every).tolist(), strict=True):
            record = cells(tree, row)
            leaf = tree.nodes[reached]
            expected = tree.classes[leaf.label]
            assert follow(text, record).startswith(
                f"{tree.class_words[leaf.label]} ({leaf.counts[leaf.label]} of {leaf.rows} row"
            ), text
            rule = next(r for r in rules if all(fits(c, record) for c in r["conditions"]))
            assert (rule["class"], rule["leaf"], rule["rows"]) == (expected, leaf.id, leaf.rows)
        check_thresholds(tree, matrix)


def check_thresholds(tree, matrix):
    """Check that every threshold is the shortest decimal of its gap, and that every sum has 1 before its first column."""
    for v in tree.branches:
        for condition in v.split.conditions(tree.schema, True):
            if condition.terms:
                assert condition.terms[0][1] == 1, condition
            elif condition.op in ("<=", ">"):
                j = [c.name for c in tree.schema].index(condition.column)
                values = np.unique(matrix[:, j])
                cut = float(condition.value)
                at = int(np.searchsorted(values, cut, side="right"))
                low = float(values[at - 1])
                high = float(values[at])
                assert low < cut < high
                fewest = digits(cut)
                # No decimal with fewer digits is in the gap, because the multiples of the next power of ten skip it.
                for places in range(1, fewest):
                    unit = Decimal(10) ** (Decimal(cut).adjusted() - places + 1)
                    first = (Decimal(repr(low)) / unit).to_integral_value(rounding="ROUND_FLOOR") * unit + unit
                    assert float(first) >= high, (low, cut, high)


@seeds(100)
def test_rules_answer_missing_and_unknown_categories(seed):
    tree, matrix = random_tree(seed, rows=30)
    rules = [rule.to_json() for rule in rules_of(tree)]
    assert sorted(rule["leaf"] for rule in rules) == [leaf.id for leaf in tree.leaves]
    sums = [v.split for v in tree.branches if v.split.kind == "linear"]
    twice = any(len({(f, lv) for f, lv, _ in split.terms}) < len(split.terms) for split in sums)
    for row, leaf in zip(matrix, tree.apply(matrix), strict=True):
        record = cells(tree, row)
        refused = [j for j in tree.refused_columns if tree.schema[j].kind is not ColumnKind.CATEGORICAL]
        if np.isinf(row).any() or np.isnan(row[refused]).any():  # such a row has no answer
            continue
        if not twice:  # if a column appears twice in a sum, the rule has one term for it
            assert next(r for r in rules if all(fits(c, record) for c in r["conditions"]))["leaf"] == leaf


@pytest.mark.parametrize(
    ("low", "high", "cut"),
    [
        (3.34, 3.36, 3.35), (4, 5, 4.5), (0, 0.06, 0.03), (0, 1, 0.5), (1.51869, 1.51871, 1.5187), (-5, -4, -4.5),
        (10, 20, 15), (0, 100, 50), (95, 240, 200), (-1, 1, 0), (-3, 40, 20), (1e-10, 3e-10, 2e-10), (-1e9, 5e8, 0),
    ],
)  # fmt: skip
def test_the_shortest_decimal_of_a_gap(low, high, cut):
    assert shortest_between(low, high) == cut


@seeds(300)
def test_every_gap_of_doubles_has_a_decimal_inside(seed):
    rng = np.random.default_rng(seed)
    low = float(rng.normal() * 10.0 ** rng.integers(-300, 300))
    high = float(np.nextafter(low, np.inf)) if seed % 3 == 0 else low + abs(low) * 10.0 ** -int(rng.integers(0, 16))
    for _ in range(seed % 3):
        high = float(np.nextafter(high, np.inf))
    if not low < high:
        high = float(np.nextafter(low, np.inf))
    cut = shortest_between(low, high)
    assert low <= cut < high
    assert (cut == low) == (float(np.nextafter(low, np.inf)) == high)
    assert read_number(number_text(cut, full=True)) == cut


@seeds(60)
def test_hyperplane_decimals_do_not_depend_on_number_of_rows(seed, monkeypatch):
    """With many rows, those near the threshold are tried first, which must not change a digit."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(300, 3)) * 10.0 ** rng.integers(-3, 4, 3)
    if seed % 3 == 0:
        matrix = np.round(matrix, 1)
    coefficients = tuple(float(a) for a in rng.normal(size=3) / np.maximum(matrix.std(axis=0), 1e-3))
    threshold = float(np.median(matrix @ np.array(coefficients)))
    split = Linear(features=(0, 1, 2), coefficients=coefficients, threshold=threshold, levels=(-1, -1, -1))
    slow = split.shorten(lambda feature: matrix[:, feature], matrix, np.arange(len(matrix)))
    monkeypatch.setattr(sys.modules[Linear.__module__], "FEW", 16)
    assert split.shorten(lambda feature: matrix[:, feature], matrix, np.arange(len(matrix))) == slow


@seeds(40)
def test_first_coefficient_is_1_if_division_is_inexact(seed):
    rng = np.random.default_rng(seed)
    size = 10.0 ** np.array([302, -8 - rng.integers(0, 3)])  # the second coefficient is beyond 1e308 times the first
    matrix = rng.normal(size=(60, 2)) * size
    coefficients = tuple(float(a) for a in (1 / size) * rng.choice([-1, 1], 2))
    sums = coefficients[0] * matrix[:, 0] + coefficients[1] * matrix[:, 1]
    split = Linear(features=(0, 1), coefficients=coefficients, threshold=float(np.median(sums)), levels=(-1, -1))
    made, exchanged = split.shorten(lambda feature: matrix[:, feature], matrix, np.arange(len(matrix)))
    assert isinstance(made, Linear)
    assert made.coefficients[0] == 1
    assert np.array_equal(made.goes_left(matrix) != exchanged, split.goes_left(matrix))


def test_conditions_on_ranks_have_number_and_word():
    schema = (ColumnSchema(name="grade", kind=ColumnKind.NUMERIC, ranks=("low", "mid", "high")),)
    both = [c.to_json() for left in (True, False) for c in Threshold(feature=0, threshold=1.5).conditions(schema, left)]
    assert both == [
        {"column": "grade", "op": "<=", "value": "1.5", "word": "low"},
        {"column": "grade", "op": ">", "value": "1.5", "word": "low"},
    ]
    ends = Interval(feature=0, low=1.5, high=2.5).conditions(schema, True)
    assert [(c.op, c.value, c.word) for c in ends] == [(">", "1.5", "low"), ("<=", "2.5", "mid")]
    plain = (ColumnSchema(name="grade", kind=ColumnKind.NUMERIC),)
    assert "word" not in Threshold(feature=0, threshold=1.5).conditions(plain, True)[0].to_json()
