"""Record each row of a batch prediction once the job has succeeded.

The child writes cells and leaves. The supervisor writes a hidden spool file before it ends the job. The collector
reveals the file of the attempt that succeeded. So each row of a result has exactly one record, even if a worker is
killed.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from octweb.batch.models import BatchPrediction
from octweb.core import spool
from octweb.core.spool import FrameBody, FrameKind
from octweb.jobs.models import FINISHED, RunStatus
from octweb.registry.document.model_files import model_file
from octweb.registry.prediction.recording import ID_DIGITS, Caller, Origin, Recorder, by_text, new_id
from trainer.errors import Refusal, RowError
from trainer.prediction.recorded_rows import RecordedPiece, read_pieces

API = "file"
FRAME_ROWS = 4_000  # rows of a frame; the collector stores whole frames in one transaction


class FileRecorder:
    """Writer of the records of one attempt at a file. The supervisor uses it after the child has ended."""

    def __init__(self, job: BatchPrediction, recorder: Recorder) -> None:
        self._job = job
        self._recorder = recorder
        self._first = uuid.UUID(bytes=new_id(time.time_ns()))
        self._stream = uuid.uuid4()

    @property
    def prefix(self) -> str:
        """Prefix of the record ids of all rows."""
        return str(self._first)[:-ID_DIGITS]

    @cached_property
    def _origin(self) -> Origin:
        caller = Caller(by_text(self._job.owner, self._job.made_by), str(self._job.model_id), str(self._job.pk))
        return Origin(API, caller, time.time_ns())

    def spool(self, rows: Path) -> None:
        """Write a hidden spool file with the rows that the child wrote.

        Repeated calls write the same. Raises OSError and SpoolFull.
        """
        name = f"{self._job.pk.hex}-{self._job.attempt}"
        spool.write_hidden(self._stream, name, self._recorder.schema[1], self._frames(rows))

    def _frames(self, rows: Path) -> Iterator[FrameBody]:
        start = 0
        with rows.open("rb") as stream:
            for piece in read_pieces(stream):
                for begin, end in _runs(piece.usable):
                    yield self._frame(piece, start, slice(begin, end))
                start += len(piece.usable)

    def _frame(self, piece: RecordedPiece, start: int, part: slice) -> FrameBody:
        row = start + part.start
        key = uuid.UUID(int=self._first.int + row).bytes
        if piece.usable[part.start]:
            body = self._recorder.rows_body(*self._origin, key, piece.cells[part], piece.leaves[part])
            return FrameBody(FrameKind.ROWS, body, part.stop - part.start)
        error = RowError("", row=row, column=self._empty_column(piece, part.start), reason=Refusal.EMPTY)
        return FrameBody(FrameKind.REFUSED, (self._recorder.refused_body(self._origin, key, error),), 1)

    def _empty_column(self, piece: RecordedPiece, row: int) -> str:
        """Return the first empty column that makes the tree refuse the row."""
        tree = model_file(self._job.model).tree
        refused = set(tree.refused_columns)
        empty = np.isnan(piece.cells[row])
        return next(
            (tree.schema[j].name for j, no in zip(tree.used_columns, empty, strict=True) if no and j in refused), ""
        )


def _runs(usable: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield start and end of each frame of a piece: up to FRAME_ROWS answered rows, or one row without an answer."""
    begin = 0
    while begin < len(usable):
        end = begin + 1
        if usable[begin]:
            stop = min(begin + FRAME_ROWS, len(usable))
            refused = np.flatnonzero(~usable[begin:stop])
            end = begin + int(refused[0]) if len(refused) else stop
        yield begin, end
        begin = end


def reveal_finished() -> None:
    """Reveal the records of succeeded attempts to the collector. Remove those of failed and lost attempts."""
    for path, name in spool.hidden_files():
        key, _, attempt = name.partition("-")
        job = BatchPrediction.objects.filter(pk=key).values("status", "attempt").first()
        # a purged job may have succeeded, so its records are kept
        if job is None or (job["status"] == RunStatus.SUCCEEDED and job["attempt"] == int(attempt)):
            with contextlib.suppress(FileNotFoundError):  # another worker of this host was faster
                spool.reveal(path)
        elif job["status"] in FINISHED or job["attempt"] > int(attempt):
            path.unlink(missing_ok=True)
