"""Parse small files in the web process, and others in limited child processes.

Memory, time and number of child processes are limited. A large table would block the web server while it is parsed, and
a file of a hundred kilobytes may unpack to gigabytes.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from django.conf import settings

from octweb.core.parsers import BodyTooLarge
from octweb.core.problems import Busy
from octweb.datasets import intake
from octweb.datasets.choice import ColumnChoice, ReadOptions
from octweb.datasets.sources import NamedSource, SourceRows, keys
from octweb.jobs.child import environment_of_child
from trainer.data.formats.file_bytes import ReadLimits, is_gzip, read_bytes
from trainer.data.formats.parquet_file import is_arrow, is_parquet
from trainer.data.formats.workbook import is_workbook
from trainer.errors import DataError

SMALL_BYTES = 1_000_000  # the web process itself parses a text up to this size
FOLDER = "incoming"  # in the data folder, for the files of running reads
CHUNK = 1 << 20
TURN_SECONDS = 0.1  # time between two attempts to get a reader slot

_count = threading.Lock()
_reads_in_progress = 0


def limits() -> ReadLimits:
    """Return this server's limits on a file."""
    return ReadLimits(
        rows=settings.MAX_ROWS,
        columns=settings.MAX_COLUMNS,
        bytes=settings.MAX_UPLOAD_BYTES,
        unpacked_bytes=settings.MAX_UNPACKED_BYTES,
    )


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a temporary folder for the duration of a `with` block."""
    above = settings.DATA_DIR / FOLDER
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=above, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def on_disk(file: BinaryIO, folder: Path) -> Iterator[Path]:
    """Yield the path of an uploaded file, after writing it to disk if needed.

    Raises BodyTooLarge beyond the server's limit.
    """
    if hasattr(file, "temporary_file_path"):
        path = Path(file.temporary_file_path())
        if path.stat().st_size > settings.MAX_UPLOAD_BYTES:
            raise too_large()
        yield path
        return
    path = folder / "source"
    written = 0
    with path.open("wb") as stream:
        while chunk := file.read(CHUNK):
            written += len(chunk)
            if written > settings.MAX_UPLOAD_BYTES:
                raise too_large()
            stream.write(chunk)
    yield path


def too_large() -> BodyTooLarge:
    megabytes = settings.MAX_UPLOAD_BYTES // 10**6
    return BodyTooLarge(
        f"The file is larger than {megabytes} MB, the limit of this server. Take a sample of the rows, or send it as Parquet."
    )


def stage(source: Path, reading: ReadOptions, folder: Path) -> dict[str, Any]:
    """Run `intake.stage`, which writes the rows to the folder."""
    return _read_upload({"command": "stage", **_source(source, reading)}, folder, small=_is_small(source))


def sample(rows: SourceRows, reading: ReadOptions, folder: Path) -> dict[str, Any]:
    """Run `intake.sample`, which writes the sample to the folder, always in a child process."""
    request = {"command": "sample", "place": rows.place, "query": rows.statement, "reading": reading.to_json()}
    return _read_from(rows.source, request | {"seconds": settings.MAX_READING_SECONDS}, folder)


def tables(source: NamedSource) -> dict[str, Any]:
    """Run `intake.tables` in a child process: `names` of tables or files, and `of`, the number of all."""
    with scratch() as folder:
        return _read_from(source, {"command": "tables", "place": source.address}, folder)


def _read_from(source: NamedSource, request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read a source in a child process that gets its keys. Errors do not show the address."""
    try:
        with _limit_concurrent_reads():
            return _in_child(request, folder, keys())
    except DataError as error:
        # `from None`: a traceback would show the address
        raise DataError(source.hide(str(error)), problems=tuple(map(source.hide, error.problems))) from None
    finally:
        (folder / intake.REQUEST).unlink(missing_ok=True)


def create(source: Path, reading: ReadOptions, choice: ColumnChoice, folder: Path) -> dict[str, Any]:
    """Run `intake.create`, which writes the rows to the folder."""
    request = {"command": "create", "choice": choice.to_json(), **_source(source, reading)}
    return _read_upload(request, folder, small=_is_small(source))


def preview_outcome(rows: Path, choice: ColumnChoice, size: int | None, kept: dict[str, Any]) -> dict[str, Any]:
    """Run `intake.preview_outcome`. `size` is the memory of the rows in bytes, or None if unknown."""
    return _of_rows("preview", rows, choice, size, kept)


