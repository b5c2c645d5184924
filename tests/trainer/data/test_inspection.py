"""The intake report: identifiers, spellings, marks for missing values, leaks."""

from __future__ import annotations

import gzip
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

import octweb
import trainer
from trainer.check.recount.check import verify
from trainer.data.formats.read_file import read_table
from trainer.data.inspect_table import inspect, inspect_raw
from trainer.data.inspection import leak_findings, tree_warnings
from trainer.data.parsing import reading_of
from trainer.data.parsing.alike import alike_groups
from trainer.data.parsing.infer import may_number_rows, numbers_rows
from trainer.data.reader import ParsingChoices, load
from trainer.data.table_contract import model_contract
from trainer.errors import DataError
from trainer.training.run import TrainRequest, save, train
from trainer.tree.file import read_model

SIZES = [3.5, 1.25, 9.0, 4.5, 7.75, 2.5]
N = 60


def table_of(path, **columns):
    """Write a CSV file with these columns, a number `size` and the target `y`."""
    n = len(next(iter(columns.values())))
    columns = columns | {"size": [SIZES[i * i % 6] for i in range(n)]}
    columns.setdefault("y", ["ab"[i * i % 3 > 0] for i in range(n)])
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def kinds_of(findings):
    return {(finding.kind, finding.column) for finding in findings}


COUNTERS = {
    "counts from one": list(range(1, N + 1)),
    "counts in twos": list(range(0, 2 * N, 2)),
    "counts down": list(range(N, 0, -1)),
    "has a point": [f"{i}.0" for i in range(N)],
    "lost rows": [i for i in range(N) if i % 5],
    "lost rows in tens": [10 * i for i in range(N) if i % 3],
    "each twice": [i // 2 for i in range(N)],
    "each thrice with lost rows": [i // 3 for i in range(N) if i % 17],
    "unique texts": [f"name {i}" for i in range(N)],
    "texts twice": [f"name {i % 30}" for i in range(N)],
}
MEASURES = {
    "repeats": [i % 13 for i in range(N)],
    "sorted and far apart": [i * i * 7 for i in range(N)],
    "few levels in order": [i // 6 for i in range(N)],
    "decimals in order": [i / 10 + 0.05 for i in range(N)],
    "shuffled": [i * 37 % 61 for i in range(N)],
}


@pytest.mark.parametrize("name", COUNTERS)
def test_identifier_is_left_out_with_a_note(tmp_path, name):
    path = table_of(tmp_path / "t.csv", key=COUNTERS[name])
    table, _, report = load(path, target="y")
    assert table.names == ("size",)
    assert any("Column 'key' was left out" in note for note in report.notes)
    assert ("identifier", "key") in kinds_of(inspect(path, target="y"))


def test_figure_of_an_identifier_with_empty_cells_says_why(tmp_path):
    path = table_of(tmp_path / "t.csv", Id=[*range(1, N), ""])
    own = next(finding for finding in inspect(path, target="y") if finding.kind == "identifier")
    assert own.figure.startswith("59 different values; it numbers the rows")


def test_figure_of_a_declared_category_says_why_it_names_rows(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"key": [*COUNTERS["unique texts"][1:], None], "size": [SIZES[i * i % 6] for i in range(N)]})
    frame.assign(key=frame["key"].astype("category"), y=["ab"[i * i % 3 > 0] for i in range(N)]).to_parquet(path)
    [finding] = [one for one in inspect(path, target="y") if one.kind == "identifier"]
    assert finding.figure.startswith("59 different values; all 59 texts are different")


@pytest.mark.parametrize("name", MEASURES)
def test_measure_is_no_identifier(tmp_path, name):
    table, _, report = load(table_of(tmp_path / "t.csv", key=MEASURES[name]), target="y")
    assert table.names == ("key", "size")
    assert report.identifiers == ()


@pytest.mark.parametrize("name", ["Id", "patient_id", "__index_level_0__", "index", "Unnamed: 0", "passengerId"])
def test_shuffled_identifier_is_known_by_name(tmp_path, name):
    table, _, _ = load(table_of(tmp_path / "t.csv", **{name: MEASURES["shuffled"]}), target="y")
    assert table.names == ("size",)


@pytest.mark.parametrize("name", ["paid", "hybrid", "grade", "noise"])
def test_name_that_only_ends_in_id_is_a_measure(tmp_path, name):
    table, _, _ = load(table_of(tmp_path / "t.csv", **{name: MEASURES["shuffled"]}), target="y")
    assert table.names == (name, "size")


LIKELY = {
    "shuffled": MEASURES["shuffled"],
    "shuffled tens with gaps": [10 * (i * 37 % 67) for i in range(N)],
    "long numbers": [100_000 + i * 7_919_123 % 900_000 for i in range(2 * N)],
}


@pytest.mark.parametrize("name", LIKELY)
def test_shuffled_numbers_may_name_the_rows(tmp_path, name):
    path = table_of(
        tmp_path / "t.csv", key=LIKELY[name], y=["ab"[key > 300_000 or key % 7 > 3] for key in LIKELY[name]]
    )
    own = next(finding for finding in inspect(path, target="y") if finding.kind == "identifier")
    assert (own.column, own.severity, own.mend["role"]) == ("key", "medium", "ignored")
    table, labels, _ = load(path, target="y")
    assert "key" in table.names
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 6})).model
    assert "The tree asks key. Its numbers are all different" in tree_warnings(model.tree)[0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [25, 60, 150])
def test_salaries_are_measures(seed, n):
    salaries = np.unique(np.random.default_rng(seed).normal(50_000, 12_000, n).round().clip(10_001, 99_998))
    assert may_number_rows(salaries) == ""


