"""Spool decisions in append-only files until a worker collects them.

Each process has its own file. It writes a frame with one system call before it sends the answer, so written frames
survive the end of the process. The process locks its file while it runs, so an unlocked file gets no more frames.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import logging
import os
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.signals import setting_changed

from octweb.core.problems import Busy

log = logging.getLogger(__name__)

Buffer = Any  # bytes or a contiguous array
SUFFIX = ".spool"
MAGIC = b"OCTD"
HEAD = struct.Struct("<4sIIBQI")  # magic, body length, CRC-32 of all that follows it, kind, seq, rows
UNCHECKED = struct.Struct("<4sII")  # first part of the header: magic, body length and CRC-32
CHECKED = struct.Struct("<BQI")  # second part: kind, seq and rows, which the CRC-32 covers like the body
CHECKED_BYTES = CHECKED.size
# a file of this age is closed, so that the collector deletes it; until then, it still contains what was erased from
# the database
PART_SECONDS = 60.0
UNRECORDED = struct.Struct("<QQQ")  # number of rows, and ns since 1970 of the first and the last of them
SYNC_SECONDS = 1.0  # time between two calls of fdatasync; a power failure may lose the records of this time


class FrameKind(IntEnum):
    """Kind of content in a frame."""

    SCHEMA = 1  # columns and leaves of a model, needed to read later frames
    ROWS = 2
    REFUSED = 3
    CLOSED = 4  # the process ended normally
    CONTINUED = 5  # the stream continues in the next file
    UNRECORDED = 6  # number of rows of a model that were answered without a record


class FrameBody(NamedTuple):
    """Content of a frame to write: its kind, the parts of its body, and its number of rows."""

    kind: FrameKind
    parts: Sequence[Buffer]
    rows: int


class Frame(NamedTuple):
    """A frame of a spool file. Its rows are numbered from `seq`. `end` is the offset behind the frame."""

    kind: FrameKind
    seq: int
    rows: int
    body: bytes
    end: int


class SpoolFull(Busy):
    """Records cannot be stored now, so the call is refused."""


class SpoolWriter:
    """Writer of this process's spool file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fd = -1
        self._part = 0
        self._seq = 0
        self._size = 0
        self._began = 0.0
        self._dirty = False
        self._full = False
        self._schemas: set[bytes] = set()
        self._unrecorded: dict[bytes, tuple[int, int, int]] = {}  # key of a schema → members of UNRECORDED
        self._stream = uuid.uuid4()
        self._syncs_calls = False  # settings.RECORD_SYNC, which takes as long to read as a small write

    def append(self, kind: FrameKind, body: Sequence[Buffer], rows: int, schema: tuple[bytes, bytes]) -> None:
        """Write a frame. Precede it with the schema (key and content) if the file does not contain it yet.

        `body` is in parts. Raises SpoolFull if the frame could not be written or synced. A part of a frame is never
        kept. A frame that was written but not synced is: the collector may have read it already, so no other frame may
        have its numbers.
        """
        with self._lock:
            if self._full:
                raise SpoolFull(
                    "There is no answer, because the server has no room for its record. Try again later; tell an administrator."
                )
            try:
                if schema[0] not in self._schemas:  # also if no file is open
                    self._begin_with(schema)
                self._write(frame(kind, body, self._seq, rows))
                self._seq += rows
                if self._syncs_calls:
                    os.fdatasync(self._fd)
            except OSError as error:
                log.error("a decision could not be recorded: %s", error)
                raise SpoolFull(
                    "There is no answer, because the server cannot write its record. Try again later; tell an administrator."
                ) from error

    def count_unrecorded(self, schema: bytes, rows: int) -> None:
        """Count rows of a model (key of its schema) that were answered without a record. A later frame reports them."""
        now = time.time_ns()
        with self._lock:
            before, since, _ = self._unrecorded.get(schema, (0, now, now))
            self._unrecorded[schema] = (before + rows, since, now)
        _start_keeper()

    def close(self) -> None:
        """End the stream with a frame that tells the collector that it is complete."""
        with self._lock:
            self._report_unrecorded()
            self._end(FrameKind.CLOSED)

    def look_after(self) -> None:
        """Close an old file or sync a younger one to disk, and check the total size of all spool files."""
        with self._lock:
            if self._is_old():
                self._end(FrameKind.CONTINUED)
            fd = os.dup(self._fd) if self._dirty and self._fd >= 0 else -1
            self._dirty = False
        if fd >= 0:  # syncing is slow, so it runs outside the lock while calls continue
            try:
                os.fdatasync(fd)
            finally:
                os.close(fd)
        self._full = used_bytes() > settings.RECORD_SPOOL_BYTES
        with self._lock:
            # the report of a full minute is short enough for a spool that has reached its limit
            oldest = min((since for _, since, _ in self._unrecorded.values()), default=time.time_ns())
            if not self._full or time.time_ns() - oldest > PART_SECONDS * 1e9:
                self._report_unrecorded()

    def forget(self) -> None:
        """Begin a new stream in a child process."""
        fd = self._fd
        self.__init__()  # type: ignore[misc]
        if fd >= 0:
            os.close(fd)  # the parent process has the same file open and keeps its lock

    def reread_settings(self) -> None:
        """Use the current settings from the next frame on, in another file."""
        self._began = -PART_SECONDS
        self._schemas = set()

    def _report_unrecorded(self) -> None:
        """Write a frame with each number of rows without a record. If the disk is full, keep the numbers."""
        with contextlib.suppress(OSError):
            for schema, numbers in list(self._unrecorded.items()):
                if self._fd < 0 or self._began < 0:
                    self._open_next()
                self._write(frame(FrameKind.UNRECORDED, (schema, UNRECORDED.pack(*numbers)), self._seq, 1))
                self._seq += 1
                del self._unrecorded[schema]

    def _begin_with(self, schema: tuple[bytes, bytes]) -> None:
        """Open a file unless one is open, and write the schema."""
        if self._fd < 0 or self._began < 0:
            self._open_next()
        self._write(frame(FrameKind.SCHEMA, schema[1:], self._seq, 0))
        self._schemas.add(schema[0])

    def _write(self, content: bytes) -> None:
        """Append bytes with one system call."""
        written = os.write(self._fd, content)
        if written < len(content):
            os.ftruncate(self._fd, self._size)
            raise OSError(f"only {written} of {len(content)} bytes were written")
        self._size += written
        self._dirty = True

    def _is_old(self) -> bool:
        return time.monotonic() - self._began > PART_SECONDS

    def _open_next(self) -> None:
        self._end(FrameKind.CONTINUED)
        self._syncs_calls = settings.RECORD_SYNC == "call"
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        self._part += 1
        path = folder() / f"{self._stream.hex}-{self._part:06d}{SUFFIX}"
        hidden = path.with_suffix(".new")  # the collector ignores this name until the file is locked
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        self._fd = os.open(hidden, flags, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        hidden.rename(path)
        self._size = 0
        self._schemas = set()
        self._began = time.monotonic()
        _start_keeper()

    def _end(self, kind: FrameKind) -> None:
        if self._fd < 0:
            return
        try:
            self._write(frame(kind, (), self._seq, 0))
            os.fdatasync(self._fd)
        finally:
            os.close(self._fd)
            self._fd = -1
            self._schemas = set()


def folder() -> Path:
    """Return the folder of the spool files."""
    return Path(settings.DATA_DIR) / "spool"


def used_bytes() -> int:
    """Return the total size of the uncollected files."""
    total = 0
    for path in folder().glob(f"*{SUFFIX}"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # the collector may have removed the file meanwhile
            continue
    return total


def frame(kind: FrameKind, body: Sequence[Buffer], seq: int, rows: int) -> bytes:
    """Return the bytes of a frame. `body` is in parts."""
    checked = b"".join((CHECKED.pack(kind, seq, rows), *body))
    return UNCHECKED.pack(MAGIC, len(checked) - CHECKED_BYTES, zlib.crc32(checked)) + checked


def write_hidden(stream: uuid.UUID, name: str, schema: bytes, bodies: Iterable[FrameBody]) -> Path:
    """Write a complete stream to a hidden file, and return its path. No collector reads it until it is renamed.

    `name` identifies the job that writes the file. The
    file is synced to disk. Repeated calls with the same content are safe. Raises OSError and SpoolFull.
    """
    if used_bytes() > settings.RECORD_SPOOL_BYTES:
        raise SpoolFull("The server has no room for the records of this file. Try again later; tell an administrator.")
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder() / f"{stream.hex}-000001{SUFFIX}.{name}"
    seq = 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(frame(FrameKind.SCHEMA, (schema,), 0, 0))
        for kind, body, rows in bodies:
            file.write(frame(kind, body, seq, rows))
            seq += rows
        file.write(frame(FrameKind.CLOSED, (), seq, 0))
        file.flush()
        os.fsync(file.fileno())
    return path


def hidden_files() -> Iterator[tuple[Path, str]]:
    """Yield each hidden file with the name of the job that wrote it."""
    for path in folder().glob(f"*{SUFFIX}.*"):
        yield path, path.name.partition(f"{SUFFIX}.")[2]


def reveal(path: Path) -> None:
    """Rename a hidden file so that the collector reads it."""
    path.rename(path.with_suffix(""))


def read_frames(content: bytes, offset: int) -> Iterator[Frame]:
    """Yield the frames from an offset on. Stop at the first truncated or damaged one."""
    while offset + HEAD.size <= len(content):
        magic, length, crc, kind, seq, rows = HEAD.unpack_from(content, offset)
        start = offset + HEAD.size
        body = content[start : start + length]
        right = magic == MAGIC and len(body) == length
        if not right or zlib.crc32(body, zlib.crc32(CHECKED.pack(kind, seq, rows))) != crc:
            return
        offset = start + length
        yield Frame(FrameKind(kind), seq, rows, body, offset)


def schemas_in(fd: int) -> Iterator[bytes]:
    """Yield the bodies of an open file's schema frames without reading its rows."""
    offset = 0
    while len(head := os.pread(fd, HEAD.size, offset)) == HEAD.size:
        magic, length, _, kind, _, _ = HEAD.unpack(head)
        if magic != MAGIC:
            return
        if kind == FrameKind.SCHEMA:
            yield os.pread(fd, length, offset + HEAD.size)
        offset += HEAD.size + length


def read_from(fd: int, offset: int, size: int) -> bytes:
    """Return `size` bytes of an open file from the offset. If the next frame is longer, return all of it."""
    head = os.pread(fd, HEAD.size, offset)
    if len(head) == HEAD.size and head[:4] == MAGIC:
        size = max(size, HEAD.size + HEAD.unpack(head)[1])
    return os.pread(fd, size, offset)


def is_free(fd: int) -> bool:
    """Return whether the writer of an open file has ended. If so, we hold its lock until the file is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


WRITER = SpoolWriter()


def _reread_settings(*, setting: str, **_: Any) -> None:
    if setting in ("DATA_DIR", "RECORD_SYNC"):
        WRITER.reread_settings()


setting_changed.connect(_reread_settings)


class _Keeper:
    """State of the thread that syncs this process's spool file."""

    started = False


def _start_keeper() -> None:
    if not _Keeper.started:
        _Keeper.started = True
        atexit.register(WRITER.close)
        threading.Thread(target=_keep, name="records", daemon=True).start()


def _keep() -> None:
    while True:
        time.sleep(SYNC_SECONDS)
        try:
            WRITER.look_after()
        except Exception:  # the loop must go on; without this thread, nothing would be synced
            log.exception("records of decisions could not be synced")


def _forget() -> None:
    _Keeper.started = False
    WRITER.forget()


os.register_at_fork(after_in_child=_forget)
