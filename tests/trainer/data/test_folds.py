"""Held-out rows and folds by groups and times: properties, brute force, and messy columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from trainer.data.dealing import deal_groups, imbalance
from trainer.data.folds import Folds, assign_folds, holdout, inner_folds, stratified_folds
from trainer.data.reader import load
from trainer.errors import DataError, ParameterError
from trainer.table import RowGroups, RowTimes, Table, numeric_table

TABLES = 200


def random_table(seed: int, *, group: bool, time: bool) -> tuple[np.ndarray, Table]:
    """Return classes and a table. The group column may name each row only once, and times repeat."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 120))
    codes = rng.integers(0, int(rng.integers(2, 4)), n).astype(np.int32)
    table = numeric_table(rng.normal(size=(n, 1)))
    groups = RowGroups(column="person", codes=rng.integers(0, int(rng.integers(20, 60)), n)) if group else None
    values = rng.integers(0, int(rng.integers(12, 300)), n).astype(float)
    if group and time:  # persons come and go, so some person is gone before any fold begins
        assert groups is not None
        values = groups.codes * 5.0 + rng.integers(0, 7, n)
    times = RowTimes(column="day", values=values) if time else None
    return codes, Table(columns=table.columns, row_numbers=table.row_numbers, groups=groups, times=times)


def assert_apart(table: Table, train: np.ndarray, judged: np.ndarray) -> None:
    """Assert that no row and no group is on both sides, and that each training row is earlier than the judged ones."""
    assert len(train)
    assert len(judged)
    assert not set(train) & set(judged)
    if table.groups is not None:
        assert not set(table.groups.codes[train]) & set(table.groups.codes[judged])
    if table.times is not None:
        assert table.times.values[train].max() < table.times.values[judged].min()


@pytest.mark.parametrize(("group", "time"), [(True, False), (False, True), (True, True)])
def test_folds_of_random_tables_keep_groups_and_times_apart(group, time):
    for seed in range(TABLES):
        codes, table = random_table(seed, group=group, time=time)
        folds = assign_folds(codes, 4, seed, table)
        for fold in range(4):
            assert_apart(table, folds.training(fold), folds.validation(fold))
        counted = np.bincount(folds.of_row[folds.of_row >= 0], minlength=4)
        assert (counted > 0).all()
        assert (folds.of_row >= 0).all() is np.True_ or time
        again = assign_folds(codes, 4, seed, table)
        assert (again.of_row == folds.of_row).all()


@pytest.mark.parametrize(("group", "time"), [(True, False), (False, True), (True, True)])
def test_holdout_of_random_tables_keeps_groups_and_times_apart(group, time):
    for seed in range(TABLES):
        codes, table = random_table(seed, group=group, time=time)
        train, test = holdout(codes, 0.3, seed, table)
        assert_apart(table, train, test)
        if not (group and time):
            assert len(train) + len(test) == len(codes)
        else:
            aside = np.setdiff1d(np.arange(len(codes)), np.concatenate([train, test]))
            assert set(table.groups.codes[aside]) <= set(table.groups.codes[test])


def test_two_folds_left_out_train_without_both_of_them():
    for seed in range(50):
        codes, table = random_table(seed, group=True, time=seed % 2 == 1)
        folds = assign_folds(codes, 3, seed, table)
        for fold, other in itertools.combinations(range(3), 2):
            train = folds.training(fold, other)
            for judged in (folds.validation(fold, other), folds.validation(other, fold)):
                assert not set(table.groups.codes[train]) & set(table.groups.codes[judged])
                if table.times is not None and len(train) and len(judged):
                    assert table.times.values[train].max() < table.times.values[judged].min()


