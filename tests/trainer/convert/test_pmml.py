"""PMML: octweb's documents are read again leaf by leaf, foreign ones keep their classes, and others are refused."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.random_trees import naive_leaf, random_tree
from trainer.convert import from_pmml
from trainer.convert.pmml import read_pmml
from trainer.errors import ConversionError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, EmptySide, MissingPolicy
from trainer.tree.export.pmml import to_pmml
from trainer.tree.nodes import DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Interval, Missing, Subset, Threshold


def moved(before: Tree, after: Tree, matrix: np.ndarray) -> np.ndarray:
    """Return the rows of `before` as `after` reads them: its columns, in its order, by its codes."""
    names = [c.name for c in before.schema]
    out = np.empty((len(matrix), len(after.schema)))
    for j, column in enumerate(after.schema):
        i = names.index(column.name)
        out[:, j] = matrix[:, i]
        assert column.categories == before.schema[i].categories
    return out


@pytest.mark.slow
@seeds(120)
def test_exported_documents_round_trip_leaf_for_leaf(seed):
    tree, matrix = random_tree(seed, learn=0.0 if seed % 2 else 0.6)
    content = to_pmml(tree, target="the class").encode()
    back = read_pmml(content)
    assert back.target in ("the class", "the class_")
    found = back.tree
    assert [v.counts for v in found.nodes] == [v.counts for v in tree.nodes]
    assert found.classes == tree.classes
    rows = matrix[~np.isinf(matrix).any(axis=1)]  # PMML has no infinity
    leaves = found.apply(moved(tree, found, rows))
    assert leaves.tolist() == [naive_leaf(tree, row) for row in rows]
    assert [found.nodes[i].label for i in leaves] == tree.predict(rows).tolist()


def test_missing_number_goes_to_default_child_or_is_refused():
    low, high = simple("lessOrEqual", 1), simple("greaterThan", 1)
    nodes = f'<Node id="1" score="yes">{low}</Node><Node id="2" score="no">{high}</Node>'
    for strategy, default, side in (
        ("defaultChild", "1", EmptySide.LEFT),
        ("defaultChild", "2", EmptySide.RIGHT),
        ("none", "1", EmptySide.REFUSE),
        ("lastPrediction", "1", EmptySide.REFUSE),
    ):
        text = document(f'<Node id="0" defaultChild="{default}"><True/>{nodes}</Node>')
        text = text.replace(b"<TreeModel ", b'<TreeModel missingValueStrategy="%s" ' % strategy.encode())
        tree = from_pmml(text)
        assert tree.nodes[0].split.missing is side
        assert tree.refused_columns == ((0,) if side is EmptySide.REFUSE else ())
        assert tree.schema[0].missing == ("drop" if side is EmptySide.REFUSE else "learn")
    asked = from_pmml(two('<SimplePredicate field="x" operator="isMissing"/>', "<True/>"))
    assert asked.nodes[0].split == Missing(feature=0)
    assert [asked.classes[k] for k in asked.predict(np.array([[np.nan, 0.0], [1.0, 0.0]]))] == ["yes", "no"]


def filled(fills: dict[str, str]) -> bytes:
    """Return a document whose sum of x and z counts an empty cell as a constant, if there is one."""
    parts = []
    for name, fill in fills.items():
        value = f'<FieldRef field="{name}"/>'
        if fill:
            missing = f'<Apply function="isMissing"><FieldRef field="{name}"/></Apply>'
            value = f'<Apply function="if">{missing}<Constant>{fill}</Constant>{value}</Apply>'
        parts.append(f'<Apply function="*"><Constant>1</Constant>{value}</Apply>')
    total = f'<Apply function="+">{"".join(parts)}</Apply>'
    field = f'<LocalTransformations><DerivedField name="s" optype="continuous" dataType="double">{total}</DerivedField></LocalTransformations>'
    text = two(simple("lessOrEqual", 5, "s"), "<True/>").decode()
    text = text.replace(
        "<DataDictionary>", '<DataDictionary><DataField name="z" optype="continuous" dataType="double"/>'
    )
    return (
        text.replace("<MiningSchema>", '<MiningSchema><MiningField name="z"/>')
        .replace("<Node>", f"{field}<Node>", 1)
        .encode()
    )


def test_sums_that_fill_empty_cells_answer_every_row():
    tree = from_pmml(filled({"x": "4", "z": "0.5"}))
    names = [column.name for column in tree.schema]
    assert [tree.schema[names.index(name)].fill for name in ("x", "z")] == [4.0, 0.5]
    rows = np.zeros((3, len(names)))
    rows[:, names.index("x")] = [np.nan, np.nan, 9]
    rows[:, names.index("z")] = [1, 2, np.nan]
    assert [tree.classes[k] for k in tree.predict(rows)] == ["yes", "no", "no"]


def test_sum_that_fills_one_column_of_two_is_refused():
    with pytest.raises(ConversionError, match="of some columns, but not of 'z'"):
        from_pmml(filled({"x": "4", "z": ""}))


def test_column_with_two_fills_is_refused():
    with pytest.raises(ConversionError, match=r"counts as 4\.0 in one sum and as 5\.0"):
        from_pmml(filled({"x": "4", "x ": "5"}).replace(b'"x "', b'"x"'))


def test_missing_category_round_trips():
    column = ColumnSchema(
        name="odor",
        kind=ColumnKind.CATEGORICAL,
        categories=("almond", MISSING_CATEGORY),
        missing=MissingPolicy.CATEGORY,
    )
    draft = DraftBranch(split=Subset(feature=0, codes=(1,)), left=DraftLeaf(label=1), right=DraftLeaf(label=0))
    tree = grow(draft, np.zeros((1, 1)), np.zeros(1, np.int32), schema=[column], classes=("no", "yes"))
    assert from_pmml(to_pmml(tree).encode()).schema == (column,)


HEAD = """<?xml version="1.0"?>
<PMML xmlns="http://www.dmg.org/PMML-4_2" version="4.2"><Header/>
<DataDictionary>
<DataField name="x" optype="continuous" dataType="{type}"/>
<DataField name="c" optype="categorical" dataType="string"><Value value="a"/><Value value="b c"/><Value value="d"/></DataField>
<DataField name="y" optype="categorical" dataType="string"><Value value="no"/><Value value="yes"/><Value value="perhaps"/></DataField>
</DataDictionary>
<TreeModel functionName="classification" {model}>
<MiningSchema><MiningField name="x"/><MiningField name="c"/><MiningField name="y" usageType="target"/></MiningSchema>
"""
TAIL = "</TreeModel></PMML>"


def document(nodes: str, *, model: str = "", type: str = "double") -> bytes:
    return (HEAD.format(model=model, type=type) + nodes + TAIL).encode()


def two(first: str, second: str, **more) -> bytes:
    return document(f'<Node><True/><Node score="yes">{first}</Node><Node score="no">{second}</Node></Node>', **more)


def simple(operator: str, value: str | float, field: str = "x") -> str:
    return f'<SimplePredicate field="{field}" operator="{operator}" value="{value}"/>'


def among(operator: str, words: str) -> str:
    return f'<SimpleSetPredicate field="c" booleanOperator="{operator}"><Array type="string">{words}</Array></SimpleSetPredicate>'


TESTS = {
    "lessOrEqual": lambda x, t: x <= t, "lessThan": lambda x, t: x < t, "greaterThan": lambda x, t: x > t,
    "greaterOrEqual": lambda x, t: x >= t, "equal": lambda x, t: x == t,
}  # fmt: skip
AFTER = {
    "lessOrEqual": "greaterThan",
    "lessThan": "greaterOrEqual",
    "greaterThan": "lessOrEqual",
    "greaterOrEqual": "lessThan",
    "equal": "notEqual",
}


@pytest.mark.parametrize("operator", TESTS)
@pytest.mark.parametrize("closed", [True, False])
def test_every_comparison_of_a_number_sends_every_double_its_way(operator, closed):
    for t in (0.1, -3.0, 0.0, 1e300):
        tree = from_pmml(two(simple(operator, t), simple(AFTER[operator], repr(t)) if closed else "<True/>"))
        for x in (t, np.nextafter(t, 9e307), np.nextafter(t, -9e307), t + 1, t - 1, 0.0, -0.0):
            label = tree.classes[int(tree.predict(np.array([[x, 0.0]]))[0])]
            assert (label == "yes") == TESTS[operator](x, t), (operator, t, x)
        if not closed:  # a missing value goes to the child without a test
            assert tree.classes[int(tree.predict(np.array([[np.nan, 0.0]]))[0])] == "no"


@pytest.mark.parametrize(
    ("first", "second", "yes"),
    [
        (simple("equal", "b c", "c"), "<True/>", {"b c"}),
        (simple("notEqual", "b c", "c"), "<True/>", {"a", "d"}),
        (simple("notEqual", "a", "c"), simple("equal", "a", "c"), {"b c", "d"}),
        (among("isIn", '"b c" d'), among("isNotIn", 'd "b c"'), {"b c", "d"}),
        (among("isNotIn", '"b c" d'), "<True/>", {"a"}),
        (f'<CompoundPredicate booleanOperator="or">{simple("equal", "a", "c")}{among("isIn", "d")}</CompoundPredicate>', "<True/>", {"a", "d"}),
        ("<False/>", "<True/>", set()),
    ],
)  # fmt: skip
def test_every_question_about_a_category(first, second, yes):
    tree = from_pmml(two(first, second))
    found = {word for code, word in enumerate(("a", "b c", "d")) if tree.predict(np.array([[0.0, code]]))[0] == 1}
    assert found == yes


def test_children_are_asked_in_order_and_last_score_answers():
    nodes = (
        f'<Node score="perhaps"><True/><Node score="no">{simple("lessOrEqual", 1)}</Node>'
        f'<Node score="yes">{simple("lessOrEqual", 2)}</Node><Node score="no">{among("isIn", "d")}</Node></Node>'
    )
    tree = from_pmml(document(nodes, model='noTrueChildStrategy="returnLastPrediction"'))
    rows = np.array([[1.0, 2], [2.0, 2], [3.0, 2], [3.0, 0]])
    assert [tree.classes[k] for k in tree.predict(rows)] == ["no", "yes", "no", "perhaps"]
    with pytest.raises(ConversionError, match=r"<Node> in line \d+ gives no prediction for rows that no child accepts"):
        from_pmml(document(nodes))


def test_single_precision_is_kept():
    tree = from_pmml(two(simple("lessOrEqual", "0.1"), simple("greaterThan", "0.1"), type="float"))
    for x in (0.1, float(np.float32(0.1)), 0.10000000149011613, 0.1000000052, 0.10000001):
        assert (tree.predict(np.array([[x, 0.0]]))[0] == 1) == (np.float32(x) <= np.float32(0.1))


def test_counts_and_missing_scores_come_from_the_shares():
    shares = '<ScoreDistribution value="no" recordCount="3"/><ScoreDistribution value="perhaps" recordCount="4"/>'
    tree = from_pmml(
        document(
            f'<Node><True/><Node>{simple("lessThan", 5)}{shares}</Node><Node score="no"><True/>{shares}</Node></Node>'
        )
    )
    assert [v.counts for v in tree.nodes] == [(6, 0, 8), (3, 0, 4), (3, 0, 4)]
    assert [v.label for v in tree.leaves] == [2, 0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "well-formed"),
        (b"<PMML version='4.4'>", "well-formed"),
        (b"<html/>", "not PMML"),
        (b"<PMML version='3.2'/>", "not PMML of version 4"),
        (b'<!DOCTYPE PMML [<!ENTITY a "b">]><PMML version="4.4">&a;</PMML>', "document type"),
        (b'<!DOCTYPE PMML SYSTEM "file:///etc/passwd"><PMML version="4.4"/>', "document type"),
        (b"<PMML version='4.4'>" + b"<a>" * 5000, "nested deeper than"),
        (b"<PMML version='4.4'><DataDictionary/><MiningModel/></PMML>", "<MiningModel>"),
        (two("<True/>", "<True/>").replace(b'"classification"', b'"regression"'), "regression"),
        (two("<True/>", "<True/>", model='missingValueStrategy="weightedConfidence"'), "weightedConfidence"),
        (two(simple("lessOrEqual", "abc"), "<True/>"), "<SimplePredicate>.*'abc'"),
        (two(simple("lessOrEqual", "inf"), "<True/>"), "finite"),
        (two(simple("notEqual", "1"), "<True/>"), "notEqual"),
        (two(simple("lessOrEqual", "a", "c"), "<True/>"), "compares the category 'c'"),
        (two(simple("lessOrEqual", "1", "z"), "<True/>"), "'z', which is not an active field"),
        (two(f'<CompoundPredicate booleanOperator="surrogate">{simple("lessOrEqual", 1)}</CompoundPredicate>', "<True/>"), "<CompoundPredicate>.*surrogate"),
        (two(simple("lessOrEqual", 1), simple("greaterThan", 2)), "no child accepts"),
        (two("<Whatever/>", "<True/>"), "0 predicates"),
        (document("<Node score='yes'>" + simple("lessThan", 1) + "</Node>"), "is the root"),
        (document("<Node><True/></Node>"), "neither a score"),
        (document("<Targets/><Node score='yes'><True/></Node>"), "<Targets>"),
        (two(among("isIn", '"open'), "<True/>"), "not closed"),
        (document("<Node score='yes'><True/><Regression/></Node>"), "<Regression>"),
    ],
)  # fmt: skip
def test_unsupported_features_are_refused_by_name(content, words):
    with pytest.raises(ConversionError, match=words):
        from_pmml(content)


def test_replacement_for_missing_values_is_refused():
    content = two(simple("lessOrEqual", 1), "<True/>").replace(
        b'<MiningField name="x"/>', b'<MiningField name="x" missingValueReplacement="3"/>'
    )
    with pytest.raises(ConversionError, match=r"<MiningField> in line \d+ replaces a missing 'x' by '3'"):
        from_pmml(content)


def test_a_very_deep_tree_is_refused_and_not_a_crash():
    nodes = "<Node><True/>" * 600 + '<Node score="yes"><True/></Node>' + "</Node>" * 600
    with pytest.raises(ConversionError, match="deeper than"):
        from_pmml(document(nodes))


@pytest.mark.slow
def test_jpmml_gives_the_same_classes(tmp_path):
    if shutil.which("java") is None or importlib.util.find_spec("jpmml_evaluator") is None:
        pytest.skip("needs Java and the package jpmml-evaluator")
    xs = [0.1, float(np.float32(0.1)), 0.10000000149011613, 0.1000000052, 0.10000001, 5.0]
    expected = {}
    for number, kind in enumerate(("double", "float")):
        for operator in ("lessOrEqual", "lessThan", "greaterThan"):
            content = two(simple(operator, "0.1"), simple(AFTER[operator], "0.1"), type=kind)
            name = f"{number}{operator}"
            (tmp_path / f"{name}.pmml").write_bytes(content)
            (tmp_path / f"{name}.rows.json").write_text(json.dumps([{"x": x, "c": "a"} for x in xs]))
            tree = from_pmml(content)
            expected[name] = [tree.classes[k] for k in tree.predict(np.array([[x, 0.0] for x in xs]))]
    reader = Path(__file__).parents[1] / "oracles" / "pmml_reader.py"
    process = subprocess.run([sys.executable, str(reader), str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr[-2000:]
    for name, own in expected.items():
        theirs = json.loads((tmp_path / f"{name}.out.json").read_text())
        assert [row["y"] for row in theirs] == own, name


def test_two_ends_are_interval_and_one_is_threshold():
    both = f'<CompoundPredicate booleanOperator="and">{simple("greaterThan", 1)}{simple("lessOrEqual", 2)}</CompoundPredicate>'
    assert from_pmml(two(both, "<True/>")).nodes[0].split == Interval(
        feature=0, low=1.0, high=2.0, missing=EmptySide.RIGHT
    )
    assert from_pmml(two(simple("greaterThan", 1), simple("lessOrEqual", "1.0"))).nodes[0].split == Threshold(
        feature=0, threshold=1.0
    )