@pytest.mark.parametrize("seed", range(4))
def test_codes_of_places_and_months_are_features(tmp_path, seed):
    rng = np.random.default_rng(seed)
    zips = rng.choice(np.arange(10_000, 99_999), 240, replace=False).tolist()
    months = [f"month {letter}" for letter in "abcdefghijkl"] * 20
    path = table_of(
        tmp_path / "t.csv",
        zip=zips,
        plz=rng.choice(zips[:90], 240).tolist(),
        month=months,
        y=rng.choice(["a", "b"], 240).tolist(),
    )
    assert "identifier" not in {finding.kind for finding in inspect(path, target="y")}
    few = table_of(tmp_path / "few.csv", month=months[:24], y=["a", "b"] * 12)
    assert load(few, target="y")[0].names[0] == "month"


@pytest.mark.parametrize("scale", [1e19, 1e26, 1e300])
def test_huge_numbers_are_measures(scale):
    """Every float64 beyond 2^53 is an integer."""
    values = np.random.default_rng(0).lognormal(0, 2, 200) * scale
    assert numbers_rows("v", values) == may_number_rows(values) == ""


@pytest.mark.parametrize("name", ["employees", "Users", "rooms_no", "customers", "Reynolds number", "atomic_number"])
def test_name_of_a_count_or_quantity_is_a_measure(tmp_path, name):
    table, _, _ = load(table_of(tmp_path / "t.csv", **{name: MEASURES["shuffled"]}), target="y")
    assert table.names == (name, "size")


AMOUNTS = [(i * i * 37) % 4001 + 12 for i in range(N)]


@pytest.mark.parametrize("name", ["invoice", "account", "Nr.", "ticket"])
def test_amounts_are_not_left_out_for_their_name(tmp_path, name):
    assert len(set(AMOUNTS)) == N
    path = table_of(tmp_path / "t.csv", **{name: AMOUNTS})
    table, _, report = load(path, target="y")
    assert (table.names, report.left_out) == ((name, "size"), {})
    own = next(finding for finding in inspect(path, target="y") if finding.kind == "identifier")
    assert (own.column, own.severity, own.mend["role"]) == (name, "medium", "ignored")
    assert own.figure.startswith(f"it is called '{name}' and all 60 numbers are different")


@pytest.mark.parametrize("name", ["customer", "Account_No", "ticket number", "Kundennummer", "crowd_reference"])
def test_column_named_as_number_identifies_rows(tmp_path, name):
    table, _, _ = load(table_of(tmp_path / "t.csv", **{name: MEASURES["shuffled"]}), target="y")
    assert table.names == ("size",)


def test_model_file_states_its_identifiers(tmp_path):
    frame = pd.DataFrame({"Id": range(1, N + 1), "size": [SIZES[i * i % 6] for i in range(N)]})
    classifier = trainer.make_classifier("cart", depth=1)
    with pytest.warns(UserWarning, match="The tree asks Id"):
        classifier.fit(frame, ["a" if i < 30 else "b" for i in range(N)])
    classifier.save(tmp_path / "m.json")
    model = read_model(tmp_path / "m.json")
    assert "The tree asks Id" in tree_warnings(model.tree)[0]
    columns = {column["name"]: column for column in model_contract(model)["columns"]}
    assert columns["Id"]["names_rows"] == "certain"
    assert "names_rows" not in columns["size"]


def test_index_of_pandas_in_parquet_is_left_out(tmp_path):
    frame = pd.DataFrame({"size": [SIZES[i * i % 6] for i in range(N)], "y": ["ab"[i * i % 3 > 0] for i in range(N)]})
    frame[frame.index % 4 > 0].to_parquet(tmp_path / "t.parquet")
    table, _, report = load(tmp_path / "t.parquet", target="y")
    assert table.names == ("size",)
    assert "__index_level_0__" in report.left_out


def test_identifier_that_is_named_stays(tmp_path):
    path = table_of(tmp_path / "t.csv", key=list(range(N)))
    for options in (
        {"given": ParsingChoices(kinds={"key": "number"})},
        {"mentions": "rising=key"},
        {"special": {"key": [9]}},
    ):
        table, _, report = load(path, target="y", **options)
        assert table.names == ("key", "size")
        assert report.identifiers == ("key",)
    assert load(path, target="y", mentions="monkey")[0].names == ("size",)


def test_counter_that_is_the_only_column_stays(tmp_path):
    (tmp_path / "t.csv").write_text("x,one,y\n" + "".join(f"{i},1,{i % 2}\n" for i in range(N)))
    assert load(tmp_path / "t.csv", target="y")[0].names == ("x", "one")


def test_counting_target_is_never_ignored(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{SIZES[i * i % 6]},{i}\n" for i in range(12)))
    assert load(tmp_path / "t.csv", target="y")[1].name == "y"


def test_iris_trains_without_its_id_column(tmp_path):
    iris = load_iris(as_frame=True)
    frame = iris.data.assign(species=iris.target_names[iris.target])
    frame.insert(0, "Id", range(1, 151))
    frame.to_csv(tmp_path / "t.csv", index=False)
    table, labels, _ = load(tmp_path / "t.csv", target="species")
    tree = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).tree
    assert "Id" not in [column.name for column in tree.schema]