def test_dealing_tiny_cases_is_nearly_as_even_as_brute_force():
    optimal = 0
    excess = []
    rng = np.random.default_rng(0)
    for case in range(120):
        groups = int(rng.integers(3, 8))
        parts = min(int(rng.integers(2, 4)), groups) if case % 2 else 2
        counts = rng.integers(0, 6, (groups, int(rng.integers(2, 4))))
        counts[:, 0] += 1
        shares = np.full(parts, 1 / parts) if case % 2 else np.array([0.7, 0.3])
        part = deal_groups(counts, shares, case)
        own = imbalance(counts, part, shares)
        every = (np.array(p) for p in itertools.product(range(parts), repeat=groups) if len(set(p)) == parts)
        best = min(imbalance(counts, p, shares) for p in every)
        assert own >= best - 1e-9
        optimal += own <= best + 1e-9
        excess.append(own - best)
    assert optimal >= 0.75 * len(excess)
    assert np.mean(excess) < 0.15


def test_equal_groups_are_dealt_as_rows_are():
    codes = np.repeat([0, 1], [30, 30]).astype(np.int32)
    groups = RowGroups(column="person", codes=np.repeat(np.arange(20), 3))
    table = Table(columns=numeric_table(np.zeros((60, 1))).columns, row_numbers=np.arange(60), groups=groups)
    counts = assign_folds(codes, 5, 0, table).counts(codes, 2)
    assert [record["classes"] for record in counts] == [[6, 6]] * 5
    assert [record["groups"] for record in counts] == [4] * 5
    assert [record["training_rows"] for record in counts] == [48] * 5


def test_rows_without_groups_and_times_are_dealt_as_before():
    codes, table = random_table(3, group=False, time=False)
    assert (assign_folds(codes, 5, 3, table).of_row == stratified_folds(codes, 5, 3)).all()
    assert assign_folds(codes, 5, 3).signs.isdigit()


def test_fewer_groups_than_folds_is_an_error_with_the_count():
    codes = np.array([0, 1] * 10, np.int32)
    table = numeric_table(np.zeros((20, 1)))
    bound = Table(
        columns=table.columns, row_numbers=table.row_numbers, groups=RowGroups(column="ward", codes=np.arange(20) % 3)
    )
    with pytest.raises(ParameterError, match="'ward' has three groups, too few for 5 folds"):
        assign_folds(codes, 5, 0, bound)
    assert inner_folds(codes, 5, 0, bound).count == 3
    one = Table(columns=table.columns, row_numbers=table.row_numbers, groups=RowGroups(column="ward", codes=codes * 0))
    assert inner_folds(codes, 5, 0, one) is None
    with pytest.raises(ParameterError, match="'ward' has one group only"):
        holdout(codes, 0.2, 0, one)


def test_fewer_times_than_folds_need_is_an_error():
    codes = np.array([0, 1] * 10, np.int32)
    table = numeric_table(np.zeros((20, 1)))
    bound = Table(
        columns=table.columns, row_numbers=table.row_numbers, times=RowTimes(column="year", values=codes.astype(float))
    )
    with pytest.raises(ParameterError, match="'year' has two different times; 5 folds need 6"):
        assign_folds(codes, 5, 0, bound)
    train, test = holdout(codes, 0.2, 0, bound)
    assert (codes[test] == 1).all()
    assert (codes[train] == 0).all()


