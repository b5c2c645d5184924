"""The browser's engine, run in node, agrees with the kernel and the Python search for counterfactuals."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess

import numpy as np
import pytest

from octweb.places import FILES
from tests.trainer.explain.flip_cases import CHOICES, random_case
from tests.trainer.random_trees import random_matrix, random_tree
from trainer.data.column_statistics import CONTINUOUS, describe_columns, is_described, rounded_unit, statistics
from trainer.data.parsing.column import rank_spellings
from trainer.data.parsing.values import plain_values
from trainer.data.parsing.words import MISSING_WORDS
from trainer.data.rows import parse_rows
from trainer.errors import RowError
from trainer.explain.around import both_ways
from trainer.explain.carried import tree_data
from trainer.explain.flip import Flipper
from trainer.explain.statistics import statistics_of_model, statistics_of_tree, step_above, step_at_most
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, MissingPolicy, UnknownPolicy, with_ranks
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.splits import Linear, Subset, Threshold

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")
PRELUDE = """
const E = require(process.argv[1]);
const num = (x) => x === "nan" ? NaN : x === "inf" ? Infinity : x === "-inf" ? -Infinity : x;
const out = (x) => Number.isNaN(x) ? "nan" : x === Infinity ? "inf" : x === -Infinity ? "-inf" : x;
let text = ""; process.stdin.on("data", (d) => { text += d; });
process.stdin.on("end", () => { const cases = JSON.parse(text); console.log(JSON.stringify(cases.map(work))); });
"""


def in_node(work: str, cases: list) -> list:
    """Return the results of the JavaScript function `work` for all cases."""
    process = subprocess.run(
        [NODE, "-e", f"{PRELUDE}\nfunction work(one) {{ {work} }}", "--", str(FILES / "static" / "tree_engine.js")],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout)


def cells(row, tree):
    return [_cell(float(row[j])) for j in tree.used_columns]


def _cell(value):
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf") if math.isinf(value) else value


def test_every_row_ends_in_the_leaf_of_the_kernel(count):
    cases = []
    wanted = []
    for seed in range(count):
        tree, _ = random_tree(seed)
        rows = random_matrix(np.random.default_rng(seed + 10_000), tree.schema, 250, holes=True)
        cases.append(
            {"tree": tree_data(tree, statistics_of_tree(tree)), "rows": [cells(tree_row(r, tree), tree) for r in rows]}
        )
        wanted.append(tree.apply(rows).tolist())
    assert in_node("return one.rows.map((r) => E.leaf(one.tree, r.map(num)))", cases) == wanted


def tree_row(row, tree):
    """Return the row with -1 for codes beyond the categories, which the engine sends the same way."""
    row = row.copy()
    for j, column in enumerate(tree.schema):
        if column.kind is ColumnKind.CATEGORICAL and row[j] >= len(column.categories):
            row[j] = -1.0
    return row


@pytest.mark.parametrize("rows", [True, False], ids=["with rows", "without rows"])
def test_unknown_value_that_the_contract_refuses_has_no_answer(rows):
    schema = (
        ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=("a", "b", "d"), unknown=UnknownPolicy.REFUSE),
    )
    draft = DraftBranch(split=Subset(feature=0, codes=(0,)), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, np.array([[0.0], [1.0]]), np.array([0, 1], np.int32), schema=schema, classes=("no", "yes"))
    data = tree_data(tree, statistics_of_tree(tree), rows=rows)
    assert data["columns"][0]["categories"] == ["a", "b", "d"]
    found = in_node("return ['a', 'd', 'x', ''].map((w) => E.read(one.columns[0], w))", [data])[0]
    assert [one["value"] for one in found] == [0, 2, None, None]  # JSON.stringify writes NaN as null
    assert "'x' is not a known category of 'c'" in found[2]["why"]
    assert "why" not in found[3]


CATEGORIES = (
    ("Red", "blue", "Größe", "1", "2.5"),
    ("true", "false", "maybe"),
    ("0", "1", "007", "7"),
    ("red", "Red", "green"),
    ("10-20", "it's", "a\u2014b", "-5"),
    ("caf\u00e9", " New  York ", "x\u200by", "1e3", "Σς", "kirli"),
)
WORDS = (
    "RED", " red ", "Blue", "GRÖSSE", "grösse", "1.0", "+1", "01", "1e0", "2.50", "True", "TRUE", "1", "0", "0.0", "7.0", "007", "07",
    "cafe\u0301", "CAF\u00c9", "new york", "NEW\u00a0YORK", "xy", "1000", "constructor", "", "NA", "other", "10\u201320", "IT\u2019S", "a-b", "A\u2011b", "\u22125", "\u22125.0", "it\u02bcs", "σσ", "\uff11", "KİRLİ", "KIRLI", "kırlı",
)  # fmt: skip


@pytest.mark.parametrize("categories", CATEGORIES)
def test_spellings_match_the_server(categories):
    """The standalone file maps each spelling to the same category as the server, and says so."""
    schema = (ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=categories, missing=MissingPolicy.LEARN),)
    draft = DraftBranch(split=Subset(feature=0, codes=(0,)), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, np.array([[0.0], [1.0]]), np.array([0, 1], np.int32), schema=schema, classes=("no", "yes"))
    data = tree_data(tree, statistics_of_tree(tree))
    (found,) = in_node(f"return {json.dumps(WORDS)}.map((w) => E.read(one.columns[0], w))", [data])
    parsed = parse_rows(schema, [0], [{"c": word} for word in WORDS])
    wanted = [None if math.isnan(code) else code for code in parsed.matrix[:, 0].tolist()]
    assert [own["value"] for own in found] == wanted
    read = [own for own in found if "is read as" in own.get("note", "")]
    assert len(read) == parsed.respelled.get("c", 0)


def test_missing_words_and_ranks_match_the_server():
    ranks = ("low", "none", "High")
    schema = with_ranks(
        (
            ColumnSchema(name="n", kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN),
            ColumnSchema(name="c", kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN),
        ),
        {"columns": {"c": {"ranks": ranks}}},
    )
    inner = DraftBranch(split=Threshold(feature=1, threshold=1.5), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    draft = DraftBranch(split=Threshold(feature=0, threshold=0.5), left=DraftLeaf(label=0), right=inner)
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 2.0]])
    tree = grow(draft, rows, np.array([0, 0, 1], np.int32), schema=schema, classes=("no", "yes"))
    assert tree.nodes[tree.nodes[0].right].split.text(schema) == "c is at most low"
    words = [*sorted(MISSING_WORDS), "NaT", "1", "2", "true", "HIGH", " low ", "1.5", "medium"]
    reading = {"columns": {"c": {"taken_for": "plain", "ranks": list(ranks), "spellings": rank_spellings(ranks, ())}}}
    wanted = [[_read_by_server(schema, reading, name, word) for name in ("n", "c")] for word in words]
    data = tree_data(tree, statistics_of_tree(tree))
    work = f"return {json.dumps(words)}.map((w) => one.columns.map((c) => out(E.read(c, w).value)))"
    assert in_node(work, [data]) == [wanted]


def _read_by_server(schema, reading, name, word):
    try:
        rows = plain_values(reading, [{name: word}])
        value = float(parse_rows(schema, (0, 1), rows).matrix[0, 0 if name == "n" else 1])
    except RowError:
        return None
    return _cell(value)


def test_public_questionnaire_matches_no_spelling():
    """Without training figures some categories are missing, so a spelling might belong to one of those."""
    schema = (ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=("Red", "red", "blue")),)
    draft = DraftBranch(split=Subset(feature=0, codes=(0,)), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, np.array([[0.0], [1.0]]), np.array([0, 1], np.int32), schema=schema, classes=("no", "yes"))
    data = tree_data(tree, statistics_of_tree(tree), rows=False)
    assert in_node("return E.read(one.columns[0], 'RED').value", [data]) == [-1]


def test_other_number_in_a_binary_column_is_compared():
    schema = (ColumnSchema(name="flag", kind=ColumnKind.BINARY),)
    draft = DraftBranch(split=Threshold(feature=0, threshold=0.5), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, np.array([[0.0], [1.0]]), np.array([0, 1], np.int32), schema=schema, classes=("no", "yes"))
    data = tree_data(tree, statistics_of_tree(tree))
    (found,) = in_node("return ['2', '-1', '1'].map((w) => E.predictCells(one, [w]))", [data])
    assert [tree.nodes[own["leaf"]].label for own in found] == [1, 0, 1]
    assert ["neither 0 nor 1" in "".join(own["notes"]) for own in found] == [True, True, False]


def test_out_of_range_numbers_match_the_server():
    """Codes are never outside the range, and without training figures the range stays hidden."""
    rows = np.append(np.linspace(-9, 94, 40), -99.0)[:, None]
    schema = (ColumnSchema(name="score", kind=ColumnKind.NUMERIC, special=(-99.0, -98.0)),)
    draft = DraftBranch(split=Threshold(feature=0, threshold=50.0), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    labels = (rows[:, 0] > 50).astype(np.int32)
    tree = describe_columns(grow(draft, rows, labels, schema=schema, classes=("no", "yes")), rows)
    words = ["140", "-55", "-99", "-98", "-9", "94", "94.5", "20"]
    data = [tree_data(tree, statistics_of_tree(tree)), tree_data(tree, statistics_of_tree(tree), rows=False)]
    found, hidden = in_node(f"return {json.dumps(words)}.map((w) => E.read(one.columns[0], w).note ?? '')", data)
    outside = tree.outside(np.array([[float(word)] for word in words]))[:, 0]
    assert [
        note == "A value of 'score' lies outside the training range, −10 to 94." for note in found
    ] == outside.tolist()
    assert not any(hidden)


@pytest.mark.parametrize("holes", [False, True], ids=["full rows", "empty cells"])
@pytest.mark.parametrize("sums", [False, True], ids=["one column", "weighted sums"])
def test_flips_are_those_of_the_server(sums, holes, count):
    """Without sums always; with sums wherever one changed column is enough, and nothing else is called proved."""
    cases = []
    wanted = []
    for seed in range(count):
        tree, matrix, *_ = random_case(seed, sums=sums, holes=holes)
        rng = np.random.default_rng(seed)
        known = statistics(tree.schema, matrix)
        allowed = [CHOICES[int(rng.integers(3 if c.kind is ColumnKind.CATEGORICAL else 5))] for c in tree.schema]
        allowed = [
            CHOICES[0] if c.kind is ColumnKind.CATEGORICAL else a for c, a in zip(tree.schema, allowed, strict=True)
        ]
        permissions = [
            {"up": allowed[j].up, "down": allowed[j].down, "whole": allowed[j].whole, "codes": allowed[j].codes}
            for j in tree.used_columns
        ]
        flipper = Flipper(tree, known, allowed)
        for row in matrix[:4]:
            found = flipper.find(row)
            cases.append({"tree": tree_data(tree, known), "row": cells(row, tree), "permissions": permissions})
            wanted.append((tree, found))
    answers = in_node(
        "const f = E.flip(one.tree, one.row.map(num), { permissions: one.permissions }); "
        "return { all: [f.flip, ...f.alternatives].filter(Boolean).map((x) => ({ ...x, row: x.row.map(out) })), reason: f.reason }",
        cases,
    )
    compared = 0
    for (tree, found), answer in zip(wanted, answers, strict=True):
        flips = [f for f in (found.flip, *found.alternatives) if f is not None]
        if sums and not (flips and len(flips[0].columns) == 1):
            # all leaves with the wanted answer lie below splits of one column only
            if any(f["proved"] for f in answer["all"]):
                assert (answer["all"][0]["leaf"], len(answer["all"][0]["columns"])) == (
                    flips[0].leaf,
                    len(flips[0].columns),
                )
                assert answer["all"][0]["distance"] == pytest.approx(flips[0].distance, rel=1e-12)
            continue
        compared += 1
        assert [f["leaf"] for f in answer["all"][: 1 if sums else 4]] == [f.leaf for f in flips[: 1 if sums else 4]]
        for own, other in zip(flips[: 1 if sums else 4], answer["all"], strict=False):
            assert other["distance"] == pytest.approx(own.distance, rel=1e-12)
            assert other["row"] == cells(own.row, tree)
            assert other["proved"] == own.proved
    assert compared > len(cases) / 10


@pytest.mark.parametrize("allowed", [False, True], ids=["without rows", "with rows"])
def test_page_without_rows_shows_the_change_of_the_server(allowed, count):
    """Steps and units come from the model file, so hidden training figures must not change the result."""
    cases = []
    wanted = []
    for seed in range(count):
        tree, matrix, *_ = random_case(seed, sums=False)
        tree = describe_columns(tree, matrix)
        flipper = Flipper(tree, statistics_of_model(tree, matrix))
        page = tree_data(tree, statistics_of_model(tree), rows=allowed)
        if not allowed and names_all_categories(tree, page):
            continue  # the page offers "another one", but the server knows that there is none
        for row in matrix[:4]:
            cases.append({"tree": page, "row": cells_of_page(row, tree, page)})
            wanted.append((tree, page, flipper.find(row).flip))
    answers = in_node("return E.flip(one.tree, one.row.map(num)).flip", cases)
    flips = 0
    for (tree, page, flip), answer in zip(wanted, answers, strict=True):
        assert (flip is None) == (answer is None)
        if flip is None:
            continue
        flips += 1
        assert answer["distance"] == pytest.approx(flip.distance, rel=1e-12)
        assert [tree.used_columns[at] for at in answer["columns"]] == list(flip.columns)
        assert [_cell(v) for v in answer["row"]] == cells_of_page(flip.row, tree, page)
    assert flips > count


def names_all_categories(tree, page):
    """Return whether some column of a page lists all categories to which a row may change."""
    columns = zip(page["columns"], tree.used_columns, strict=True)
    return any(
        set(tree.schema[j].categories) <= {*column["categories"], MISSING_CATEGORY}
        for column, j in columns
        if "categories" in column
    )


def cells_of_page(row, tree, page):
    """Return the row in the codes of a page that names only some categories."""
    found = []
    for column, j in zip(page["columns"], tree.used_columns, strict=True):
        value = float(row[j])
        if "categories" not in column:
            found.append(_cell(value))
            continue
        names = tree.schema[j].categories
        name = names[int(value)] if 0 <= value < len(names) else None
        known = column["categories"]
        found.append(known.index(name) if name in known else column.get("other", -1))
    return found


def test_model_file_keeps_steps_and_units_of_its_columns():
    tree, matrix, *_ = random_case(3, sums=False)
    tree = describe_columns(tree, matrix)
    for column, own in zip(tree.schema, statistics(tree.schema, matrix), strict=True):
        again = ColumnSchema.from_json(column.to_json())
        assert (again.decimals, again.change_unit) == (column.decimals, column.change_unit)
        if column.kind is not ColumnKind.CATEGORICAL:
            assert column.decimals == (CONTINUOUS if own.decimals is None else own.decimals)
            assert column.change_unit == rounded_unit(own.scale)
    assert is_described(tree)
    for own, other in zip(statistics_of_model(tree), statistics_of_model(tree, matrix), strict=True):
        assert (own.scale, own.decimals) == (other.scale, other.decimals)


def test_steps_of_columns_are_exact():
    rng = np.random.default_rng(4)
    bounds = [*(rng.normal(size=300) * 10.0 ** rng.integers(-8, 9, 300)).tolist(), *(k / 10 for k in range(-30, 30))]
    cases = [[b, int(d)] for b, d in zip(bounds, rng.integers(0, 13, len(bounds)), strict=True)]
    answers = in_node("return [E.stepAtMost(one[0], one[1]), E.stepAbove(one[0], one[1])]", cases)
    assert answers == [[step_at_most(b, d), step_above(b, d)] for b, d in cases]


def test_flip_counts_on_no_sum_of_unknown_columns():
    """Another town leads to a sum of unknown columns, so changing the town alone guarantees no other answer."""
    schema = (
        ColumnSchema(name="town", kind=ColumnKind.CATEGORICAL, categories=("north", "south")),
        ColumnSchema(name="income", kind=ColumnKind.NUMERIC),
        ColumnSchema(name="debt", kind=ColumnKind.NUMERIC),
    )
    both = Linear(features=(1, 2), coefficients=(1.0, 1.0), threshold=5.0, levels=(-1, -1))
    south = DraftBranch(split=both, left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    draft = DraftBranch(split=Subset(feature=0, codes=(0,)), left=DraftLeaf(label=0), right=south)
    matrix = np.array([[0, 1, 1], [1, 1, 1], [1, 5, 5]], float)
    tree = grow(draft, matrix, np.array([0, 0, 1], np.int32), schema=schema, classes=("no", "yes"))
    data = tree_data(tree, statistics_of_tree(tree))
    work = "const f = E.flip(one.tree, one.row.map(num), { fixed: new Set(one.fixed) }); return [f.flip && f.flip.row.map(out), f.reason]"
    unknown, known = in_node(
        work, [{"tree": data, "row": [0, "nan", "nan"], "fixed": [1, 2]}, {"tree": data, "row": [0, 3, 3], "fixed": []}]
    )
    assert unknown[0] is None
    assert "depend on columns that were not asked" in unknown[1]
    assert known[0] == [1, 3, 3]


def test_page_without_permission_has_no_training_figures():
    tree, matrix = random_tree(5)
    text = json.dumps(tree_data(tree, statistics(tree.schema, matrix), rows=False))
    assert '"r":' not in text
    assert '"c":' not in text
    assert all(c.get("scale", 1.0) == 1.0 for c in json.loads(text)["columns"])


def test_unnamed_categories_are_merged_and_routed_as_by_kernel(count):
    cases = []
    wanted = []
    joined = 0
    for seed in range(count):
        tree, _ = random_tree(seed + 40)
        rows = random_matrix(np.random.default_rng(seed + 20_000), tree.schema, 100, holes=False)
        told = tree_data(tree, statistics_of_tree(tree), rows=False)
        for column, j in zip(told["columns"], tree.used_columns, strict=True):
            names = tree.schema[j].categories
            if not names:
                continue
            at = [column["categories"].index(n) if n in column["categories"] else column["other"] for n in names]
            joined += at.count(column["other"]) > 1
            rows[:, j] = np.array(at)[rows[:, j].astype(int)]
        own = random_matrix(np.random.default_rng(seed + 20_000), tree.schema, 100, holes=False)
        cases.append({"tree": told, "rows": [cells(row, tree) for row in rows]})
        wanted.append(tree.apply(own).tolist())
    assert in_node("return one.rows.map((r) => E.leaf(one.tree, r.map(num)))", cases) == wanted
    assert joined > count / 10


def test_questionnaire_asks_only_needed_columns_like_the_kernel(count):
    """Every asked column is on the way, never more questions than promised. Unknown answers go the way of empty cells where training rows
    took one, and else both ways.
    """
    cases = []
    wanted = []
    for seed in range(count):
        tree, matrix = random_tree(seed, holes=False)
        rng = np.random.default_rng(seed)
        for row in matrix[:3]:
            unknown = [int(at) for at in np.flatnonzero(rng.random(len(tree.used_columns)) < (0.3 if seed % 2 else 0))]
            own = tree_row(row, tree)
            cases.append(
                {"tree": tree_data(tree, statistics(tree.schema, matrix)), "row": cells(own, tree), "open": unknown}
            )
            hidden = [tree.used_columns[at] for at in unknown]
            wanted.append((tree, own, hidden))
    answers = in_node(
        """
        global.TreeEngine = E; const Q = require(process.argv[1].replace("tree_engine", "questionnaire"));
        const given = new Map(), most = [];
        for (let ask = Q.next(one.tree, given); ask; ask = Q.next(one.tree, given)) {
          most.push(given.size + Q.most(one.tree, given));
          given.set(ask.column, one.open.includes(ask.column) ? "unknown" : one.row[ask.column]);
        }
        return { asked: [...given.keys()], most, places: Q.frontier(one.tree, given).places.map((p) => [p.at, p.weight]) };
        """,
        cases,
    )
    for (tree, row, unknown), answer in zip(wanted, answers, strict=True):
        asked = [tree.used_columns[at] for at in answer["asked"]]
        assert len(asked) == len(set(asked))
        # following both branches may need more questions, so this holds only without unknown answers
        if not set(unknown) & set(asked):
            assert all(later <= earlier for earlier, later in itertools.pairwise([*answer["most"], len(asked)]))
        shares = [0.0] * len(tree.classes)
        for leaf, weight in answer["places"]:
            shares[tree.nodes[leaf].label] += weight
        assert shares == pytest.approx(both_ways(tree, row, unknown), abs=1e-12)
        if not set(unknown) & set(asked):
            assert [leaf for leaf, _ in answer["places"]] == tree.apply(row.reshape(1, -1)).tolist()
            path = tree.path_to(answer["places"][0][0])
            assert set(asked) == {f for v in path if tree.nodes[v].split is not None for f in tree.nodes[v].split.used}


@pytest.mark.parametrize("threshold", [3.0, 0.1, 1234.5678, -2.00001])
def test_printed_sum_keeps_its_order_to_the_threshold(threshold):
    """Sums just above, at and just below the threshold are written and read again."""
    values = [threshold + d for d in (-1e-3, -1e-9, 0.0, 1e-9, 1e-3)]
    cases = [{"test": {"s": [[0, -1, 1.0]], "h": threshold}, "row": [value]} for value in values]
    shown = [float(text.replace("−", "-")) for text in in_node("return E.sumText(one.test, one.row);", cases)]
    for value, text in zip(values, shown, strict=True):
        assert (text < threshold, text == threshold) == (value < threshold, value == threshold)