def describe(
    rows: Path, choice: ColumnChoice, size: int | None, kept: dict[str, Any], said: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run `intake.describe`. `size` is the memory of the rows in bytes, or None if unknown."""
    return _of_rows("describe", rows, choice, size, kept, **({"said": said} if said else {}))


def model_rows(rows: Path, document: str) -> tuple[dict[str, np.ndarray], bool]:
    """Run `model_rows.arrays_of` for a model's document in a child process.

    The arrays are memory-mapped from files that are already unlinked. Unused arrays need no memory, and the disk space
    is freed with the last array.
    """
    with scratch() as folder:
        model = folder / "model.json"
        model.write_text(document, encoding="utf-8")
        response = _read_upload({"command": "model_rows", "rows": str(rows), "model": str(model)}, folder, small=False)
        return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in response["arrays"]}, response["same"]


def bring(rows: Path, content: bytes, said: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """Run `intake.bring`, always in a child process with limits on memory and time."""
    with scratch() as folder:
        foreign = folder / "foreign"
        foreign.write_bytes(content)
        request = {"command": "bring", "rows": str(rows), "foreign": str(foreign), "said": said, "kept": kept}
        return _read_upload(request, folder, small=False)["document"]


def _of_rows(
    command: str, rows: Path, choice: ColumnChoice, size: int | None, kept: dict[str, Any], **more: Any
) -> dict[str, Any]:
    request = {"command": command, "rows": str(rows), "choice": choice.to_json(), "kept": kept, **more}
    with scratch() as folder:
        return _read_upload(request, folder, small=size is not None and size <= 4 * SMALL_BYTES)


def _source(source: Path, reading: ReadOptions) -> dict[str, Any]:
    return {"source": str(source), "reading": reading.to_json(), "limits": asdict(limits())}


def _is_small(source: Path) -> bool:
    """Return whether the file is a short text. The unpacked size of other formats is unknown before parsing."""
    if source.stat().st_size > SMALL_BYTES or is_parquet(source) or is_arrow(source) or is_workbook(source):
        return False
    try:
        read_bytes(source, ReadLimits(unpacked_bytes=SMALL_BYTES))
    except DataError:
        return not is_gzip(source)
    return True


def _read_upload(request: dict[str, Any], folder: Path, *, small: bool) -> dict[str, Any]:
    if small:
        return intake.answer(request, folder)
    with _limit_concurrent_reads():
        return _in_child(request, folder)


@contextmanager
def _limit_concurrent_reads() -> Iterator[None]:
    """Wait for a reader slot of this host. Raises Busy if too many reads already wait."""
    global _reads_in_progress
    with _count:
        if _reads_in_progress >= settings.MAX_UPLOADS_AT_ONCE:
            raise Busy("The server is reading as many files as it can. Try again in a moment.")
        _reads_in_progress += 1
    try:
        with _acquire_reader_slot():
            yield
    finally:
        with _count:
            _reads_in_progress -= 1


@contextmanager
def _acquire_reader_slot() -> Iterator[None]:
    """Lock one of OCTWEB_READERS files, which all web processes of a host share.

    If a process is killed, the system releases its lock.
    """
    above = settings.DATA_DIR / "readers"
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        for i in range(max(1, settings.READERS)):
            with (above / str(i)).open("wb") as slot:
                try:
                    fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
        time.sleep(TURN_SECONDS)


def _in_child(request: dict[str, Any], folder: Path, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    (folder / intake.REQUEST).write_text(json.dumps(request), encoding="utf-8")
    environment = (
        environment_of_child()
        | dict(more or {})
        | {
            intake.MEMORY: str(settings.MAX_READING_BYTES),
            # with one thread and the system allocator, the process reserves no more memory than it uses, and the limit
            # applies to that
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "MALLOC_ARENA_MAX": "1",
            "MALLOC_MMAP_THRESHOLD_": "262144",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
    )
    command = [sys.executable, "-m", "octweb.datasets.intake", str(folder)]
    process = subprocess.Popen(  # noqa: S603
        command,
        cwd=settings.BASE_DIR,
        env=environment,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(settings.MAX_READING_SECONDS)
    except subprocess.TimeoutExpired:
        raise DataError(
            f"Reading this file takes longer than {settings.MAX_READING_SECONDS} s, the limit of this server. "
            "Take a sample of the rows, or leave columns out."
        ) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    try:
        response = json.loads((folder / intake.ANSWER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # the process left no answer: an allocation failed, or the system killed it
        raise DataError(intake.TOO_MUCH_MEMORY) from None
    if "error" in response:
        raise DataError(response["error"], problems=tuple(response["problems"]))
    return response["found"]


def tidy(before: float) -> int:
    """Remove folders of killed processes that were last changed before this time. Return how many."""
    above = settings.DATA_DIR / FOLDER
    removed = 0
    for left in above.iterdir() if above.is_dir() else ():
        if left.stat().st_mtime < before:
            shutil.rmtree(left, ignore_errors=True)
            removed += 1
    return removed
