"""Trees as JavaScript, C, Java, R, spreadsheet formula and DMN send each row to the tree's leaf."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import os
import shutil
import sqlite3
import subprocess
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.trainer.random_trees import cells, random_matrix, random_tree
from trainer.errors import DataError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, EmptySide, MissingPolicy, UnknownPolicy
from trainer.tree.export import c, dmn, excel, r
from trainer.tree.export.code import to_python, to_sql
from trainer.tree.export.java import to_java
from trainer.tree.export.javascript import to_javascript
from trainer.tree.export.onnx import to_onnx
from trainer.tree.export.pmml import to_pmml
from trainer.tree.nodes import DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Interval, Linear, Missing, Subset, Threshold
from trainer.tree.splits.base import EMPTY

ROWS = 25
MOST = 40


def runtime(*names):
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


def run(command, **options):
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout


def cases(count):
    """Return trees with all kinds of splits, and rows with empty cells, unknown categories and infinities.

    Some of the trees have a category for missing values.
    """
    found = []
    for seed in range(count):
        tree, _ = random_tree(seed)
        if seed % 2:
            schema = tuple(
                ColumnSchema(name=k.name, kind=k.kind, categories=k.categories, missing=MissingPolicy.CATEGORY)
                if MISSING_CATEGORY in k.categories
                else k
                for k in tree.schema
            )
            tree = Tree(schema=schema, classes=tree.classes, nodes=tree.nodes)
        rows = random_matrix(np.random.default_rng(seed + 1000), tree.schema, ROWS, holes=True)
        for j, column in enumerate(tree.schema):  # a program that reads rows does the same
            if column.missing is MissingPolicy.CATEGORY:
                rows[np.isnan(rows[:, j]), j] = column.categories.index(MISSING_CATEGORY)
        found.append((tree, rows))
    return found


def records(tree, rows):
    """Return the rows as users write them. The category for missing values is an empty cell every second time."""
    out = []
    for i, row in enumerate(rows):
        record = cells(tree, row)
        for column in tree.schema:
            empty = column.missing is MissingPolicy.CATEGORY and record[column.name] == MISSING_CATEGORY and i % 2
            record[column.name] = None if empty else record[column.name]
        out.append(record)
    return out


def coded(value):
    """Return a cell as one line: N and a number, T and a text in base64, or a dash."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return "T" + base64.b64encode(value.encode()).decode()
    return "N" + ("Infinity" if value == math.inf else "-Infinity" if value == -math.inf else repr(value))


def test_javascript_in_node(count, tmp_path):
    runtime("node")
    found = cases(min(count, MOST))
    lines = []
    for k, (tree, rows) in enumerate(found):
        (tmp_path / f"t{k}.mjs").write_text(to_javascript(tree), encoding="utf-8")
        data = json.dumps(
            [{n: {"inf": v} if v in (math.inf, -math.inf) else v for n, v in x.items()} for x in records(tree, rows)]
        )
        data = data.replace('{"inf": Infinity}', "Infinity").replace('{"inf": -Infinity}', "-Infinity")
        lines.append(
            f'import * as t{k} from "./t{k}.mjs"; out.push({data}.map((r) => [t{k}.leaf(r), t{k}.predict(r), t{k}.probabilities(r)]));'
        )
    script = "const out = [];\n" + "\n".join(lines) + "\nconsole.log(JSON.stringify(out));"
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    for (tree, rows), answers in zip(found, json.loads(run(["node", str(tmp_path / "run.mjs")])), strict=True):
        leaves = tree.apply(rows)
        assert [a[0] for a in answers] == leaves.tolist()
        assert [a[1] for a in answers] == [tree.classes[k] for k in tree.labels[leaves]]
        assert [a[2] for a in answers] == [
            [[n, p] for n, p in zip(tree.classes, shares, strict=True)]
            for shares in tree.probabilities[leaves].tolist()
        ]


