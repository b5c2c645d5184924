"""The checker repeats the assignment by groups and times, and refutes false ones."""

from __future__ import annotations

import copy
import datetime
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from tests.seeds import seeds
from trainer.check.recount import verify
from trainer.check.recount.table.dependent import deal
from trainer.check.recount.trees.intervals import _student
from trainer.data.dealing import deal_groups
from trainer.data.reader import load
from trainer.errors import DataError
from trainer.training.run import TrainRequest, train

GROUP = {"group": "person"}
TIME = {"time": "day"}
BOTH = GROUP | TIME


def csv_text(seed: int = 0) -> str:
    """Return rows of 24 persons, a few rows without a person, German dates, and empty cells in a column."""
    rng = np.random.default_rng(seed)
    lines = ["person;day;x;z;class"]
    for person in range(24):
        first = datetime.date(2023, 5, 1) + datetime.timedelta(days=int(rng.integers(0, 400)))
        for _ in range(int(rng.integers(1, 7))):
            day = first + datetime.timedelta(days=int(rng.integers(0, 9)))
            x = rng.integers(0, 9)
            name = "" if rng.random() < 0.05 else f"p {person}"
            z = "" if rng.random() < 0.1 else rng.integers(0, 4)
            lines.append(f"{name};{day:%d.%m.%Y};{x};{z};{'ab'[int((x > 4) ^ (rng.random() < 0.2))]}")
    head, *rows = lines
    order = rng.permutation(len(rows))
    return "\n".join([head, *(rows[i] for i in order)]) + "\n"


@cache
def trained(names: tuple[tuple[str, str], ...], test_share: float, folds: int, seed: int) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(csv_text(seed), encoding="utf-8")
        table, labels, _ = load(path, target="class", ignore=["day"], default_missing="drop", **dict(names))
    request = TrainRequest(
        table=table,
        labels=labels,
        method="exact",
        parameters={"depth": 1, "seed": seed},
        test_share=test_share,
        folds=folds,
    )
    return train(request).model.to_json()


def model_of(options: dict[str, str], *, test_share: float = 0.3, folds: int = 3, seed: int = 0) -> dict[str, Any]:
    return copy.deepcopy(trained(tuple(options.items()), test_share, folds, seed))


def check(document: dict[str, Any], folder: Path, seed: int = 0) -> dict[str, str]:
    (folder / "rows.csv").write_text(csv_text(seed), encoding="utf-8")
    (folder / "model.json").write_text(json.dumps(document), encoding="utf-8")
    findings = verify(folder / "model.json", folder / "rows.csv")
    return {f.claim: f.verdict for f in findings}


@pytest.mark.slow
@pytest.mark.parametrize("options", [GROUP, TIME, BOTH])
@seeds(4)
def test_assignment_of_messy_tables_is_repeated(tmp_path, options, seed):
    verdicts = check(model_of(options, seed=seed), tmp_path, seed)
    assert verdicts["rows held out"] == verdicts["folds"] == verdicts["folds counted"] == "recounted"
    assert "refuted" not in verdicts.values()
    assert verdicts["metrics cross_validation interval"] == "recounted"
    assert ("metrics test interval" in verdicts) is ("group" in options)


@pytest.mark.parametrize("options", [GROUP, TIME, BOTH])
@pytest.mark.parametrize(
    ("claim", "name", "one", "other"), [("folds", "folds", "0", "2"), ("rows held out", "held_out", "0", "1")]
)
def test_rows_that_change_sides_are_refuted(tmp_path, options, claim, name, one, other):
    """A row that is alone in its group may be on either side, but here it is not where the seed puts it."""
    signs = model_of(options)["rows"][name]
    found = []
    for place in [i for i, sign in enumerate(signs) if sign == one][:6]:
        document = model_of(options)
        document["rows"][name] = signs[:place] + other + signs[place + 1 :]
        found.append(check(document, tmp_path)[claim])
    assert set(found) <= {"refuted", "cannot be judged"}
    assert "refuted" in found


def test_rows_left_out_without_their_group_are_refuted(tmp_path):
    document = model_of(TIME)
    document["rows"]["held_out"] = document["rows"]["held_out"].replace("0", "2", 1)
    assert check(document, tmp_path)["rows held out"] == "refuted"


def test_another_choice_of_groups_is_not_proved(tmp_path):
    document = model_of(GROUP)
    document["parameters"]["seed"] = 5
    verdicts = check(document, tmp_path)
    assert verdicts["folds"] == verdicts["rows held out"] == "cannot be judged"


def test_flattering_interval_and_counts_are_refuted(tmp_path):
    for part in ("test", "cross_validation"):
        document = model_of(GROUP)
        low, high = document["metrics"][part]["interval"]
        middle = (low + high) / 2
        document["metrics"][part]["interval"] = [middle - (high - low) / 4, middle + (high - low) / 4]
        assert check(document, tmp_path)[f"metrics {part} interval"] == "refuted"
        document = model_of(GROUP)
        document["metrics"][part]["groups"] += 1
        assert check(document, tmp_path)[f"metrics {part} interval"] == "refuted"
    document = model_of(TIME)
    document["metrics"]["cross_validation"]["interval"][0] += 0.1
    assert check(document, tmp_path)["metrics cross_validation interval"] == "refuted"
    document = model_of(GROUP)
    document["metrics"]["cross_validation"]["by_fold"][0]["groups"] -= 1
    assert check(document, tmp_path)["folds counted"] == "refuted"


def test_file_without_its_group_column_is_not_read(tmp_path):
    document = model_of(GROUP)
    document["rows"]["group"]["column"] = "family"
    (tmp_path / "rows.csv").write_text(csv_text(), encoding="utf-8")
    (tmp_path / "model.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match="family"):
        verify(tmp_path / "model.json", tmp_path / "rows.csv")


@seeds(30)
def test_dealing_of_checker_and_trainer_agree(seed):
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(5, 120))
    counts = rng.integers(0, 9, (groups, int(rng.integers(2, 5))))
    counts[:, 0] += 1
    shares = np.array([0.8, 0.2]) if seed % 2 else np.full(5, 0.2)
    assert (deal(counts, shares, seed) == deal_groups(counts, shares, seed)).all()


def test_quantile_of_student_agrees_with_scipy():
    """The checker has a private function for this, because it does not use SciPy."""
    from scipy.stats import t

    for freedom in (1, 2, 3, 10, 39, 999):
        assert _student(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-4)
