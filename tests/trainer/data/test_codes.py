"""Special values of numeric columns: detected with a reason, declared, split on, and checked."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from tests.seeds import seeds
from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.questions import questions
from trainer.check.recount import verdict, verify
from trainer.data import encoding as encodings
from trainer.data.encoding import Scheme, encode_binary
from trainer.data.formats.read_file import read_table
from trainer.data.parsing.codes import codes_text, likely_codes, parse_codes
from trainer.data.parsing.infer import infer
from trainer.data.reader import load
from trainer.errors import DataError
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, save, train
from trainer.tree.describe import rules_text
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.render.figure import tree_figure
from trainer.tree.splits import Interval


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([-9, -9, -8, -8, 0, 3, 5, 60], {-9: 2, -8: 2}),
        ([-9, 0, 3, 5, 60], {}),  # a single row is not enough
        ([-9, -9, -3, 5, 60], {}),  # -3 shows that negative numbers are ordinary here
        ([999, 999, 999, 18, 40, 63], {999: 3}),
        ([99, 99, 18, 40, 63], {}),  # 99 is not far from the other values
        ([-1, -1, 0, 1, 2, 3, 4, 5], {-1: 2}),
        ([-1, -1, 0, 1], {}),
        ([7, 7, 7], {}),
        ([-9, -9], {}),
        ([np.nan, -99, -99, 1, 2, 3], {-99: 2}),
        ([*range(-2000, 2000, 50), *[-999] * 10], {-999: 10}),  # -999 is a spike among other negative numbers
        ([*range(-2000, 2000, 50), *[-998] * 10], {}),
        ([*range(-2000, 2000, 50), *[-999] * 9, 3, 3], {}),
    ],
)
def test_codes_are_guessed_from_where_they_stand(values, codes):
    assert likely_codes(np.array(values, float)) == codes


def test_guess_has_a_reason_and_is_not_applied(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("income,y\n" + "".join(f"{v},{'ab'[i % 2]}\n" for i, v in enumerate([-9, -9, -8, -8, 120, 80, 30])))
    guess = infer(read_table(path))[0]
    assert guess.special == (-9.0, -8.0)
    assert "−9 in 2 rows, −8 in 2 rows stand apart and may be codes" in guess.reason
    assert guess.schema.special == ()
    assert codes_text({-9.0: 1}) == "−9 in 1 row"


def test_special_values_accept_usual_spellings():
    assert parse_codes(" -7; −8, 999, -7", "x") == (-8.0, -7.0, 999.0)
    assert parse_codes("", "x") == ()
    with pytest.raises(DataError, match="'many' is not a number: special values of 'x'"):
        parse_codes("-7, many", "x")
    with pytest.raises(DataError, match="at most 20"):
        parse_codes(",".join(map(str, range(21))), "x")


def coded(seed: int, n: int = 40) -> tuple[Table, Labels, np.ndarray]:
    """Return a table and its weights, which may be 0.

    It has a numeric column with codes, one without, and a categorical column.
    """
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=n) * 5, 1)
    x[rng.random(n) < 0.3] = rng.choice([-7.0, -8.0, 999.0, 0.5], 1)
    x[rng.random(n) < 0.2] = 999.0
    special = ((-8.0, -7.0, 0.5, 999.0), (999.0,), (-8.0, -7.0, 5.0))[seed % 3]
    columns = (
        Column(schema=ColumnSchema(name="x", kind=ColumnKind.NUMERIC, special=special), cells=x),
        Column(schema=ColumnSchema(name="z", kind=ColumnKind.NUMERIC), cells=rng.integers(0, 6, n).astype(float)),
        Column(
            schema=ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=("a", "b", "d")),
            cells=rng.integers(0, 3, n).astype(float),
        ),
    )
    codes = ((x == 999) ^ (columns[1].values > 2) ^ (rng.random(n) < 0.1)).astype(np.int32)
    table = Table(columns=columns, row_numbers=np.arange(1, n + 1))
    return table, Labels(name="y", classes=("no", "yes"), codes=codes), rng.integers(0, 4, n)


@pytest.mark.parametrize("scheme", [Scheme.QUANTILE_THRESHOLDS, Scheme.QUANTILE_BUCKETS, Scheme.ALL_THRESHOLDS])
@seeds(60)
def test_the_checker_makes_the_same_questions(seed, scheme):
    table, labels, weights = coded(seed)
    own = weights if seed % 2 else np.ones(len(table), np.int64)
    encoding = encode_binary(table, scheme, 4, own)
    model = {"columns": [c.to_json() for c in table.schema], "parameters": {"binarise": str(scheme), "bins": 4}}
    rows = ModelTable(columns=[c.values for c in table.columns], labels=labels.codes, weights=own, plain=own)
    found = questions(model, rows)
    assert found[0].tolist() == encoding.bits(table).astype(bool).tolist()
    assert found[1] == [f.column for f in encoding.features]
    x = table.columns[0].values
    asked = [f for f in encoding.features if f.test is encodings.Test.SPECIAL]
    assert len(asked) == len(set(x) & set(table.schema[0].special))
    for feature, value in zip(asked, sorted(set(x) & set(table.schema[0].special)), strict=True):
        assert (feature.apply(x) == (x == value)).all()
        split, one_left = feature.split()
        assert ((split.goes_left(table.matrix()) == one_left) == (x == value)).all()


@pytest.mark.parametrize("method", ["exact", "bendoct", "cart"])
def test_trees_over_columns_with_codes_are_verified(method, tmp_path):
    for seed in range(3):
        table, labels, _ = coded(seed)
        asked = {"depth": 2, "time_limit": 600}
        result = train(TrainRequest(table=table, labels=labels, method=method, parameters=asked))
        data = tmp_path / "rows.csv"
        model = tmp_path / "model.json"
        lines = [
            f"{x!r},{z:g},{'abd'[int(c)]},{labels.classes[y]}"
            for (x, z, c), y in zip(table.matrix().tolist(), labels.codes, strict=True)
        ]
        data.write_text("x,z,c,y\n" + "\n".join(lines) + "\n")
        save(result.model, model)
        verdicts = {f.claim: f.verdict for f in verify(model, data)}
        assert "refuted" not in verdicts.values(), verdicts
        if method == "exact":
            assert "special value" in result.certificate.scope
            assert result.certificate.status == "optimal"


@pytest.mark.parametrize("method", ["exact-numeric", "cut-h", "odt", "bivariate"])
def test_methods_without_single_value_splits_ignore_codes(method, tmp_path):
    """One value among the others determines the class, and no threshold or plane can separate it."""
    data = tmp_path / "rows.csv"
    model = tmp_path / "model.json"
    data.write_text("x,z,y\n" + "".join(f"{i % 9},{i % 4},{'ab'[(i % 9 == 4) ^ (i % 12 == 7)]}\n" for i in range(60)))
    table, labels, *_ = load(data, target="y", special={"x": (4.0,)})
    result = train(TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 1}))
    save(result.model, model)
    assert verdict(verify(model, data)) == "proved"


def test_command_declares_codes_and_refuses_other_texts(tmp_path):
    path = tmp_path / "rows.csv"
    out = tmp_path / "model.json"
    rows = [(-9, "bad"), (3, "good"), (5, "good"), (-9, "bad"), (1, "good"), (-8, "good")] * 4
    path.write_text("income,y\n" + "".join(f"{v},{label}\n" for v, label in rows))
    arguments = [str(path), "--target", "y", "--method", "exact", "--depth", "1", "--output", str(out), "--json"]
    printed = io.StringIO()
    call_command("train", *arguments, "--special", "income=-8,-9", stdout=printed)
    assert json.loads(printed.getvalue().splitlines()[-1])["train_accuracy"] == 1
    document = json.loads(out.read_text())
    assert document["columns"][0]["special"] == [-9.0, -8.0]
    for wrong in ("income=x", "income", "other=-9"):
        with pytest.raises(CommandError, match=r"special|no column"):
            call_command("train", *arguments, "--special", wrong, stdout=io.StringIO())


def test_card_names_single_code_and_rules_keep_interval_ends():
    """This is checked for every pair of ends.

    The code is named if exactly one is between two finite ends, as counted one by one.
    """
    schema = (ColumnSchema(name="last_inquiry", kind=ColumnKind.NUMERIC, unit="months", special=(-9.0, -8.0, -7.0)),)
    ends = (-np.inf, -9.5, -9.0, -8.5, -8.0, -7.5, -7.0, 3.0, np.inf)
    for low, high in ((a, b) for a in ends for b in ends if a < b):
        split = Interval(feature=0, low=low, high=high)
        inside = [code for code in schema[0].special if low < code <= high]
        named = len(inside) == 1 and np.isfinite(low) and np.isfinite(high)
        words = split.brief(schema)
        assert words == (f"last_inquiry is code −{-inside[0]:g}" if named else split.text(schema))
        assert not named or f"(the code −{-inside[0]:g})" in split.text(schema)
    assert Interval(feature=0, low=-8.5, high=-7.5).text(
        schema
    ) == "−8.5 < last_inquiry ≤ −7.5 months (the code −8)".replace(" months", "\N{NARROW NO-BREAK SPACE}months")


def test_the_picture_says_the_code_and_its_hover_the_ends():
    schema = (ColumnSchema(name="last_inquiry", kind=ColumnKind.NUMERIC, special=(-8.0,)),)
    matrix = np.array([[-8.0], [-8.0], [3.0], [4.0]])
    codes = np.array([0, 0, 1, 1])
    draft = DraftBranch(split=Interval(feature=0, low=-8.5, high=-7.5), left=DraftLeaf(), right=DraftLeaf())
    tree = grow(draft, matrix, codes, schema=schema, classes=("bad", "good"))
    written = json.dumps(tree_figure(tree), ensure_ascii=False)
    assert "<b>last_inquiry is code −8</b>" in written
    assert "−8.5 &lt; last_inquiry ≤ −7.5 (the code −8)" in written
    assert rules_text(tree).startswith("−8.5 < last_inquiry ≤ −7.5 (the code −8)?")