def test_c_with_gcc(count, tmp_path):
    runtime("gcc")
    found = cases(min(count, MOST))
    main = ["#include <stdio.h>"]
    body = []
    for k, (tree, rows) in enumerate(found):
        (tmp_path / f"t{k}.h").write_text(c.to_c(tree, f"t{k}"), encoding="utf-8")
        main.append(f'#include "t{k}.h"')
        for record in records(tree, rows):
            values = [record[tree.schema[j].name] for j in tree.used_columns]
            body.append(
                f"{{ octweb_cell row[] = {{{', '.join(map(c_cell, values)) or '{0, 0}'}}}; "
                f'printf("%d %s\\n", t{k}_leaf(row), t{k}_predict(row)); }}'
            )
    (tmp_path / "main.c").write_text("\n".join([*main, "int main(void) {", *body, "return 0; }"]), encoding="utf-8")
    strict = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-parentheses",
        "-Wno-unused-function",
        "-O1",
    ]
    run(["gcc", *strict, "-o", str(tmp_path / "main"), str(tmp_path / "main.c"), "-lm"])
    lines = iter(run([str(tmp_path / "main")]).splitlines())
    for tree, rows in found:
        for leaf in tree.apply(rows):
            assert next(lines) == f"{leaf} {tree.classes[tree.labels[leaf]]}"


def c_cell(value):
    if value is None:
        return "{NAN, NULL}"
    if isinstance(value, str):
        return f"{{NAN, {c.quote(value)}}}"
    return "{%s, NULL}" % ("HUGE_VAL" if value == math.inf else "-HUGE_VAL" if value == -math.inf else repr(value))


JAVA = """
import java.nio.charset.StandardCharsets; import java.nio.file.*; import java.util.*;
public class Run { public static void main(String[] a) throws Exception {
  for (String line : Files.readAllLines(Paths.get(a[0]))) {
    String[] parts = line.split(" ", -1); Map<String, Object> row = new HashMap<>();
    for (int i = 1; i + 1 < parts.length; i += 2) row.put(text(parts[i]), cell(parts[i + 1]));
    System.out.println(leaf(Integer.parseInt(parts[0]), row)); } }
  static String text(String s) { return new String(Base64.getDecoder().decode(s), StandardCharsets.UTF_8); }
  static Object cell(String s) { return s.equals("-") ? null : s.charAt(0) == 'N' ? (Object) Double.parseDouble(s.substring(1)) : text(s.substring(1)); }
  static int leaf(int k, Map<String, Object> row) { switch (k) { %s default: return -1; } } }
"""


@pytest.mark.slow
def test_java_with_javac(count, tmp_path):
    runtime("java", "javac")
    found = cases(min(count, MOST))
    lines = []
    for k, (tree, rows) in enumerate(found):
        (tmp_path / f"T{k}.java").write_text(to_java(tree, f"T{k}"), encoding="utf-8")
        for record in records(tree, rows):
            parts = [f"{base64.b64encode(name.encode()).decode()} {coded(v)}" for name, v in record.items()]
            lines.append(" ".join([str(k), *parts]))
    calls = "".join(f"case {k}: return T{k}.leaf(row); " for k in range(len(found)))
    (tmp_path / "Run.java").write_text(JAVA % calls, encoding="utf-8")
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run(["javac", "-encoding", "UTF-8", "-d", str(tmp_path), *map(str, tmp_path.glob("*.java"))])
    answers = run(["java", "-cp", str(tmp_path), "Run", str(tmp_path / "rows.txt")]).split()
    assert list(map(int, answers)) == [int(leaf) for tree, rows in found for leaf in tree.apply(rows)]