@pytest.mark.parametrize(
    "words",
    [
        ("Yes", "yes", "YES"),
        ("true", "True", "1"),
        ("a", "a\u200b", "a\u00ad"),
        ("é", "e\u0301", "É"),
        ("1", "1.0", "1e0"),
        ("x y", "x  y", "X Y"),
        ("10-20", "10\u201320", "10\u201220"),
        ("it's", "it\u2019s", "IT\u02bcS"),
        ("-5", "\u22125", "-5.0"),
        ("kirli", "KİRLİ", "KIRLI", "kırlı"),
    ],
)
def test_similar_words_are_grouped(words):
    counts = {word: 10 - i for i, word in enumerate(words)}
    assert alike_groups(counts | {"other": 3, "false": 1}) == [words]


@pytest.mark.parametrize("words", [("007", "7"), ("a", "b"), ("1", "2"), ("1", "yes")])
def test_different_words_are_not_grouped(words):
    assert alike_groups(dict.fromkeys(words, 1)) == []


def test_merged_classes_train_and_are_verified(tmp_path):
    words = [("yes", "Yes", "no", "NO\u200b")[(i % 4 > 1) * 2 + (i % 7 > 4)] for i in range(N)]
    path = table_of(tmp_path / "t.csv", part=["N", "n", "s"] * (N // 3), y=words)
    found = {own.kind: own for own in inspect(path, target="y")}
    assert found["look_alike_classes"].severity == "high"
    assert "'yes' (" in found["look_alike_classes"].figure
    assert found["look_alike_classes"].mend["merge"] == {"Yes": "yes", "NO\u200b": "no"}
    assert found["other_spelling"].column == "part"
    given = ParsingChoices(merge={"y": {}, "part": {}})
    table, labels, report = load(path, target="y", given=given)
    assert labels.classes == ("no", "yes")
    assert table.columns[table.names.index("part")].schema.categories == ("N", "s")
    assert any("'Yes' is read as 'yes'" in note for note in report.notes)
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 3})).model
    save(model, tmp_path / "m.json")
    claims = verify(tmp_path / "m.json", path)
    assert [own for own in claims if own.verdict == "refuted"] == []
    assert any("'Yes' of column 'y' as 'yes'" in own.detail for own in claims)


MONTH_FORMS = [
    ("31-Dec-9999", "%d-%b-%Y"),
    ("1 Jan 0001", "%d %b %Y"),
    ("Dec 31, 9999", "%b %d, %Y"),
    ("Jan 1 2999", "%b %d %Y"),
]


@pytest.mark.parametrize(("word", "form"), MONTH_FORMS)
def test_placeholder_date_with_month_name_is_missing(tmp_path, word, form):
    days = [word if i % 9 == 0 else pd.Timestamp(2021, 1 + i % 12, 13 + i % 15).strftime(form) for i in range(N)]
    table, labels, _ = load(table_of(tmp_path / "t.csv", end=days), target="y")
    assert table.columns[table.names.index("end month")].missing.sum() == 7
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model
    save(model, tmp_path / "m.json")
    assert [
        finding for finding in verify(tmp_path / "m.json", tmp_path / "t.csv") if finding.verdict == "refuted"
    ] == []


