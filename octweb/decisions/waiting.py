"""Measure how long records of this host wait in the spool for a worker."""

from __future__ import annotations

import os
import time
from pathlib import Path

import orjson
from django.db import DatabaseError

from octweb.core import spool
from octweb.core.spool import SUFFIX, Frame, FrameKind
from octweb.decisions.models import SpoolPart
from octweb.registry.prediction.recording import ROWS_HEAD

READ_BYTES = 65_536  # a longer first frame is read whole


def oldest_record_seconds() -> float:
    """Return the age of the oldest record that no worker has collected, in seconds. 0 if none waits on this host."""
    collected = _collected()
    times = []
    streams: set[str] = set()
    for path in sorted(spool.folder().glob(f"*{SUFFIX}")):
        stream = path.name.partition("-")[0]
        if stream in streams:  # the files of a stream are numbered, so a later one is younger
            continue
        at = _first_time(path, collected.get(path.name, 0))
        if at:
            times.append(at)
            streams.add(stream)
    return round(max(0, time.time_ns() - min(times)) / 1e9, 1) if times else 0.0


def _collected() -> dict[str, int]:
    """Return the number of collected bytes by file name. Without a database, nothing is known to be collected."""
    try:
        return dict(SpoolPart.objects.values_list("name", "offset"))
    except DatabaseError:
        return {}


def _first_time(path: Path, offset: int) -> int:
    """Return the time of the first record behind the offset in ns since 1970, or 0 if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # collected meanwhile
        return 0
    try:
        while (frame := next(spool.read_frames(spool.read_from(fd, offset, READ_BYTES), 0), None)) is not None:
            if frame.rows:
                return _time_of(frame)
            offset += frame.end
    finally:
        os.close(fd)
    return 0


def _time_of(frame: Frame) -> int:
    if frame.kind == FrameKind.REFUSED:
        return int(orjson.loads(frame.body)["at"])
    if frame.kind == FrameKind.UNRECORDED:
        return int(spool.UNRECORDED.unpack_from(frame.body, 48)[1])
    return int(ROWS_HEAD.unpack_from(frame.body)[3])