def test_r_in_r(count, tmp_path):
    runtime("Rscript")
    found = cases(min(count, MOST))
    script = []
    for k, (tree, rows) in enumerate(found):
        (tmp_path / f"t{k}.R").write_text(r.to_r(tree), encoding="utf-8")
        script.append(f'source("{tmp_path}/t{k}.R")')
        for record in records(tree, rows):
            values = ", ".join(f"`{at}` = {r_cell(v)}" for at, v in enumerate(record.values()))
            names = ", ".join(map(r.quote, record))
            script.append(f"cat(leaf(setNames(list({values}), c({names}))), '\\n')")
    (tmp_path / "run.R").write_text("\n".join(script), encoding="utf-8")
    answers = run(["Rscript", "--vanilla", str(tmp_path / "run.R")]).split()
    assert list(map(int, answers)) == [int(leaf) for tree, rows in found for leaf in tree.apply(rows)]


def r_cell(value):
    return "NA" if value is None else r.quote(value) if isinstance(value, str) else r.literal(value)


def sheet_tree(seed):
    """Return a tree over columns as they occur in a sheet: decimals of few digits, and sums that no row nearly reaches.

    With an odd seed, the splits of the first two columns have sides for empty cells.
    """
    rng = np.random.default_rng(seed)
    learns = seed % 2 == 1
    policy = MissingPolicy.LEARN if learns else MissingPolicy.DROP
    schema = (
        ColumnSchema(name="whole", kind=ColumnKind.NUMERIC, missing=policy, fill=-2.5 if learns else None),
        ColumnSchema(name="=tenths", kind=ColumnKind.NUMERIC, missing=policy, fill=0.4 if learns else None),
        ColumnSchema(name="yes or no", kind=ColumnKind.BINARY),
        ColumnSchema(name='say "hue"', kind=ColumnKind.CATEGORICAL, categories=("red", "Red", 'say "x"', "7", "", MISSING_CATEGORY), missing=MissingPolicy.CATEGORY),
        ColumnSchema(name="town", kind=ColumnKind.CATEGORICAL, categories=("a", "b", "größe")),
    )  # fmt: skip
    rows = np.column_stack(
        [
            rng.integers(-9, 10, 60),
            rng.integers(-30, 31, 60) / 10,
            rng.integers(0, 2, 60),
            rng.integers(0, 6, 60),
            rng.integers(0, 3, 60),
        ]
    ).astype(float)

    def side():
        return EmptySide(rng.choice(["left", "right"]))

    def split():
        found = present_split()
        if isinstance(found, Subset) or not learns or 2 in found.used:
            return found
        if not isinstance(found, Linear):
            return Missing(feature=found.feature) if rng.random() < 0.2 else found.with_empty(side())
        if rng.random() < 0.5:
            return found.with_empty(side())
        return Linear(
            features=(*found.features, 0),
            coefficients=(*found.coefficients, 3.0),
            threshold=found.threshold,
            levels=(*found.levels, EMPTY),
            fills=(-2.5, 0.4, math.nan, math.nan),
            missing=EmptySide.FILL,
        )

    def present_split():
        kind = rng.integers(4)
        if kind == 0:
            j = int(rng.integers(3))
            return Threshold(feature=j, threshold=float(rng.choice(rows[:, j])))
        if kind == 1:
            low, high = sorted(rng.choice(rows[:, 1], 2).tolist())
            return Interval(feature=1, low=low if rng.random() < 0.7 else -math.inf, high=high)
        if kind == 2:
            j = int(rng.integers(3, 5))
            size = len(schema[j].categories)
            return Subset(feature=j, codes=tuple(int(k) for k in np.flatnonzero(rng.random(size) < 0.5)))
        return Linear(
            features=(0, 1, 3), coefficients=(1.0, -2.5, 4.0), threshold=0.03, levels=(-1, -1, int(rng.integers(6)))
        )

    def draft(depth):
        if depth == 0 or rng.random() < 0.1:
            return DraftLeaf()
        return DraftBranch(split=split(), left=draft(depth - 1), right=draft(depth - 1))

    tree = grow(draft(4), rows, rng.integers(0, 2, 60).astype(np.int32), schema=schema, classes=("no", 'y"es'))
    rows[::5, 0] = np.nan
    rows[1::6, 1] = np.nan
    rows[1::7, 4] = np.nan
    rows[2::9, 4] = 3.0  # an unknown category
    return tree, rows


