"""Files of rows of a recorded model: each row of a result has exactly one record, whatever is killed."""

from __future__ import annotations

import csv
import io
import json
import threading

import numpy as np
import pytest
from django.db import OperationalError

from octweb.batch import actions as batch
from octweb.batch import recorded as batch_recorded
from octweb.batch.models import BatchPrediction
from octweb.batch.work import PredictionSupervisor
from octweb.core.spool import FrameKind
from octweb.decisions import collecting
from octweb.decisions.audited import audit_decisions
from octweb.decisions.models import ChainEntry
from octweb.decisions.reading import decision_json, find_decision
from octweb.decisions.replaying import replay
from octweb.jobs.models import RunStatus
from octweb.registry.document.model_files import model_file
from octweb.registry.prediction.recording import recorder_of
from tests.octweb.batch.conftest import rows_csv, work  # noqa: F401
from trainer.prediction.recorded_rows import RecordedColumns, RecordedPiece, read_pieces

pytestmark = pytest.mark.django_db


@pytest.fixture
def new_job(recorded, media):
    def make(**options):
        return batch.enqueue(
            owner=recorded.owner,
            model=recorded,
            file=rows_csv(),
            source_name="rows.csv",
            options=batch.BatchOptions(**options),
        )

    return make


def result_rows(job):
    with job.result.open("rb") as stream:
        return list(csv.DictReader(io.StringIO(stream.read().decode())))


@pytest.mark.slow
def test_each_row_of_a_result_has_its_record(new_job, work, recorded, spool):  # noqa: F811
    job = new_job(keep_columns=True)
    assert work(job) == RunStatus.SUCCEEDED
    rows = result_rows(job)
    assert not ChainEntry.objects.exists()
    collecting.collect()
    assert list(spool.iterdir()) == []
    entries = list(ChainEntry.objects.filter(kind="decision").order_by("number"))
    assert [str(entry.key) for entry in entries] == [row["decision"] for row in rows]
    tree = model_file(recorded).tree
    for place, (entry, row) in enumerate(zip(entries, rows, strict=True)):
        payload = json.loads(entry.payload)
        assert (payload["row"], payload["call"], payload["by"]) == (place, str(job.pk), f"user {job.owner_id}")
        assert (entry.leaf, tree.classes[entry.label]) == (int(row["leaf"]), row["label"])
        number = float(np.frombuffer(bytes.fromhex(payload["values"]["width"]["bits"]), ">f8")[0])
        assert number == float(row["width"])
    assert audit_decisions().problems == []
    assert replay("", "", None).different == []
    first = decision_json(find_decision(recorded.owner, entries[0].key))
    assert (first["api"], first["answered_again"]) == ("file", "same")


@pytest.mark.django_db(transaction=True)
def test_failed_attempt_leaves_no_record_and_a_retry_one_each(new_job, work, spool, monkeypatch):  # noqa: F811
    job = new_job()
    end = PredictionSupervisor.end
    calls = []

    def fail_once(self, status, **fields):
        calls.append(status)
        if len(calls) == 1:
            raise OperationalError("the connection is gone")
        return end(self, status, **fields)

    this_thread = threading.current_thread()

    def collect_in_pause(seconds):
        if threading.current_thread() is this_thread:  # other threads sleep, too, and at any time
            collecting.collect()

    monkeypatch.setattr(PredictionSupervisor, "end", fail_once)
    monkeypatch.setattr("octweb.jobs.supervisor.time.sleep", collect_in_pause)
    assert work(job) == RunStatus.SUCCEEDED
    assert calls == [RunStatus.SUCCEEDED] * 2
    assert not ChainEntry.objects.exists()
    collecting.collect()
    assert ChainEntry.objects.filter(kind="decision").count() == len(result_rows(job))
    assert audit_decisions().problems == []


@pytest.mark.parametrize(
    ("status", "attempt", "is_kept", "is_revealed"),
    [
        (RunStatus.SUCCEEDED, 1, False, True),
        (RunStatus.SUCCEEDED, 2, False, False),
        (RunStatus.FAILED, 1, False, False),
        (RunStatus.RUNNING, 1, True, False),
        (RunStatus.RUNNING, 2, False, False),
        (RunStatus.QUEUED, 1, True, False),
    ],
)
def test_collector_reads_the_attempt_that_succeeded(
    new_job, recorded, spool, tmp_path, status, attempt, is_kept, is_revealed
):
    job = new_job()
    job.attempt = 1
    rows = tmp_path / "rows"
    tree = model_file(recorded).tree
    with rows.open("wb") as stream:
        RecordedColumns(tree, stream, "").of(np.zeros((3, 4)), np.ones(3, bool))
    writer = batch_recorded.FileRecorder(job, recorder_of(recorded))
    writer.spool(rows)
    writer.spool(rows)
    BatchPrediction.objects.filter(pk=job.pk).update(status=status, attempt=attempt)
    batch_recorded.reveal_finished()
    assert len(list(spool.glob("*.spool.*"))) == is_kept
    assert len(list(spool.glob("*.spool"))) == is_revealed
    collecting.collect()
    assert ChainEntry.objects.count() == 3 * is_revealed


def test_rows_without_an_answer_are_refused_records(new_job, recorded, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_recorded, "FRAME_ROWS", 2)
    usable = np.array([1, 1, 1, 0, 0, 1], bool)
    cells = np.zeros((6, len(model_file(recorded).tree.used_columns)))
    cells[~usable, 0] = np.nan
    runs = list(batch_recorded._runs(usable))
    assert runs == [(0, 2), (2, 3), (3, 4), (4, 5), (5, 6)]
    job = new_job()
    writer = batch_recorded.FileRecorder(job, recorder_of(recorded))
    piece = RecordedPiece(cells, usable, np.zeros(6, np.int32))
    frames = [writer._frame(piece, 10, slice(*run)) for run in runs]
    assert [(kind, rows) for kind, _, rows in frames] == [
        (FrameKind.ROWS, 2), (FrameKind.ROWS, 1), (FrameKind.REFUSED, 1), (FrameKind.REFUSED, 1), (FrameKind.ROWS, 1),
    ]  # fmt: skip
    refused = json.loads(frames[2].parts[0])
    assert (refused["row"], refused["reason"], int(refused["id"][-8:], 16)) == (13, "empty", 13)


def test_pieces_are_read_as_they_were_written(recorded, tmp_path):
    tree = model_file(recorded).tree
    rng = np.random.default_rng(1)
    path = tmp_path / "rows"
    written = []
    with path.open("wb") as stream:
        columns = RecordedColumns(tree, stream, "0123-")
        for n in (3, 1, 5):
            matrix = rng.integers(0, 2, (n, 4)).astype(float)
            written.append((matrix[:, list(tree.used_columns)], tree.apply(matrix)))
            assert len(columns.of(matrix, np.ones(n, bool))[-1]) == n
        assert columns.of(np.zeros((1, 4)), np.ones(1, bool))[-1] == ["0123-00000009"]
    with path.open("rb") as stream:
        pieces = list(read_pieces(stream))
    assert len(pieces) == 4
    for (cells, leaves), piece in zip(written, pieces, strict=False):
        assert np.array_equal(cells, piece.cells)
        assert np.array_equal(leaves, piece.leaves)
