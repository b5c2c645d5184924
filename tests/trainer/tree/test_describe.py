"""Trees as text, and as Python and SQL code that gives the tree's answers."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.random_trees import cells, naive_left, random_tree
from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, EmptySide, MissingPolicy, RowNaming
from trainer.tree.describe import number_text, path_in_words, rules_text, split_text
from trainer.tree.export.code import to_python, to_sql
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.numbers import points_text
from trainer.tree.render.layout import place
from trainer.tree.render.outline import tree_outline
from trainer.tree.splits import Interval, Linear, Missing, Subset, Threshold

SCHEMA = (
    ColumnSchema(name="worst area", kind=ColumnKind.NUMERIC, unit="mm²"),
    ColumnSchema(name="worst smoothness", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="odor", kind=ColumnKind.CATEGORICAL, categories=("almond", "anise", "foul", "")),
    ColumnSchema(name="smoker", kind=ColumnKind.BINARY),
)
PLAIN = (ColumnSchema(name="worst area", kind=ColumnKind.NUMERIC), *SCHEMA[1:])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7314.2, "7,314"), (1831.4, "1,831"), (0.012345, "0.0123"), (12.345, "12.3"), (-0.5, "−0.5"), (0.0, "0"),
        (-0.0, "0"), (1e6, "1,000,000"), (999.9, "1,000"), (1 / 3, "0.333"), (0.30000000000000004, "0.3"), (2.0, "2"),
        (1.5e20, "1.5\u202f×\u202f10^20"), (1.234e-9, "1.23\u202f×\u202f10^−9"), (math.inf, "∞"), (-math.inf, "−∞"),
        (math.nan, "missing"), (100.0, "100"), (0.1, "0.1"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits_or_are_rounded_to_one(value, text):
    assert number_text(value) == text


@seeds(200)
def test_full_numbers_read_back_to_the_same_double(seed):
    rng = np.random.default_rng(seed)
    value = float(rng.normal() * 10.0 ** rng.integers(-30, 30))
    assert float(number_text(value, full=True).replace("−", "-").replace(",", "")) == value


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0"), (1, "100.0"), (0.9332, "93.3"), (0.9996, "99.96"), (0.999997, "99.9997"), (1 - 1e-16, "100.0"),
        (0.00004, "0.004"), (-0.02, "−2.0"), (1.5, "150.0"),
    ],
)  # fmt: skip
def test_only_all_reads_as_all_and_only_none_as_none(share, text):
    assert points_text(share) == text


@pytest.mark.parametrize(
    ("split", "text"),
    [
        (Threshold(feature=0, threshold=880.81), "worst area ≤ 880.81"),
        (Threshold(feature=0, threshold=-1234.5), "worst area ≤ −1,234.5"),
        (Threshold(feature=3, threshold=0.5), "smoker is 0"),
        (Interval(feature=1, low=0.1, high=0.25), "0.1 < worst smoothness ≤ 0.25"),
        (Interval(feature=1, low=-math.inf, high=0.25), "worst smoothness ≤ 0.25"),
        (Interval(feature=1, low=0.1, high=math.inf), "worst smoothness > 0.1"),
        (Subset(feature=2, codes=(0, 1)), "odor is one of almond, anise"),
        (Subset(feature=2, codes=(3,)), 'odor is ""'),
        (Subset(feature=2, codes=()), "odor is none of its categories"),
        (
            Linear(features=(0, 1), coefficients=(1.0, 7314.2), threshold=1831.4, levels=(-1, -1)),
            "worst area + 7,314.2 × worst smoothness ≤ 1,831.4",
        ),
        (
            Linear(features=(0, 1), coefficients=(-2.0, 3.0), threshold=5.0, levels=(-1, -1)),
            "−2 × worst area + 3 × worst smoothness ≤ 5",
        ),
        (
            Linear(features=(1, 2), coefficients=(0.5, -1.0), threshold=2.0, levels=(-1, 2)),
            "0.5 × worst smoothness − [odor is foul] ≤ 2",
        ),
    ],
)
def test_rules_are_worded_as_designed(split, text):
    assert split_text(split, PLAIN) == text


def test_units_follow_numbers_and_first_column_of_linear_rules():
    assert split_text(Threshold(feature=0, threshold=880.81), SCHEMA) == "worst area ≤ 880.81\u202fmm²"
    rule = Linear(features=(0, 1), coefficients=(1.0, 2.0), threshold=5.0, levels=(-1, -1))
    assert split_text(rule, SCHEMA) == "worst area + 2 × worst smoothness ≤ 5\u202fmm²"
    rule = Linear(features=(0, 1), coefficients=(2.0, 4.0), threshold=10.0, levels=(-1, -1))
    assert split_text(rule, SCHEMA) == "2 × worst area + 4 × worst smoothness ≤ 10"


def test_the_whole_tree_as_nested_lines():
    draft = DraftBranch(
        split=Threshold(feature=0, threshold=2.5),
        left=DraftLeaf(),
        right=DraftBranch(split=Subset(feature=2, codes=(0,)), left=DraftLeaf(), right=DraftLeaf()),
    )
    matrix = np.array([[1.0, 0, 0, 0], [2, 0, 1, 0], [3, 0, 0, 0], [4, 0, 1, 1]])
    tree = grow(draft, matrix, np.array([0, 0, 1, 0], np.int32), schema=PLAIN, classes=("benign", "malignant"))
    assert rules_text(tree) == (
        "worst area ≤ 2.5?\n"
        "  yes: benign (2 of 2 rows)\n"
        "  no: odor is almond?\n"
        "    yes: malignant (1 of 1 row)\n"
        "    no: benign (1 of 1 row)\n"
    )


def test_path_states_the_values_of_the_row():
    rule = Linear(features=(0, 1), coefficients=(1.0, 7314.0), threshold=1831.0, levels=(-1, -1))
    tree = grow(
        DraftBranch(split=rule, left=DraftLeaf(), right=DraftLeaf()),
        np.array([[844.0, 0.1, 0, 0], [1112.6, 0.1, 0, 0]]), np.array([0, 1], np.int32), schema=PLAIN, classes="bm",
    )  # fmt: skip
    row = np.array([1112.6, 0.1, 0, 0])
    assert path_in_words(tree, 2, row) == [
        "worst area + 7,314 × worst smoothness ≤ 1,831? Here 1,844: no",
        "So it is m (1 of 1 row)",
    ]
    with pytest.raises(DataError, match="reaches leaf 2"):
        path_in_words(tree, 1, row)
    with pytest.raises(DataError, match="not a leaf"):
        path_in_words(tree, 0, row)


def test_value_just_beyond_threshold_is_written_distinctly():
    tree = grow(
        DraftBranch(split=Threshold(feature=1, threshold=0.1234567), left=DraftLeaf(), right=DraftLeaf()),
        np.array([[0, 0.1234566, 0, 0]]),
        np.array([0], np.int32),
        schema=PLAIN,
        classes="bm",
    )
    words = path_in_words(tree, 1, np.array([0, 0.1234566, 0, 0]))
    assert words[0] == "worst smoothness ≤ 0.1234567? Here 0.1234566: yes"


@seeds(60)
def test_every_row_of_random_trees_has_a_path_in_words(seed):
    tree, matrix = random_tree(seed, rows=15)
    text = rules_text(tree)
    assert text.count("\n") == len(tree.nodes)
    for row, leaf in zip(matrix, tree.apply(matrix), strict=True):
        words = path_in_words(tree, int(leaf), row)
        path = tree.path_to(int(leaf))
        assert len(words) == len(path)
        for sentence, node in zip(words, path[:-1], strict=False):
            assert sentence.removesuffix(" here").endswith("yes" if naive_left(tree.nodes[node].split, row) else "no")


@pytest.mark.parametrize(
    ("side", "question", "way"),
    [
        (EmptySide.LEFT, "age ≤ 41.5, or empty?", "age ≤ 41.5, or empty? age was empty; empty cells go to yes here"),
        (EmptySide.RIGHT, "age ≤ 41.5? (empty: no)", "age ≤ 41.5? age was empty; empty cells go to no here"),
    ],
)
def test_words_say_where_empty_cells_go(side, question, way):
    schema = [ColumnSchema(name="age", kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN)]
    split = Threshold(feature=0, threshold=41.5, missing=side)
    draft = DraftBranch(split=split, left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    rows = np.array([[40.0], [50.0], [np.nan]])
    tree = grow(draft, rows, np.array([0, 1, 0], np.int32), schema=schema, classes=("no", "yes"))
    assert rules_text(tree).splitlines()[0] == question
    assert path_in_words(tree, int(tree.apply(rows)[2]), rows[2])[0] == way
    notes = place(tree).boxes[0].notes
    assert notes == (("empty: no",) if side is EmptySide.RIGHT else ())
    assert tree_outline(tree)["rule"] == question
    unseen = replace(split, missing_seen=False)
    draft = DraftBranch(split=unseen, left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, rows[:2], np.array([0, 1], np.int32), schema=schema, classes=("no", "yes"))
    assert rules_text(tree).splitlines()[0] == "age ≤ 41.5?", "no training row had an empty cell"


def test_question_whether_a_cell_is_empty_has_words():
    schema = [ColumnSchema(name="age", kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN)]
    draft = DraftBranch(split=Missing(feature=0), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    rows = np.array([[40.0], [np.nan]])
    tree = grow(draft, rows, np.array([1, 0], np.int32), schema=schema, classes=("no", "yes"))
    assert path_in_words(tree, 2, rows[0])[0] == "is age empty? Here 40: no"
    assert path_in_words(tree, 1, rows[1])[0] == "is age empty? Here empty: yes"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_python_code_reaches_the_same_leaf(block):
    for seed in range(30 * block, 30 * (block + 1)):
        tree, matrix = random_tree(seed, rows=30)
        scope: dict = {}
        exec(compile(to_python(tree), "tree", "exec"), scope)
        leaves = tree.apply(matrix)
        for row, leaf in zip(matrix, leaves, strict=True):
            record = cells(tree, row)
            assert scope["leaf"](record) == leaf
            assert scope["predict"](record) == tree.classes[tree.nodes[leaf].label]
            shares = tree.probabilities[leaf].tolist()
            assert scope["probabilities"](record) == dict(zip(tree.classes, shares, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_sql_reaches_the_same_leaf(block):
    for seed in range(30 * block, 30 * (block + 1)):
        tree, matrix = random_tree(seed, rows=30)
        names = ['"' + c.name.replace('"', '""') + '"' for c in tree.schema]
        kinds = ["TEXT" if c.kind is ColumnKind.CATEGORICAL else "REAL" for c in tree.schema]
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
        base = sqlite3.connect(":memory:")
        base.execute(f"CREATE TABLE rows_ ({columns})")
        marks = ", ".join("?" for _ in names)
        base.executemany(f"INSERT INTO rows_ VALUES ({marks})", [list(cells(tree, row).values()) for row in matrix])
        query = f"SELECT {to_sql(tree, 'leaf')}, {to_sql(tree)} FROM rows_ ORDER BY rowid"
        leaves = tree.apply(matrix)
        expected = [(int(v), tree.classes[tree.nodes[v].label]) for v in leaves]
        assert base.execute(query).fetchall() == expected


def test_an_empty_cell_is_its_own_category_in_code():
    column = ColumnSchema(
        name="odor",
        kind=ColumnKind.CATEGORICAL,
        categories=("almond", MISSING_CATEGORY),
        missing=MissingPolicy.CATEGORY,
    )
    draft = DraftBranch(split=Subset(feature=0, codes=(1,)), left=DraftLeaf(label=1), right=DraftLeaf(label=0))
    tree = grow(draft, np.zeros((1, 1)), np.zeros(1, np.int32), schema=[column], classes=("no", "yes"))
    scope: dict = {}
    exec(to_python(tree), scope)
    assert [scope["predict"](row) for row in ({}, {"odor": None}, {"odor": "almond"})] == ["yes", "yes", "no"]
    base = sqlite3.connect(":memory:")
    assert base.execute(f"SELECT {to_sql(tree)} FROM (SELECT NULL AS odor)").fetchone() == ("yes",)


def test_code_for_impossible_names_or_deep_trees_is_refused():
    null = [ColumnSchema(name="a\x00b", kind=ColumnKind.NUMERIC)]
    draft = DraftBranch(split=Threshold(feature=0, threshold=0.0), left=DraftLeaf(), right=DraftLeaf())
    with pytest.raises(DataError, match="null character"):
        to_sql(grow(draft, np.zeros((1, 1)), np.zeros(1, np.int32), schema=null, classes="a"))
    for _ in range(120):
        draft = DraftBranch(split=Threshold(feature=0, threshold=0.0), left=draft, right=DraftLeaf())
    deep = grow(draft, np.zeros((1, 1)), np.zeros(1, np.int32), schema=null, classes="a")
    for write in (to_python, to_sql):
        with pytest.raises(DataError, match="depth"):
            write(deep)


def test_classes_called_like_answers_are_told_from_them():
    draft = DraftBranch(split=Threshold(feature=0, threshold=75.0), left=DraftLeaf(), right=DraftLeaf())
    matrix = np.array([[70.0, 0, 0, 0], [80.0, 0, 0, 0], [90.0, 0, 0, 0]])
    tree = grow(draft, matrix, np.array([1, 0, 0], np.int32), schema=PLAIN, classes=("no", "yes"))
    assert rules_text(tree).splitlines()[1:] == ["  yes: class yes (1 of 1 row)", "  no: class no (2 of 2 rows)"]
    assert [child["node"]["label"] for child in tree_outline(tree)["children"]] == ["class yes", "class no"]
    assert replace(tree, classes=("no", "maybe")).class_words == ("class no", "class maybe")
    assert replace(tree, classes=("ill", "well")).class_words == ("ill", "well")


@pytest.mark.parametrize(
    ("name", "facts", "text"),
    [
        ("built", {"range": (1988.0, 2023.0), "decimals": 0}, "built ≤ 2000.5"),
        ("built", {"range": (1988.0, 2223.0), "decimals": 0}, "built ≤ 2,000.5"),
        ("built", {"range": (1988.5, 2023.0), "decimals": 1}, "built ≤ 2,000.5"),
        ("number", {"names_rows": RowNaming.LIKELY}, "number ≤ 2000.5"),
        ("built", {}, "built ≤ 2,000.5"),
    ],
)
def test_years_and_names_of_rows_have_no_comma(name, facts, text):
    column = ColumnSchema(name=name, kind=ColumnKind.NUMERIC, **facts)
    assert split_text(Threshold(feature=0, threshold=2000.5), (column,)) == text
