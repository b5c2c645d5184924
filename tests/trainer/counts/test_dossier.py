"""A dossier from counts states what a dossier from the rows states, and names what only rows show."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.trainer.counts.tables import KEY, TARGET, counted, write_rows
from trainer.counts.folder import read_counts, suppress_small, write_counts
from trainer.counts.train import train_counts
from trainer.data.reader import load
from trainer.dossier import dossier
from trainer.errors import DataError, ModelFileError
from trainer.training.run import TrainRequest, train
from trainer.tree.file import write

PARAMETERS = {"depth": 2, "leaf_penalty": 0.02}


@pytest.fixture
def files(tmp_path):
    """Provide a folder with rows that a single tree fits best, their counts with folds, and a model of each."""
    rng = np.random.default_rng(3)
    rows = [["a", "colour", KEY, TARGET]]
    for i in range(200):
        a = int(rng.integers(0, 9))
        colour = str(rng.choice(["red", "green", "blue"]))
        label = (a > 3) ^ (colour == "red") ^ (rng.random() < 0.1)
        rows.append([str(a), colour, f"p{i % 20}", f"c{int(label)}"])
    path = write_rows(rows, tmp_path / "rows.csv")
    counts = counted(path, tmp_path / "counts", depth=2, folds=3, key=KEY)
    write(train_counts(counts, PARAMETERS).model, tmp_path / "counted.json")
    table, labels, _ = load(path, target=TARGET, ignore=[KEY])
    request = TrainRequest(table=table, labels=labels, method="exact", parameters=PARAMETERS | {"bins": 4})
    write(train(request).model, tmp_path / "plain.json")
    return tmp_path


def test_dossier_of_counts_agrees_with_that_of_rows(files):
    of_counts = dossier(files / "counted.json", files / "counts")
    of_rows = dossier(files / "plain.json", files / "rows.csv")
    measured = [json.dumps(record["performance"]["training"]) for record in (of_counts, of_rows)]
    assert (
        len({json.dumps(json.loads(text, parse_float=lambda digits: round(float(digits), 9))) for text in measured})
        == 1
    )
    for name in ("classes", "rows", "rows_used", "training_rows", "unseen_rows", "rows_left_out"):
        assert of_counts["data"][name] == of_rows["data"][name], name
    promised = [[leaf["promised"] for leaf in record["calibration"]] for record in (of_counts, of_rows)]
    assert promised[0] == promised[1]
    # counts have no side for empty cells of a column without any, and say so
    more = set(of_counts["limits_of_use"]["sentences"]) ^ set(of_rows["limits_of_use"]["sentences"])
    assert more == {"A row with an empty cell in one of these columns gets no answer: a."}
    assert of_counts["check"]["verdict"] == "proved"
    json.dumps(of_counts, allow_nan=False)


def test_dossier_of_counts_names_what_only_rows_show(files):
    record = dossier(files / "counted.json", files / "counts")
    assert (record["error_floor"], record["data"]["findings"], record["data"]["fingerprint"]) == (None, None, None)
    assert {c["smallest"] for c in record["data"]["columns"] if c["kind"] != "categorical"} == {None}
    assert record["stability"]["agreement"] == []
    assert record["stability"]["trees"] == 3
    assert record["performance"]["cross_validation"]["folds"] == 3
    assert len(record["not_known"]) == 5
    with pytest.raises(DataError, match="groups"):
        dossier(files / "counted.json", files / "counts", groups=["a"])


def test_dossier_of_secret_counts_is_refused(files):
    counts = counted(files / "rows.csv", files / "open", depth=2)
    secret = suppress_small(counts, 3)
    write_counts(secret, files / "secret")
    write(train_counts(read_counts(files / "secret"), PARAMETERS).model, files / "secret.json")
    with pytest.raises(ModelFileError, match="secret"):
        dossier(files / "secret.json", files / "secret")