def test_overlapping_groups_leave_no_training_rows():
    codes = np.array([0, 1] * 10, np.int32)
    table = numeric_table(np.zeros((20, 1)))
    bound = Table(
        columns=table.columns,
        row_numbers=table.row_numbers,
        groups=RowGroups(column="shop", codes=np.arange(20) % 4),
        times=RowTimes(column="month", values=np.arange(20) // 4 * 1.0),
    )
    with pytest.raises(ParameterError, match="Use 'shop' or 'month', not both"):
        holdout(codes, 0.2, 0, bound)
    with pytest.raises(ParameterError, match="before the rows of fold 1"):
        assign_folds(codes, 3, 0, bound)


def test_forward_folds_have_about_equal_rows_and_keep_ties():
    times = RowTimes(column="day", values=np.repeat(np.arange(30.0), 4))
    table = numeric_table(np.zeros((120, 1)))
    bound = Table(columns=table.columns, row_numbers=table.row_numbers, times=times)
    folds = assign_folds(np.zeros(120, np.int32), 5, 0, bound)
    assert np.bincount(folds.of_row + 1).tolist() == [20] * 6
    assert folds.signs == "-" * 20 + "".join(str(f) * 20 for f in range(5))


def test_folds_without_times_train_on_all_other_rows():
    folds = Folds(of_row=np.array([0, 1, 2, 0]), count=3)
    assert folds.training(0).tolist() == [1, 2]
    assert folds.training(0, 2).tolist() == [1]
    assert folds.validation(0).tolist() == [0, 3]


# The tests below read groups and times from columns of a file.


def write(tmp_path, days: list[str], people: list[str]):
    path = tmp_path / "rows.csv"
    cells = zip(days, people, strict=True)
    lines = [f"{day};{person};{i % 7};{'ab'[i % 3 == 0]}" for i, (day, person) in enumerate(cells)]
    path.write_text("day;person;x;class\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_dates_of_a_messy_column_order_the_rows(tmp_path):
    days = [f"{1 + i % 28:02}.{1 + i % 12:02}.{2020 + i % 3}" for i in range(60)]
    table, *_ = load(write(tmp_path, days, ["p"] * 60), target="class", time="day")
    expected = sorted(range(60), key=lambda i: tuple(reversed(days[i].split("."))))
    assert np.argsort(table.times.values, kind="stable").tolist() == expected
    assert table.times.form["form"] == "dd.mm.yyyy"


def test_group_column_is_no_question_and_empty_cells_are_groups(tmp_path):
    people = ["ann", "bob", "", "NA", "ann "] * 12
    table, _, report = load(write(tmp_path, ["3"] * 30 + ["4"] * 30, people), target="class", group="person")
    assert "person" not in table.names
    assert len(np.unique(table.groups.codes)) == 2 + 24
    assert table.groups.empty == 24
    assert any("24 empty cells; each of these rows is a group of its own" in note for note in report.notes)


def test_ignored_columns_still_group_and_order_rows(tmp_path):
    path = write(tmp_path, [f"2024-01-{1 + i % 30:02}" for i in range(60)], [f"p{i // 6}" for i in range(60)])
    table, *_ = load(path, target="class", group="person", time="day", ignore=["person", "day"])
    assert table.names == ("x",)
    assert len(np.unique(table.groups.codes)) == 10
    assert table.take(np.arange(5)).times.values.shape == (5,)


def test_groups_follow_the_rows_that_empty_cells_leave(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{'' if i % 5 == 0 else i},p{i // 4},{'ab'[i % 2]}" for i in range(40)]
    path.write_text("x,person,class\n" + "\n".join(lines) + "\n", encoding="utf-8")
    table, *_ = load(path, target="class", group="person", default_missing="drop")
    kept = [i for i in range(40) if i % 5]
    assert len(table) == 32
    assert [len({table.groups.codes[kept.index(i)] for i in kept if i // 4 == g}) for g in range(10)] == [1] * 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": "persn"}, "no group column 'persn' in the file. Did you mean 'person'"),
        ({"time": "when"}, "no time column 'when' in the file"),
        ({"group": "class"}, "'class' is the target, so it cannot be the group column"),
        ({"group": "day", "time": "day"}, "'day' cannot be the group column and the time column"),
        ({"time": "person"}, "'person' cannot order the rows: line 2 has 'p0'"),
    ],
)
def test_bad_group_or_time_column_is_refused(tmp_path, options, message):
    path = write(tmp_path, [str(i) for i in range(40)], [f"p{i // 4}" for i in range(40)])
    with pytest.raises(DataError, match=message):
        load(path, target="class", **options)


def test_empty_time_is_refused_with_its_line(tmp_path):
    days = ["2024-01-02"] * 20 + ["", "?"] + ["2024-02-02"] * 20
    with pytest.raises(DataError, match="'day' has 2 empty cells, the first in line 22"):
        load(write(tmp_path, days, ["p"] * 42), target="class", time="day")


def test_time_of_day_does_not_order_days(tmp_path):
    days = [f"{i % 24:02}:30" for i in range(48)]
    with pytest.raises(DataError, match="cannot order the rows"):
        load(write(tmp_path, days, ["p"] * 48), target="class", time="day")
