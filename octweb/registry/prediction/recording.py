"""Record the answers of a model, one frame per call.

The frame is written before the response is sent.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import orjson
from django.conf import settings
from django.utils.crypto import salted_hmac
from rest_framework.exceptions import ValidationError

from octweb.core.spool import WRITER, Buffer, FrameKind, SpoolFull
from octweb.registry.document.model_files import DocumentCache, model_file
from octweb.registry.models import Recording, State, TreeModel
from trainer.dtypes import CodeArray, FloatArray
from trainer.errors import Refusal, RowError
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree

APIS = ("", "v1", "v2", "invocations", "file")  # indexed by the API number in a record
SUBJECT_HEADER = "Octweb-Subject"
SUBJECT_KEY = "HTTP_OCTWEB_SUBJECT"
REQUEST_KEY = "HTTP_X_REQUEST_ID"
MAX_SUBJECT_CHARACTERS = 64  # characters
MAX_NAME = 120
# SHA-256 and id of the model, first id, ns since 1970, index in APIS, length of the texts
ROWS_HEAD = struct.Struct("<32s16s16sqBH")
END_OF_ROWS_HEAD = struct.Struct("<BH")
SHA256_BYTES = 32
NS_OF_MS = 1_000_000
_API_NUMBERS = {api: i for i, api in enumerate(APIS)}
ID_DIGITS = 8  # the last digits of an id are the row number in its call
FIRST_DIGITS = "0" * ID_DIGITS
FIRST_ROW = bytes(ID_DIGITS // 2)
_ROWS = FrameKind.ROWS  # reading a member of a class with 3.11 takes as long as packing a head
_RANDOM_IDS = 256  # random parts of ids from one system call


class Caller(NamedTuple):
    """Caller: key of the token or id of the user, requested name, call reference, and HMAC of the data subject."""

    by: str
    name: str
    request: str = ""
    subject: str = ""


class Origin(NamedTuple):
    """API and caller of records, and time of their answers in ns since 1970."""

    api: str
    caller: Caller
    at: int


class Ids(NamedTuple):
    """Ids of the rows of a call: `prefix`, followed by the row number in hexadecimal."""

    prefix: str
    rows: int

    @property
    def first(self) -> str:
        """Id of the first row. The last eight digits count the rows."""
        return self.prefix + FIRST_DIGITS

    def texts(self) -> list[str]:
        return [f"{self.prefix}{i:08x}" for i in range(self.rows)]


class Recorder:
    """Writer of the frames of one model."""

    def __init__(self, model: TreeModel) -> None:
        tree = model_file(model).tree
        self._used = np.array(tree.used_columns, np.intp)
        self._key = bytes.fromhex(model.sha256) + model.pk.bytes
        # key and content of the frame that precedes the records of this model
        self.schema = (self._key, orjson.dumps(_schema(model, tree)))

    def record(self, api: str, caller: Caller, matrix: FloatArray, leaves: CodeArray) -> Ids:
        """Write the answers of a call, and return their ids. Raises SpoolFull."""
        now = time.time_ns()
        moment, begin = _moment_of_id(now // NS_OF_MS)
        random, end = _next_part()
        # the columns exist; with the default mode, which checks them, 1,000 rows take twice as long
        cells = matrix.take(self._used, 1, None, "clip")
        n = len(leaves)
        WRITER.append(_ROWS, self.rows_body(api, caller, now, moment + random, cells, leaves), n, self.schema)
        return Ids(begin + end, n)

    def refuse(self, api: str, caller: Caller, error: RowError) -> None:
        """Record that a row was refused, without unknown column names. Raises SpoolFull."""
        now = time.time_ns()
        WRITER.append(
            FrameKind.REFUSED, (self.refused_body(Origin(api, caller, now), new_id(now), error),), 1, self.schema
        )

    def rows_body(
        self, api: str, caller: Caller, at: int, first: bytes, cells: FloatArray, leaves: CodeArray
    ) -> tuple[Buffer, ...]:
        """Return the body of a frame of answered rows, in parts: ROWS_HEAD, the texts of the caller, cells and leaves.

        `at` is the time of the answers in ns since 1970, and `first` the id of the first row. `cells` are the cells
        that the tree tests.
        """
        # parts of the head that stay the same are not packed again
        return self._key, first, at.to_bytes(8, "little"), _end_of_head(api, caller), cells, leaves

    def refused_body(self, origin: Origin, key: bytes, error: RowError) -> bytes:
        """Return the body of a frame of a refused row with the id `key`."""
        return orjson.dumps(
            {
                "sha256": self._key[:SHA256_BYTES].hex(),
                "model": self._key[SHA256_BYTES:].hex(),
                "id": key.hex(),
                "at": origin.at,
                "api": _API_NUMBERS[origin.api],
                "caller": list(origin.caller),
                "row": error.row,
                "reason": str(error.reason),
                "column": "" if error.reason is Refusal.COLUMN else error.column or "",
            }
        )


class RecordedCall(NamedTuple):
    """A recorder bound to one call."""

    recorder: Recorder
    api: str
    caller: Caller

    def record(self, matrix: FloatArray, leaves: CodeArray) -> Ids | None:
        """Record the answers and return their ids, or None without rows, or if OCTWEB_RECORD_FULL allows no record."""
        if not len(leaves):
            return None
        try:
            return self.recorder.record(self.api, self.caller, matrix, leaves)
        except SpoolFull:
            if settings.RECORD_FULL != "answer":
                raise
            WRITER.count_unrecorded(self.recorder.schema[0], len(leaves))
            return None

    def refuse(self, error: RowError) -> None:
        """Record that a row was refused. Raises SpoolFull, unless OCTWEB_RECORD_FULL allows no record."""
        try:
            self.recorder.refuse(self.api, self.caller, error)
        except SpoolFull:
            if settings.RECORD_FULL != "answer":
                raise
            WRITER.count_unrecorded(self.recorder.schema[0], 1)


_recorders: DocumentCache[Recorder] = DocumentCache()


def is_recorded(model: TreeModel) -> bool:
    """Return whether each answer of the model is recorded."""
    return model.state == State.APPROVED and (settings.RECORD == Recording.FULL or model.recording == Recording.FULL)


def recorder_of(model: TreeModel) -> Recorder | None:
    """Return the recorder of a model whose answers are recorded, or None."""
    if not is_recorded(model):
        return None
    key = f"{model.pk}{model.sha256}"
    recorder = _recorders.get(key)
    if recorder is None:
        recorder = Recorder(model)
        _recorders.put(key, recorder, 1)
    return recorder


def call_of(request: Any, model: TreeModel, api: str, name: str) -> RecordedCall | None:
    """Return the recorder of a REST call, or None if nothing is recorded.

    Raises ValidationError for an invalid subject.
    """
    recorder = recorder_of(model)
    if recorder is None:
        return None
    return RecordedCall(recorder, api, caller_of_call(request.META, request.user, request.auth, name))


def caller_of_call(meta: Mapping[str, Any], user: Any, token: Any, name: str) -> Caller:
    """Return the caller, from user, token and headers of a call. Raises ValidationError for an invalid subject."""
    if SUBJECT_KEY not in meta and REQUEST_KEY not in meta:
        return _usual_caller(by_text(user, token), name)
    subject = subject_of(meta)
    by = by_text(user, token)
    return Caller(by, name[:MAX_NAME], meta.get(REQUEST_KEY, "")[:64], subject_digest(subject) if subject else "")


@lru_cache(maxsize=256)
def _usual_caller(by: str, name: str) -> Caller:
    return Caller(by, name[:MAX_NAME])


@lru_cache(maxsize=256)
def _end_of_head(api: str, caller: Caller) -> bytes:
    """Return the last two fields of ROWS_HEAD and the texts that follow it."""
    texts = orjson.dumps(list(caller))
    return END_OF_ROWS_HEAD.pack(_API_NUMBERS[api], len(texts)) + texts


def by_text(user: Any, token: Any) -> str:
    """Return the actor as records name it: the key of the token, or else the id of the user."""
    return f"token {token.token_key}" if token is not None else f"user {user.pk}"


def subject_of(meta: Mapping[str, Any]) -> str:
    """Return the reference to a person in the headers of a call, or "".

    WSGI decodes headers as Latin-1. UTF-8 is decoded as such, so that a page finds the person by the same letters.
    """
    text: str = meta.get(SUBJECT_KEY, "")
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def subject_digest(subject: str) -> str:
    """Return the HMAC-SHA-256 of a reference to a person. Raises ValidationError.

    The reference itself is not stored.
    """
    subject = subject.strip()
    if not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS:
        words = (
            f"The reference has {len(subject)} characters; a reference to a person has 1 to {MAX_SUBJECT_CHARACTERS}."
        )
        raise ValidationError({SUBJECT_HEADER: words})
    return salted_hmac("octweb.decisions.subject", subject, algorithm="sha256").hexdigest()


def new_id(now: int) -> bytes:
    """Return a UUIDv7 of this moment (ns since 1970). Its last 32 bits are 0, and count the rows of a call."""
    return _moment_of_id(now // NS_OF_MS)[0] + _next_part()[0]


@lru_cache(maxsize=1)
def _moment_of_id(milliseconds: int) -> tuple[bytes, str]:
    """Return the first six bytes of the ids of a moment (ms since 1970), and their text in a UUID."""
    key = milliseconds.to_bytes(6, "big")
    text = key.hex()
    return key, f"{text[:8]}-{text[8:]}-"


def _next_part() -> tuple[bytes, str]:
    """Return the bytes that follow the moment in an id, and their text up to the row number."""
    try:
        return _random_parts.pop()
    except IndexError:
        part, *others = _new_random_parts()
        _random_parts.extend(others)
        return part


def _new_random_parts() -> list[tuple[bytes, str]]:
    """Return many parts of ids that follow the moment: version, variant, 42 random bits, and row 0."""
    parts = np.frombuffer(bytearray(os.urandom(6 * _RANDOM_IDS)), np.uint8).reshape(-1, 6)
    parts[:, 0] = parts[:, 0] & 0x0F | 0x70
    parts[:, 2] = parts[:, 2] & 0x3F | 0x80
    content = parts.tobytes()
    keys = [content[i : i + 6] for i in range(0, len(content), 6)]
    return [(key + FIRST_ROW, key.hex("-", 2)) for key in keys]


_random_parts: list[tuple[bytes, str]] = []
os.register_at_fork(after_in_child=_random_parts.clear)  # otherwise, both processes would use the same ids


def _schema(model: TreeModel, tree: Tree) -> dict[str, Any]:
    """Return the schema needed to read frames without the model file."""
    columns = []
    for j in tree.used_columns:
        column = tree.schema[j]
        low, high = column.range or (None, None)
        columns.append(
            {
                "name": column.name,
                "categories": list(column.categories) if column.kind is ColumnKind.CATEGORICAL else None,
                "missing": column.missing_code,
                "low": low,
                "high": high,
            }
        )
    leaves = {
        str(leaf.id): [int(tree.labels[leaf.id]), tree.probabilities[leaf.id].astype(">f8").tobytes().hex()]
        for leaf in tree.leaves
    }
    return {"sha256": model.sha256, "model": model.pk.hex, "columns": columns, "leaves": leaves}
