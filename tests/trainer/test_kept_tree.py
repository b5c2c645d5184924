"""The tree recovered from a killed training is its last reported tree, counted again."""

from __future__ import annotations

import io
import json
from functools import partial

import numpy as np
import pytest

from tests.octweb.small_models import small_table
from trainer.certificate import Status
from trainer.errors import SolverError
from trainer.table import Labels
from trainer.training.recovery import left_in
from trainer.training.run import TrainRequest, progress_writer, train, training_problem


@pytest.fixture
def request_():
    table, labels = small_table()
    return TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 2, "leaf_penalty": 0.01})


@pytest.fixture
def progress(request_, tmp_path):
    """Provide the file of the progress of a training that ended. Its lines are as they were during the training."""
    stream = io.StringIO()
    problem = training_problem(request_)
    train(request_, sink=progress_writer(stream, lambda: problem))
    path = tmp_path / "progress.jsonl"
    path.write_text(stream.getvalue())
    return path


def keep(request_, left):
    from dataclasses import replace

    return train(replace(request_, left=left), on_start=partial(_stop, Status.MEMORY_LIMIT))


def _stop(why, monitor):
    monitor.stop(why)


def test_recovered_tree_has_its_bound_and_is_never_optimal(request_, progress):
    result = train(request_)
    found = keep(request_, left_in(progress))
    assert found.tree.to_json() == result.tree.to_json()
    assert found.certificate.status is Status.MEMORY_LIMIT
    assert found.certificate.bound == pytest.approx(result.certificate.bound)
    assert found.certificate.unproved
    assert found.summary["status"] == "memory_limit"


def test_truncated_line_is_skipped(request_, progress):
    lines = [line for line in progress.read_text().splitlines() if "tree" in json.loads(line)]
    progress.write_text(lines[0] + "\n" + lines[0][: len(lines[0]) // 2])
    assert keep(request_, left_in(progress)).certificate.correct == json.loads(lines[0])["correct"]


def test_missing_files_are_reported(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_text('{"t": 0.1, "phase": "start"}\n')
    with pytest.raises(SolverError, match="no tree yet"):
        left_in(path)
    path.write_text('{"t": 0.1, "incumbent": 0.5}\n')
    with pytest.raises(SolverError, match="never saved"):
        left_in(path)
    path.write_text('{"t": 0.1, "leaves": 1200}\n')
    with pytest.raises(SolverError, match=r"1,200 leaves, could not be recovered"):
        left_in(path)
    path.write_text('{"t": 0.1, "leaves": 2, "tree": [{"id": 0}], "columns": [], "classes": ["a"]}\n')
    with pytest.raises(SolverError, match="progress file is damaged"):
        left_in(path)


def test_start_tree_is_recovered_only_if_it_is_the_incumbent(request_, tmp_path):
    result = train(request_)
    path = tmp_path / "progress.jsonl"
    for worth, kept in ((result.certificate.objective, True), (0.999, False)):
        path.write_text(json.dumps({"t": 0.1, "incumbent": worth}) + "\n")
        left = left_in(path, result.tree)
        if kept:
            assert keep(request_, left).tree.to_json() == result.tree.to_json()
            continue
        with pytest.raises(SolverError, match="differs from the start tree"):
            keep(request_, left)


def test_bound_below_the_tree_is_rejected(request_, progress):
    with progress.open("a") as stream:
        stream.write('{"t": 1.0, "bound": 0.01}\n')
    with pytest.raises(SolverError, match="lies below"):
        keep(request_, left_in(progress))


def test_recovery_keeps_nothing_without_a_reported_tree(progress):
    table, labels = small_table()
    yes = Labels(name="class", classes=("no", "yes"), codes=np.minimum(labels.codes, 1))
    request = TrainRequest(table=table, labels=yes, method="odt", parameters={"depth": 2, "sensitivity": 0.5})
    with pytest.raises(SolverError, match="only the search itself"):
        keep(request, left_in(progress))