@pytest.mark.parametrize("word", ["9999-12-31", "0000-00-00", "NaT", "\\N", "<null>", "2999-01-01"])
def test_date_column_with_placeholder_stays_a_date(tmp_path, word):
    days = [word if i % 9 == 0 else f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    path = table_of(tmp_path / "t.csv", end=days)
    table, labels, report = load(path, target="y")
    assert "end month" in table.names
    assert any(word in note for note in report.notes)
    assert {("sentinel", "end")} <= kinds_of(inspect(path, target="y"))
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model
    save(model, tmp_path / "m.json")
    assert [finding for finding in verify(tmp_path / "m.json", path) if finding.verdict == "refuted"] == []


def test_many_distant_dates_are_not_read_as_empty(tmp_path):
    """Leases of 999 years end on real days."""
    dates = [f"{2010 + i % 12}-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    dates[::6] = [f"{2900 + 7 * i}-06-24" for i in range(N // 6)]
    findings = inspect(table_of(tmp_path / "t.csv", end=dates), target="y")
    assert ("words_among_dates", "end") in kinds_of(findings)
    assert ("sentinel", "end") not in kinds_of(findings)


MARKS = ["9999-12-31", "0000-00-00", "NaT", "2999-01-01", "0001-01-01", "8888-08-08"]
IMPOSSIBLE = ["2021-14-02", "2021-13-01", "2021-15-10", "no", "x9", "2021-13-05"]


def test_many_marks_among_dates_are_empty_cells(tmp_path):
    days = [MARKS[i // 4 % 6] if i % 4 == 0 else f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    path = table_of(tmp_path / "t.csv", end=days)
    table, _, _ = load(path, target="y")
    assert table.columns[table.names.index("end month")].missing.sum() == 15
    finding = next(own for own in inspect(path, target="y") if own.kind == "sentinel")
    assert finding.figure == "'9999-12-31' (3), '0000-00-00' (3), 'NaT' (3), '2999-01-01' (2) and 2 more"
    early = [f"{1000 + 90 * i}-01-05" if i < 5 else day for i, day in enumerate(days)]
    # Five dates of another century may be real, so the column stays text.
    assert "end" in load(table_of(tmp_path / "early.csv", end=early), target="y")[0].names


def test_many_impossible_dates_are_proposed_as_empty(tmp_path):
    days = [IMPOSSIBLE[i // 10] if i % 10 == 0 else f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    path = table_of(tmp_path / "t.csv", end=days)
    with pytest.raises(DataError) as refused:
        load(path, target="y")
    assert all(f"--missing 'end={word}'" in str(refused.value) for word in IMPOSSIBLE)
    assert "--kind 'end=date" not in str(refused.value)  # that option would be refused for the same reason
    finding = next(own for own in inspect(path, target="y") if own.kind == "words_among_dates")
    assert finding.mend == {"column": "end", "missing": IMPOSSIBLE}
    table, _, _ = load(path, target="y", given=ParsingChoices(missing={"end": tuple(IMPOSSIBLE)}))
    assert table.columns[table.names.index("end month")].missing.sum() == 6


NO_DAYS = [
    ("2021-02-30", "%Y-%m-%d"), ("31.04.2021", "%d.%m.%Y"), ("29/02/2021", "%d/%m/%Y"), ("02/30/2021", "%m/%d/%Y"),
    ("30-Feb-2021", "%d-%b-%Y"), ("00.00.2021", "%d.%m.%Y"), ("2021-02-30 12:00", "%Y-%m-%d %H:%M"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "form"), NO_DAYS)
def test_day_that_does_not_exist_is_an_empty_cell(tmp_path, word, form):
    days = [pd.Timestamp(2021, 1 + i % 12, 13 + i % 15, 8).strftime(form) for i in range(N)]
    path = table_of(tmp_path / "t.csv", end=[word, *days[1:-1], word])
    table, _, _ = load(path, target="y")
    assert np.flatnonzero(table.columns[table.names.index("end month")].missing).tolist() == [0, N - 1]
    own = next(finding for finding in inspect(path, target="y") if finding.kind == "sentinel")
    assert (own.column, own.figure) == ("end", f"'{word}' (2)")


@pytest.mark.parametrize("word", ["2021-13-01", "12 plums 2021", "2021-1-1-1"])
def test_word_that_may_be_another_date_is_refused(tmp_path, word):
    days = [f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    with pytest.raises(DataError, match="Say "):
        load(table_of(tmp_path / "t.csv", end=[word, *days[1:]]), target="y")


@pytest.mark.parametrize("word", ["1900-01-01", "2099-12-31"])
def test_date_far_from_all_others_is_proposed_as_empty(tmp_path, word):
    days = [word if i % 9 == 0 else f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    path = table_of(tmp_path / "t.csv", end=days)
    finding = next(own for own in inspect(path, target="y") if own.kind == "sentinel")
    assert finding.figure == f"{word} (7)"
    assert finding.mend == {"column": "end", "missing": [word]}
    table, _, _ = load(path, target="y", given=ParsingChoices(missing={"end": (word,)}))
    assert table.columns[table.names.index("end month")].missing.sum() == 7


def test_first_days_of_years_among_such_days_are_dates(tmp_path):
    path = table_of(tmp_path / "t.csv", end=[f"{1950 + i // 6 * 10}-01-01" for i in range(N)])
    assert ("sentinel", "end") not in kinds_of(inspect(path, target="y"))


def test_many_dates_of_other_centuries_stay_text(tmp_path):
    days = [f"{1100 + i}-01-01" if i % 3 == 0 else f"2021-01-{1 + i % 28:02d}" for i in range(N)]
    path = table_of(tmp_path / "t.csv", end=days)
    assert "end" in load(path, target="y")[0].names


def test_leaks_are_found_with_their_figure(tmp_path):
    words = ["abc"[i % 3] for i in range(N)]
    path = table_of(tmp_path / "t.csv", code=[{"a": 7, "b": 3, "c": 5}[w] for w in words], y=words)
    leak = next(finding for finding in inspect(path, target="y") if finding.kind == "leak")
    assert (leak.column, leak.severity) == ("code", "high")
    assert leak.figure.startswith("60 of 60 rows right")
    assert leak.mend == {"column": "code", "role": "ignored"}


def test_report_is_sorted_and_each_finding_is_whole(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    income = np.where((y == 1) & (rng.random(200) < 0.8), np.nan, rng.normal(size=200).round(3))
    frame = pd.DataFrame({"key": range(200), "income": income, "same": 1, "copy": y * 2, "y": y})
    findings = trainer.inspect(frame, target="y")
    assert {"identifier", "emptiness_predicts", "constant", "leak"} <= {finding.kind for finding in findings}
    order = [("high", "medium", "low").index(finding.severity) for finding in findings]
    assert order == sorted(order)
    assert all(finding.figure and finding.sentence and finding.if_nothing for finding in findings)


def test_inspect_takes_frames_arrays_and_files(tmp_path):
    X = np.column_stack([np.arange(N), np.random.default_rng(1).normal(size=N)])
    y = np.arange(N) % 2
    for found in (
        octweb.inspect(X, y),
        octweb.inspect(pd.DataFrame(X, columns=["x0", "b"]), pd.Series(y, name="out")),
        octweb.inspect(pa.table({"x0": X[:, 0], "b": X[:, 1], "y": y}), target="y"),
    ):
        assert kinds_of(found) == {("identifier", "x0")}
    with pytest.raises(DataError, match="give y"):
        octweb.inspect(X)
    with pytest.raises(DataError, match="no column 'z'"):
        octweb.inspect(pd.DataFrame(X, columns=["a", "b"]), target="z")


def test_table_that_cannot_train_says_why_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{k % 3},\n" for k in range(20)))
    findings = trainer.inspect(path, target="y")
    assert findings[0].kind == "not_trainable"
    assert findings[0].severity == "high"
    assert "y" in findings[0].figure


def test_clean_table_has_no_finding():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=100), "b": rng.choice(list("xyz"), 100), "y": rng.integers(0, 2, 100)})
    assert octweb.inspect(frame, target="y") == ()


def test_first_row_as_header_is_a_finding(tmp_path):
    (tmp_path / "t.csv").write_text("".join(f"{i * i % 13},{i * i % 7 / 4},{i % 2}\n" for i in range(5, N)))
    findings = inspect(tmp_path / "t.csv", target="1")
    assert findings[0].kind == "no_header"


def test_estimator_warns_if_the_tree_asks_an_identifier():
    frame = pd.DataFrame({"Id": range(1, N + 1), "size": [SIZES[i * i % 6] for i in range(N)]})
    classifier = trainer.make_classifier("cart", depth=1)
    with pytest.warns(UserWarning, match="The tree asks Id"):
        classifier.fit(frame, ["a" if i < 30 else "b" for i in range(N)])


def test_parquet_of_a_named_index_is_read(tmp_path):
    pq.write_table(
        pa.table({"id": [f"u{i}" for i in range(N)], "s": SIZES * 10, "y": [0, 1] * 30}), tmp_path / "t.parquet"
    )
    assert load(tmp_path / "t.parquet", target="y")[0].names == ("s",)


def dated(path, *, late=True, name="closed", n=120):
    """Write a table with a date after another one. With `late`, the days between them determine the class."""
    rng = np.random.default_rng(2)
    y = rng.random(n) < 0.5
    opened = np.datetime64("2023-01-01") + rng.integers(0, 300, n)
    days = np.where(y, rng.integers(60, 120, n), rng.integers(1, 50, n)) if late else rng.integers(1, 120, n)
    born = np.datetime64("1960-01-01") + rng.integers(0, 12000, n)
    frame = {"opened": opened, name: opened + days, "born": born, "size": rng.integers(0, 9, n)}
    pd.DataFrame(frame | {"y": np.where(y, "yes", "no")}).to_csv(path, index=False)
    return path


def test_date_after_outcome_is_found_with_its_figure(tmp_path):
    findings = inspect(dated(tmp_path / "t.csv", name="last"), target="y")
    (own,) = [own for own in findings if own.kind == "date_after_outcome"]
    assert (own.column, own.severity) == ("last", "high")
    assert own.figure.startswith("later than 'opened' in 120 of 120 rows; the days between them alone: right on 100")
    assert own.mend["role"] == "ignored"
    assert own.mend["columns"][0] == "last year"


def test_date_named_like_an_end_is_a_question_of_lower_weight(tmp_path):
    findings = inspect(dated(tmp_path / "t.csv", late=False), target="y")
    assert [finding.severity for finding in findings if finding.kind == "date_after_outcome"] == ["medium"]


def test_uninformative_later_date_is_no_finding(tmp_path):
    findings = inspect(dated(tmp_path / "t.csv", late=False, name="second"), target="y")
    assert "date_after_outcome" not in {finding.kind for finding in findings}


def test_date_filled_after_the_outcome_is_found(tmp_path):
    path = dated(tmp_path / "t.csv", late=False, name="second")
    frame = pd.read_csv(path)
    frame.loc[frame["y"] == "no", "second"] = None
    frame.to_csv(path, index=False)
    (own,) = [own for own in inspect(path, target="y") if own.kind == "date_after_outcome"]
    assert "whether it is filled alone: right on 100" in own.figure


def test_late_date_that_is_left_out_is_no_finding(tmp_path):
    raw = read_table(dated(tmp_path / "t.csv"))
    found = inspect_raw(raw, reading_of(raw), target="y", ignore=["closed"])
    assert "date_after_outcome" not in {own.kind for own in found}


def test_words_among_numbers_are_found_and_mended(tmp_path):
    values = [*range(N - 2), "broken", "broken"]
    path = table_of(tmp_path / "rows.csv", c=[values[i * 7 % N] for i in range(N)])
    (found,) = [finding for finding in inspect(path, target="y") if finding.kind == "words_among_numbers"]
    assert (found.column, found.severity) == ("c", "high")
    assert found.figure == "58 of 60 values are numbers, but others such as 'broken' are not; 59 different values"
    assert found.mend == {"column": "c", "missing": ["broken"]}
    frame = pd.read_csv(path)
    assert "words_among_numbers" in {finding.kind for finding in inspect(frame.drop(columns="y"), frame["y"])}
    mended, *_ = load(path, target="y", given=ParsingChoices(missing={"c": ("broken",)}))
    assert mended.columns[mended.names.index("c")].kind == "numeric"


DAYS = pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d").tolist()
NUMBERS = [f"{x:.1f}" for x in np.random.default_rng(3).normal(50, 9, 60)]
SIDES = ["a" if i < 30 else "b" for i in range(60)]


def with_slips(cells, word):
    return [word if i % 9 == 4 else cell for i, cell in enumerate(cells)]


def test_words_among_dates_are_found_and_mended(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"when": with_slips(DAYS, "2021-02-30"), "y": SIDES}).to_csv(path, index=False)
    own = next(one for one in inspect(path, target="y") if one.kind == "words_among_dates")
    assert own.figure == "53 of 60 values are dates (yyyy-mm-dd), but not '2021-02-30' (7)"
    assert own.mend == {"column": "when", "missing": ["2021-02-30"]}
    table, _, _ = load(path, target="y", given=ParsingChoices(missing={"when": ("2021-02-30",)}))
    assert all(column.name.startswith("when ") for column in table.columns)
    assert not any(one.kind == "words_among_dates" for one in inspect(pd.DataFrame({"when": DAYS}), SIDES))


def test_words_among_numbers_with_decimal_commas_are_found(tmp_path):
    path = tmp_path / "t.csv"
    cells = with_slips([cell.replace(".", ",") for cell in NUMBERS], "foo")
    pd.DataFrame({"v": cells, "y": SIDES}).to_csv(path, index=False, sep=";")
    own = next(one for one in inspect(path, target="y") if one.kind == "words_among_numbers")
    assert own.figure.startswith("53 of 60 values are numbers, but others such as 'foo' are not")


@pytest.mark.parametrize("sign", [".", ","])
def test_numeric_texts_of_frame_are_reported_by_inspect_and_fit(sign):
    frame = pd.DataFrame({"v": [cell.replace(".", sign) for cell in NUMBERS]})
    assert [finding.column for finding in inspect(frame, SIDES) if finding.kind == "number_texts"] == ["v"]
    with pytest.warns(UserWarning, match="Column 'v': its [0-9]+ different texts are numbers, and each is a category"):
        trainer.make_classifier("cart", depth=1).fit(frame, SIDES)
    for other in (frame.astype("category"), pd.DataFrame({"v": [f"0{i % 20:02d}" for i in range(60)]})):
        assert not any(finding.kind == "number_texts" for finding in inspect(other, SIDES))


def test_code_of_the_class_with_many_values_is_a_leak():
    """Each row is judged by the other rows with its value, so rare values cannot look like a leak."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 48, 200)
    classes = np.array(["p", "q"])[rng.integers(0, 2, 48)][codes]
    frame = pd.DataFrame({"code": [f"c{code}" for code in codes], "size": rng.normal(size=200)})
    assert [finding.column for finding in inspect(frame, classes) if finding.kind == "leak"] == ["code"]
    assert not any(finding.kind == "leak" for finding in inspect(frame, rng.permutation(classes)))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_index_of_dates_is_left_out(tmp_path, ending):
    frame = pd.DataFrame({"size": np.arange(60) % 7, "y": SIDES}, index=pd.to_datetime(DAYS))
    path = tmp_path / f"t.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path)
    table, _, report = load(path, target="y")
    assert [column.name for column in table.columns] == ["size"]
    assert any("left out" in note for note in report.notes)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'[\n  {"a": 1, "y": "p"}\n]', "JSON"),
        (b'{"a": [1, 2]}', "JSON"),
        (b"$FL2@(#) SPSS DATA FILE", "SPSS"),
        (b"<stata_dta><header>", "Stata"),
        (b"r\x02\x01\x00\x03\x00", "Stata"),
        (bytes(12) + b"\xc2\xea\x81\x60\xb3\x14", "SAS"),
        (gzip.compress(b"RDX3\nX\n\x00\x00", mtime=0), "R workspace"),
        (gzip.compress(b"X\n\x00\x00\x00\x03", mtime=0), "R object"),
        (b"Obj\x01\x04\x16avro", "Avro"),
        (b"ORC\x08\x03\x10\xf0ORC\x18", "ORC"),
        (b"\x80\x04\x95\x00", "pickle"),
    ],
)
def test_files_of_other_tools_are_named(tmp_path, content, words):
    (tmp_path / "t.dat").write_bytes(content)
    with pytest.raises(DataError, match=f"is not a table but .*{words}"):
        inspect(tmp_path / "t.dat", target="y")


@pytest.mark.parametrize("name", ["orchid", "ORC", "RDX", "x", "Obj", "q"])
def test_name_like_the_start_of_another_format_is_read(tmp_path, name):
    path = table_of(tmp_path / "t.csv", **{name: MEASURES["repeats"]})
    assert load(path, target="y")[0].names == (name, "size")


def test_estimator_warns_of_row_counter_and_look_alike_classes():
    X = np.column_stack([np.arange(60), np.random.default_rng(0).normal(size=60)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.make_classifier("cart", depth=1).fit(X, np.where(np.arange(60) < 30, "Yes", "yes"))
    words = " ".join(str(own.message) for own in caught)
    assert "The tree asks x0." in words
    assert "Classes that look alike are different classes here: 'Yes' (30), 'yes' (30)." in words


@pytest.mark.parametrize(("dtype", "classes"), [("Int64", [0, 1]), ("boolean", [False, True])])
def test_labels_in_an_array_of_pandas_keep_their_type(dtype, classes):
    X = np.random.default_rng(0).normal(size=(40, 1))
    found = trainer.make_classifier("cart", depth=1).fit(X, pd.array(classes * 20, dtype=dtype)).classes_
    assert found.tolist() == classes
    assert found.dtype.kind == ("b" if dtype == "boolean" else "i")


FORMS = {
    "sparse matrix": lambda X: scipy.sparse.csr_matrix(X),
    "sparse columns": lambda X: pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(X)),
    "decimals": lambda X: pl.DataFrame(
        {str(j): [Decimal(repr(v)) for v in X[:, j].tolist()] for j in range(X.shape[1])}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_numeric_form_has_same_findings_as_array(form):
    X = np.random.default_rng(5).integers(-9, 9, (60, 3)) * (np.arange(60) % 2)[:, None] / 4
    y = X[:, 1] > 0
    findings = {(f.kind, f.figure) for f in inspect(FORMS[form](X), y)}
    assert findings == {(f.kind, f.figure) for f in inspect(X, y)}
    assert "leak" in dict(findings)


def test_two_columns_of_one_name_are_refused_with_the_name():
    frame = pd.DataFrame(np.zeros((20, 3)), columns=["a", "a", "b"])
    with pytest.raises(DataError, match="Several columns are called a"):
        inspect(frame, SIDES[:20])


DAY_NUMBERS = {
    "shipped": ([20210000 + 100 * (1 + i % 12) + 1 + i % 28 for i in range(N)], "2021-01-01", "date:yyyymmdd"),
    "Birth date": ([20_000 + i * 337 % 9_001 for i in range(N)], "1954-10-03", None),
}


@pytest.mark.parametrize("name", DAY_NUMBERS)
def test_numbers_that_may_be_dates_are_found(tmp_path, name):
    numbers, day, kind = DAY_NUMBERS[name]
    path = table_of(tmp_path / "t.csv", **{name: numbers})
    own = next(finding for finding in inspect(path, target="y") if finding.kind == "dates_as_numbers")
    assert (own.column, own.mend.get("kind")) == (name, kind)
    assert own.figure.endswith(f"which may mean {day}")
    if kind:
        assert f"{name} month" in load(path, target="y", given=ParsingChoices(kinds={name: kind}))[0].names


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("rides", 20_210_001), ("days", 3), ("distance", 20_000), ("update_count", 20_000), ("birthplace population", 20_000),
        ("holiday budget", 20_000), ("salary_per_day", 20_000),
    ],
)  # fmt: skip
def test_other_integers_are_no_dates(tmp_path, name, first):
    path = table_of(tmp_path / "t.csv", **{name: [first + i * 337 % 9_001 for i in range(N)]})
    assert "dates_as_numbers" not in {kind for kind, _ in kinds_of(inspect(path, target="y"))}


UNREAD = {
    "us dates": ([f"{1 + i % 12}/{1 + i % 28}/21" for i in range(N)], "unread_dates", "date:mm/dd/yy"),
    "either order": ([f"{1 + i % 12:02d}/{1 + i % 11:02d}/21" for i in range(N)], "unread_dates", None),
    "durations": ([f"{i % 40:02d}:{i:02d}" for i in range(N)], "unread_numbers", None),
    "months": ([f"2021-{1 + i % 12:02d}" for i in range(N)], "unread_numbers", None),
}


@pytest.mark.parametrize("name", UNREAD)
def test_texts_that_may_be_dates_or_numbers_are_found(tmp_path, name):
    """Without the finding, a column of different texts is left out as one that names the rows."""
    cells, kind, form = UNREAD[name]
    path = table_of(tmp_path / "t.csv", v=cells)
    own = next(finding for finding in inspect(path, target="y") if finding.kind.startswith("unread"))
    assert (own.kind, own.mend.get("kind")) == (kind, form)
    left_out = "v" in load(path, target="y")[2].left_out
    assert own.if_nothing.startswith("The column is left out" if left_out else "Each text is a category")
    if form:
        assert "v month" in load(path, target="y", given=ParsingChoices(kinds={"v": form}))[0].names


def test_ranges_of_numbers_are_categories(tmp_path):
    path = table_of(tmp_path / "t.csv", v=[f"{5 * (i % 12)}-{5 * (i % 12) + 4}" for i in range(N)])
    assert "unread_numbers" not in {kind for kind, _ in kinds_of(inspect(path, target="y"))}


@pytest.mark.parametrize(
    "form",
    ["0{0:03d} 248{0:04d}", "+49 697 77{0:05d}", "266-904-{0:04d}", "(266) 904-{0:04d}", "52541-{0:04d}", "10.0.7.{0}"],
)
def test_phone_numbers_and_addresses_are_no_unread_numbers(tmp_path, form):
    path = table_of(tmp_path / "t.csv", v=[form.format(i) for i in range(N)])
    assert "unread_numbers" not in {kind for kind, _ in kinds_of(inspect(path, target="y"))}


def test_class_of_one_row_is_found(tmp_path):
    path = table_of(tmp_path / "t.csv", y=["ab"[i % 2] for i in range(N - 1)] + ["Total"])
    own = next(finding for finding in inspect(path, target="y") if finding.kind == "rare_class")
    assert own.figure == "one class with one row: Total"


def test_leak_findings_name_column_figure_and_remedy(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i % 7},{'XY'[i % 3 == 0]},{'bg'[i % 3 == 0]}" for i in range(60)]
    path.write_text("\n".join(["age,code,outcome", *lines]) + "\n")
    table, labels, _ = load(path, target="outcome", ignore=[])
    leak, copies = leak_findings(table, labels, path)
    assert (leak.kind, leak.column, leak.mend) == ("leak", "code", {"column": "code", "role": "ignored"})
    assert leak.figure.startswith("60 of 60 rows right")
    assert (copies.kind, copies.figure) == ("equal_rows_across", "46 of 60 rows repeat another one")
    kept, labels, _ = load(path, target="outcome", ignore=["code"])
    assert {finding.kind for finding in leak_findings(kept, labels, path)} == {"equal_rows_across"}


def test_leak_of_a_date_leaves_out_all_its_parts(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [(i, f"{2021 + 3 * (i % 3 == 0)}-{1 + i % 12:02d}-{1 + i % 28:02d}", "bg"[i % 3 == 0]) for i in range(60)]
    path.write_text("\n".join(["n,settled,outcome", *(f"{i % 17}.{i},{day},{y}" for i, day, y in rows)]) + "\n")
    table, labels, _ = load(path, target="outcome", ignore=[])
    (leak,) = (finding for finding in leak_findings(table, labels, path) if finding.kind == "leak")
    assert leak.column.startswith("settled ")
    assert leak.mend["column"] == "settled"
    assert set(leak.mend["columns"]) == {name for name in table.names if name.startswith("settled ")}
    kept, labels, _ = load(path, target="outcome", ignore=[leak.mend["column"]])
    assert kept.names == ("n",)
    assert not leak_findings(kept, labels, path)


def test_leak_findings_include_late_dates_and_telling_gaps(tmp_path):
    path = tmp_path / "rows.csv"
    lines = []
    for i in range(120):
        is_bad = i % 3 == 0
        closed = f"2024-02-{1 + i % 27:02d}" if is_bad else ""
        score = "" if is_bad and i % 2 else f"{i % 11}.{i}"
        lines.append(f"2024-01-{1 + i % 27:02d},{closed},{score},{'bad' if is_bad else 'good'}")
    path.write_text("\n".join(["opened,closed,score,outcome", *lines]) + "\n")
    table, labels, _ = load(path, target="outcome", ignore=[], default_missing="learn")
    columns = {finding.kind: finding.column for finding in leak_findings(table, labels, path)}
    assert (columns["date_after_outcome"], columns["emptiness_predicts"]) == ("closed", "score")


@pytest.mark.parametrize("digits", ["٠١٢٣٤٥٦٧٨٩", "０１２３４５６７８９", "०१२३४५६७८९"])
@pytest.mark.parametrize("every", [1, 2])
def test_fit_with_digits_of_another_alphabet_warns(digits, every):
    foreign = str.maketrans("0123456789", digits)
    texts = [str(i).translate(foreign) if i % every == 0 else str(i) for i in range(64)]
    with pytest.warns(UserWarning, match="Column 'v': its 64 different texts are numbers, and each is a category"):
        trainer.make_classifier("cart", depth=1).fit(pd.DataFrame({"v": texts}), np.arange(64) > 31)


@pytest.mark.parametrize("width", [4, 8, 32])
def test_hexadecimal_identifiers_are_left_out(tmp_path, width):
    """Most of these texts have only decimal digits, others have letters."""
    texts = [f"{i:0{width}x}" for i in range(300)]
    table, _, report = load(table_of(tmp_path / "t.csv", key=texts), target="y")
    assert (table.names, list(report.left_out)) == (("size",), ["key"])


def test_numbers_with_a_word_in_hexadecimal_digits_are_kept(tmp_path):
    texts = [str(1000 + 7 * i) for i in range(299)] + ["dead"]
    assert load(table_of(tmp_path / "t.csv", key=texts), target="y")[0].names == ("key", "size")


@pytest.mark.parametrize("name", ["code", "product_code", "Barcode", "serial", "sku"])
@pytest.mark.parametrize(("each", "digits"), [(1, 4), (1, 6), (2, 6)])
def test_different_codes_name_the_rows(tmp_path, name, each, digits):
    numbers = np.random.default_rng(digits).choice(
        np.arange(10 ** (digits - 1), 10**digits), 200 // each, replace=False
    )
    path = table_of(tmp_path / "t.csv", **{name: np.repeat(numbers, each).tolist()}, y=["a", "b"] * 100)
    table, _, report = load(path, target="y")
    assert (table.names, list(report.left_out)) == (("size",), [name])
    own = next(finding for finding in inspect(path, target="y") if finding.kind == "identifier")
    assert own.figure.startswith(f"{200 // each} different values; it is called '{name}' and names ")


@pytest.mark.parametrize(
    "name", ["code", "zip_code", "area code", "ICD-code", "country_code", "naics code", "codes", "encode"]
)
def test_codes_of_classes_and_places_are_features(tmp_path, name):
    """A code in rows of different number classifies them; codes of places and classes do so even if all differ."""
    numbers = np.random.default_rng(4).choice(np.arange(1000, 9999), 60, replace=False).tolist()
    cells = numbers[:30] * 2 + numbers[:20] if name == "code" else numbers
    path = table_of(tmp_path / "t.csv", **{name: cells}, y=["a", "b"] * (len(cells) // 2))
    assert load(path, target="y")[0].names == (name, "size")


@pytest.mark.parametrize(("name", "severity"), [("id", "low"), ("v", "medium")])  # low: it is left out
def test_identifier_with_copied_rows_is_found(tmp_path, name, severity):
    """The same table without its ten copies has the finding, too."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({name: rng.permutation(np.arange(1000, 1200)), "size": rng.normal(size=200).round(2)})
    frame["y"] = rng.choice(["p", "q"], 200)
    for table in (frame, pd.concat([frame, frame.sample(10, random_state=1)])):
        path = tmp_path / "t.csv"
        table.to_csv(path, index=False)
        own = next(one for one in inspect(path, target="y") if one.kind == "identifier")
        assert (own.column, own.severity) == (name, severity)
    assert name == "id" or "all 200 numbers but 10 are in one row each" in own.figure


def test_measure_with_few_equal_numbers_is_no_identifier():
    values = np.sort(np.random.default_rng(2).choice(40_000, 200, replace=False)).astype(float)
    values[5:9] = values[4]
    assert numbers_rows("v", values) == may_number_rows(values) == ""


@pytest.mark.parametrize("copied", [0, 6])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_number_of_the_case_with_several_rows_is_found(tmp_path, copied, order):
    rng = np.random.default_rng(8)
    persons = [*np.repeat(np.arange(1, 51), 4), *rng.choice(50, copied, replace=False) + 1]
    persons = sorted(persons) if order == "sorted" else rng.permutation(persons)
    lines = [f"{person},{rng.normal():.2f},{'ab'[int(rng.integers(2))]}" for person in persons]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["person,x,y", *lines]) + "\n")
    (own,) = (finding for finding in inspect(path, target="y") if finding.kind == "identifier")
    assert own.column == "person"
    assert "4 rows" in own.figure
    assert own.severity == ("low" if order == "sorted" else "medium")  # a counter is left out already


def test_number_with_uneven_repeats_is_no_identifier(tmp_path):
    rng = np.random.default_rng(8)
    path = table_of(tmp_path / "t.csv", v=rng.integers(1, 30, N).tolist())
    assert ("identifier", "v") not in kinds_of(inspect(path, target="y"))