def sheet_value(value):
    return "" if value is None else value if isinstance(value, str) else repr(value).removesuffix(".0")


def test_the_formula_in_libreoffice(tmp_path):
    runtime("soffice")
    found = [sheet_tree(seed) for seed in range(12)]
    for k, (tree, rows) in enumerate(found):
        with (tmp_path / f"s{k}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            for i, record in enumerate(records(tree, rows), start=1):
                values = [sheet_value(record[tree.schema[j].name]) for j in tree.used_columns]
                writer.writerow([*values, "=" + excel.formula(tree, i, leaf=True)])
    filters = "CSV:44,34,UTF8,1,,0,false,true,false,false"
    out = tmp_path / "out"
    run(
        [
            "soffice",
            "--headless",
            f"-env:UserInstallation=file://{tmp_path}/profile",
            f"--infilter={filters}",
            "--convert-to",
            "csv:Text - txt - csv (StarCalc):44,34,76",
            "--outdir",
            str(out),
            *(str(tmp_path / f"s{k}.csv") for k in range(len(found))),
        ],
    )
    for k, (tree, rows) in enumerate(found):
        answers = [int(line[-1]) for line in csv.reader((out / f"s{k}.csv").open(encoding="utf-8"))]
        own = [tree.apply(_blank(tree, rows))[i] for i in range(len(rows))]
        assert answers == own, k


def _blank(tree, rows):
    """Replace empty texts. In a CSV file they are empty cells, which are the category for missing values."""
    rows = rows.copy()
    column = next(j for j, s in enumerate(tree.schema) if MISSING_CATEGORY in s.categories)
    rows[rows[:, column] == tree.schema[column].categories.index(""), column] = len(tree.schema[column].categories) - 1
    return rows


FEEL = """
const { evaluate } = require(process.argv[1]);
let text = ""; process.stdin.on("data", (d) => { text += d; });
process.stdin.on("end", () => console.log(JSON.stringify(JSON.parse(text).map(({ tests, rows }) =>
  rows.map((row) => tests.map((test) => { const f = evaluate(test, row); return f.value === undefined ? f : f.value; }))))));
"""


def table_of(document):
    """Return the questions and rules of a decision table."""
    ns = {"d": dmn.NAMESPACE}
    table = ET.fromstring(document).find(".//d:decisionTable", ns)
    tests = [e.text for e in table.findall("d:input/d:inputExpression/d:text", ns)]
    rules = [
        (
            [e.text for e in rule.findall("d:inputEntry/d:text", ns)],
            [e.text for e in rule.findall("d:outputEntry/d:text", ns)],
        )
        for rule in table.findall("d:rule", ns)
    ]
    return table.get("hitPolicy"), tests, rules


def test_the_decision_table_in_feelin():
    """feelin is an interpreter of FEEL for node. OCTWEB_FEELIN is the folder of its package."""
    runtime("node")
    folder = os.environ.get("OCTWEB_FEELIN", "")
    if not Path(folder, "package.json").exists():
        pytest.skip("feelin is not installed: npm install feelin, OCTWEB_FEELIN=…/node_modules/feelin")
    found = [sheet_tree(seed) for seed in range(12)]
    work = []
    for tree, rows in found:
        _, tests, _ = table_of(dmn.to_dmn(tree))
        data = [{dmn.variable(j): x[c.name] for j, c in enumerate(tree.schema)} for x in records(tree, rows)]
        work.append({"tests": tests, "rows": data})
    answers = json.loads(run(["node", "-e", FEEL, "--", folder], input=json.dumps(work)))
    for (tree, rows), given in zip(found, answers, strict=True):
        _, _, rules = table_of(dmn.to_dmn(tree))
        for leaf, truths in zip(tree.apply(rows), given, strict=True):
            assert all(t in (True, False) for t in truths)
            words = ["true" if t else "false" for t in truths]
            first = next(out for cells, out in rules if all(a in ("-", w) for a, w in zip(cells, words, strict=True)))
            assert first == [json.dumps(tree.classes[tree.labels[leaf]], ensure_ascii=False), str(leaf)]


def test_rules_of_the_decision_table_are_paths_of_the_tree():
    for seed in range(20):
        tree, _ = random_tree(seed)
        policy, tests, rules = table_of(dmn.to_dmn(tree))
        assert (policy, len(tests), len(rules)) == ("FIRST", len(tree.branches), tree.n_leaves)
        at = [v.id for v in tree.branches]
        for leaf, (row, out) in zip(tree.leaves, rules, strict=True):
            ways = {a: "true" if b == tree.nodes[a].left else "false" for a, b in pairwise(tree.path_to(leaf.id))}
            assert row == [ways.get(v, "-") for v in at]
            assert out == [json.dumps(tree.classes[leaf.label], ensure_ascii=False), str(leaf.id)]


def test_a_sheet_of_two_lines_with_names_that_are_no_formulas():
    tree, _ = sheet_tree(1)
    head, row = csv.reader(io.StringIO(excel.to_excel(tree, target="+answer")))
    assert head[-1] == "'+answer"
    assert "'=tenths" in head
    assert row[-1].startswith("=")
    assert not any(row[:-1])


def test_tree_unsupported_by_language_is_refused():
    def one(name="x", threshold=0.5):
        schema = (ColumnSchema(name=name, kind=ColumnKind.NUMERIC),)
        draft = DraftBranch(
            split=Threshold(feature=0, threshold=threshold), left=DraftLeaf(label=0), right=DraftLeaf(label=1)
        )
        return grow(draft, np.array([[0.0], [1.0]]), np.array([0, 1], np.int32), schema=schema, classes=("a", "b"))

    for write in (c.to_c, r.to_r):
        with pytest.raises(DataError, match="null character"):
            write(one(name="a\x00b"))
    with pytest.raises(DataError, match="control character"):
        dmn.to_dmn(one(name="a\x00b"))
    with pytest.raises(DataError, match="15 digits"):
        excel.to_excel(one(threshold=0.1 + 0.2))
    deep = DraftLeaf(label=0)
    rows = np.arange(100.0).reshape(-1, 1)
    for k in range(95):
        deep = DraftBranch(split=Threshold(feature=0, threshold=float(k)), left=DraftLeaf(label=1), right=deep)
    tree = grow(
        deep,
        rows,
        np.zeros(100, np.int32),
        schema=(ColumnSchema(name="x", kind=ColumnKind.NUMERIC),),
        classes=("a", "b"),
    )
    for write in (to_javascript, to_java, c.to_c, r.to_r, excel.to_excel):
        with pytest.raises(DataError, match="depth 95"):
            write(tree)


def refusing_tree():
    """Return a tree on a town and a number that refuses unknown towns."""
    town = ColumnSchema(
        name="town",
        kind=ColumnKind.CATEGORICAL,
        categories=("north", "söuth"),
        missing=MissingPolicy.LEARN,
        unknown=UnknownPolicy.REFUSE,
    )
    schema = (ColumnSchema(name="age", kind=ColumnKind.NUMERIC), town)
    draft = DraftBranch(
        split=Threshold(feature=0, threshold=40.0),
        left=DraftBranch(split=Subset(feature=1, codes=(0,)), left=DraftLeaf(label=0), right=DraftLeaf(label=1)),
        right=DraftLeaf(label=0),
    )
    rows = np.array([[30.0, 0.0], [30.0, 1.0], [50.0, 1.0]])
    return grow(draft, rows, np.array([0, 1, 0], np.int32), schema=schema, classes=("no", "yes"))


# An unknown town is refused, although the second row never reaches a split on the town.
TOWNS = ({"age": 30.0, "town": "söuth"}, {"age": 50.0, "town": "east"}, {"age": 30.0, "town": None})


def test_python_and_sql_refuse_unknown_values():
    tree = refusing_tree()
    scope = {}
    exec(to_python(tree), scope)
    assert scope["predict"](TOWNS[0]) == "yes"
    assert scope["predict"](TOWNS[2]) == "yes"
    with pytest.raises(ValueError, match="'town' has a value that training did not have: 'east'"):
        scope["predict"](TOWNS[1])
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE t (age REAL, town TEXT)")
        base.executemany("INSERT INTO t VALUES (:age, :town)", TOWNS)
        answers = [row[0] for row in base.execute(f"SELECT {to_sql(tree)} FROM t")]
    assert answers == ["yes", None, "yes"]


def test_javascript_refuses_unknown_values(tmp_path):
    runtime("node")
    (tmp_path / "t.mjs").write_text(to_javascript(refusing_tree()), encoding="utf-8")
    script = (
        f'import {{ predict }} from "./t.mjs"; const rows = {json.dumps(TOWNS)};'
        "console.log(JSON.stringify(rows.map((r) => { try { return predict(r); } catch (e) { return e.name; } })));"
    )
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    assert json.loads(run(["node", str(tmp_path / "run.mjs")])) == ["yes", "RangeError", "yes"]


def test_c_refuses_unknown_values(tmp_path):
    runtime("gcc")
    (tmp_path / "t.h").write_text(c.to_c(refusing_tree(), "t"), encoding="utf-8")
    rows = [
        f"{{ octweb_cell row[] = {{{c_cell(r['age'])}, {c_cell(r['town'])}}}; const char *a = t_predict(row);"
        ' printf("%d %s\\n", t_leaf(row), a ? a : "none"); }'
        for r in TOWNS
    ]
    main = ["#include <stdio.h>", '#include "t.h"', "int main(void) {", *rows, "return 0; }"]
    (tmp_path / "main.c").write_text("\n".join(main), encoding="utf-8")
    run(
        [
            "gcc",
            "-std=c99",
            "-Wall",
            "-Werror",
            "-Wno-parentheses",
            "-o",
            str(tmp_path / "main"),
            str(tmp_path / "main.c"),
            "-lm",
        ]
    )
    answers = run([str(tmp_path / "main")]).splitlines()
    assert [line.split()[1] for line in answers] == ["yes", "none", "yes"]
    assert answers[1] == "-1 none"


@pytest.mark.slow
def test_java_refuses_unknown_values(tmp_path):
    runtime("javac", "java")
    (tmp_path / "OctwebTree.java").write_text(to_java(refusing_tree()), encoding="utf-8")
    calls = "\n".join(
        f'row.clear(); row.put("age", {r["age"]}); row.put("town", {json.dumps(r["town"])});'
        'try { System.out.println(OctwebTree.predict(row)); } catch (IllegalArgumentException e) { System.out.println("refused"); }'
        for r in TOWNS
    )
    main = f"import java.util.*; public class Main {{ public static void main(String[] a) {{ Map<String, Object> row = new HashMap<>(); {calls} }} }}"
    (tmp_path / "Main.java").write_text(main, encoding="utf-8")
    run(["javac", "-d", str(tmp_path), str(tmp_path / "OctwebTree.java"), str(tmp_path / "Main.java")])
    assert run(["java", "-cp", str(tmp_path), "Main"]).split() == ["yes", "refused", "yes"]


def test_formats_that_always_answer_refuse_such_a_model():
    tree = refusing_tree()
    for write in (dmn.to_dmn, to_onnx):
        with pytest.raises(DataError, match="refuses unknown values of town"):
            write(tree)
    assert 'IF(OR(B2="",EXACT(B2,"north"),EXACT(B2,"söuth"),EXACT(B2,"(missing)"))' in excel.formula(tree)
    assert "NA())" in excel.formula(tree)
    assert 'stop("column' in r.to_r(tree)
    assert 'name="town" invalidValueTreatment="returnInvalid"' in to_pmml(tree)
