"""Parse requests and write responses of the Open Inference Protocol.

A binary request begins with a JSON part, and `Inference-Header-Content-Length` is the length of this part. The bytes of
each tensor with `binary_data_size` follow in order. Numbers are little-endian, and each text follows its length in four
bytes.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from typing import Any, NamedTuple

import numpy as np
import orjson

from octweb.core import strict_json
from trainer.data.rows import plain_numbers
from trainer.errors import RowError

TYPES: dict[str, str] = {
    "BOOL": "?",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
TEXT = "BYTES"
FLOATING = {"FP16", "FP32", "FP64"}
INTEGER = TYPES.keys() - FLOATING - {"BOOL"}
BASE64 = "base64"
# Content types of MLServer. Only BASE64 texts are decoded; values of the other types are used as they are.
CONTENT_TYPES = ("np", "pd", "str", BASE64)
JSON_LENGTH = "Inference-Header-Content-Length"


class ProtocolError(ValueError):
    """The request violates the protocol. The message is written for the client."""


class CellError(RowError, ProtocolError):
    """A cell of a tensor cannot be predicted."""


class Tensor(NamedTuple):
    """Named input. `values` has shape `shape`: float64 for numbers and booleans, objects (str or None) for BYTES."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: np.ndarray


class Request(NamedTuple):
    """Parsed inference request. `outputs` maps each requested output to whether its response is binary."""

    id: str | None
    inputs: tuple[Tensor, ...]
    outputs: dict[str, bool]


def parse(
    body: bytes | bytearray, header_length: str | None, known_outputs: tuple[str, ...], default: tuple[str, ...]
) -> Request:
    """Parse a request body. Raises ProtocolError with the error and its place.

    `header_length` is the value of the header with the length of the JSON part, or None if it was not sent. A request
    without outputs gets `default`.
    """
    split = _header_length(header_length, len(body))
    try:
        document = strict_json.loads(body[:split])
    except ValueError as error:
        raise ProtocolError(
            f"The body is not valid JSON: {error}.{strict_json.constant_advice(body[:split])}"
        ) from error
    except RecursionError as error:
        raise ProtocolError("The body is nested too deeply. Send fewer levels of lists and objects.") from error
    if not isinstance(document, dict):
        raise ProtocolError('The body is not a JSON object. Send one with the member "inputs".')
    name = document.get("id")
    if name is not None and not isinstance(name, str):
        raise ProtocolError("'id' must be a text.")
    if "inputs" not in document:
        raise ProtocolError("'inputs' is missing. It is a list of tensors.")
    inputs = []
    content_type = _content_type(_parameters(document, "the request"), "the request")
    unread = body[split:]
    for i, record in enumerate(_list(document["inputs"], "inputs")):
        tensor, unread = _tensor(record, f"inputs[{i}]", unread, content_type)
        inputs.append(tensor)
    if unread:
        raise ProtocolError(
            f"{len(unread)} bytes are left over after the last binary tensor. Compare binary_data_size with the bytes sent."
        )
    if not inputs:
        raise ProtocolError("'inputs' is empty: send one tensor with all columns, or one for each column.")
    return Request(id=name, inputs=tuple(inputs), outputs=_outputs(document, known_outputs, default))


def answer(
    head: dict[str, Any], outputs: list[tuple[str, np.ndarray]], binary: dict[str, bool]
) -> tuple[bytes, int | None]:
    """Return the body of a response, and the length of its JSON part if binary tensors follow it."""
    records = []
    blobs = []
    for name, values in outputs:
        record: dict[str, Any] = {"name": name, "datatype": datatype_of(values), "shape": list(values.shape)}
        if binary[name]:
            blob = _to_bytes(values)
            record["parameters"] = {"binary_data_size": len(blob)}
            blobs.append(blob)
        else:
            record["data"] = values.ravel().tolist()
        records.append(record)
    text = orjson.dumps(head | {"outputs": records})
    return text + b"".join(blobs), len(text) if blobs else None


def datatype_of(values: np.ndarray) -> str:
    """Return the protocol's name of the data type of an output."""
    return {"f": "FP64", "i": "INT64"}.get(values.dtype.kind, TEXT)


def _header_length(text: str | None, size: int) -> int:
    if text is None:
        return size
    if not (text.isascii() and text.isdigit() and len(text) < 12) or int(text) > size:
        raise ProtocolError(f"{JSON_LENGTH} must be a whole number of at most {size}, the size of the body.")
    return int(text)


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise ProtocolError(f"'{place}' must be a list.")
    return value


def _parameters(record: dict[str, Any], place: str) -> dict[str, Any]:
    parameters = record.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise ProtocolError(f"{place}: 'parameters' must be an object.")
    return parameters


def _outputs(document: dict[str, Any], known: tuple[str, ...], default: tuple[str, ...]) -> dict[str, bool]:
    everything = _flag(_parameters(document, "the request"), "binary_data_output", "the request")
    if document.get("outputs") is None:
        return dict.fromkeys(default, everything)
    is_binary: dict[str, bool] = {}
    for i, record in enumerate(_list(document["outputs"], "outputs")):
        place = f"outputs[{i}]"
        name = record.get("name") if isinstance(record, dict) else None
        if not isinstance(name, str) or name not in known:
            raise ProtocolError(f"{place}: there is no output {str(name)[:60]!r}; there are {', '.join(known)}.")
        parameters = _parameters(record, place)
        is_binary[name] = _flag(parameters, "binary_data", place) if "binary_data" in parameters else everything
    return is_binary or dict.fromkeys(default, everything)


def _flag(parameters: dict[str, Any], name: str, place: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise ProtocolError(f"{place}: '{name}' must be true or false.")
    return value


def _content_type(parameters: dict[str, Any], place: str) -> str:
    """Return the content type of a request or tensor, or "" if it has none. Raises ProtocolError for an unknown one."""
    kind = parameters.get("content_type", "")
    if not isinstance(kind, str) or (kind and kind not in CONTENT_TYPES):
        raise ProtocolError(
            f"{place}: the content type {str(kind)[:40]!r} is not known; send the values as they are, or one of {', '.join(CONTENT_TYPES)}."
        )
    return kind


def _decode_text(text: str | None, i: int, place: str) -> str | None:
    if text is None:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProtocolError(
            f"{place}: text {i} is not base64, as its content type says. Encode it, or send it without that content type."
        ) from error
    return _utf8(raw, i, place)


def _tensor(record: Any, place: str, unread: bytes | bytearray, content_type: str) -> tuple[Tensor, bytes | bytearray]:
    if not isinstance(record, dict):
        raise ProtocolError(f"{place} must be an object.")
    name = record.get("name")
    datatype = record.get("datatype")
    shape = record.get("shape")
    if not isinstance(name, str):
        raise ProtocolError(f"{place}: 'name' must be a text.")
    if not isinstance(datatype, str) or (datatype not in TYPES and datatype != TEXT):
        raise ProtocolError(f"{place} ('{name[:60]}'): datatype must be one of {', '.join([*TYPES, TEXT])}.")
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= 2
        or not all(isinstance(d, int) and not isinstance(d, bool) and d >= 0 for d in shape)
    ):
        raise ProtocolError(f"{place} ('{name[:60]}'): 'shape' must be [rows] or [rows, columns].")
    size = math.prod(shape)
    parameters = _parameters(record, place)
    encoding = _content_type(parameters, f"{place} ('{name[:60]}')") or content_type
    if "binary_data_size" in parameters:
        values, unread = _from_bytes(parameters["binary_data_size"], datatype, size, f"{place} ('{name[:60]}')", unread)
    elif "data" in record:
        values = _from_json(record["data"], datatype, size, shape, f"{place} ('{name[:60]}')")
    else:
        raise ProtocolError(f"{place} ('{name[:60]}'): 'data' is missing.")
    if encoding == BASE64 and datatype == TEXT:
        values = _objects([_decode_text(text, i, f"{place} ('{name[:60]}')") for i, text in enumerate(values.tolist())])
    return Tensor(name=name, datatype=datatype, shape=tuple(shape), values=values.reshape(shape)), unread


def _from_bytes(
    length: Any, datatype: str, size: int, place: str, unread: bytes | bytearray
) -> tuple[np.ndarray, bytes | bytearray]:
    if not isinstance(length, int) or isinstance(length, bool) or not 0 <= length <= len(unread):
        raise ProtocolError(
            f"{place}: binary_data_size must be a whole number of at most {len(unread)}, the bytes left."
        )
    blob = unread[:length]
    unread = unread[length:]
    if datatype == TEXT:
        return _texts(blob, size, place), unread
    values = np.frombuffer(blob, TYPES[datatype]) if length % np.dtype(TYPES[datatype]).itemsize == 0 else np.empty(0)
    if len(values) != size or length != size * np.dtype(TYPES[datatype]).itemsize:
        raise ProtocolError(f"{place}: shape and data disagree: {size} values of {datatype} are not {length} bytes.")
    return values.astype(np.float64), unread


def _texts(blob: bytes | bytearray, size: int, place: str) -> np.ndarray:
    texts: list[str] = []
    at = 0
    while at < len(blob):
        if at + 4 > len(blob):
            raise ProtocolError(f"{place}: text {len(texts)} is cut off: fewer bytes follow than its length says.")
        (length,) = struct.unpack_from("<I", blob, at)
        if at + 4 + length > len(blob):
            raise ProtocolError(f"{place}: text {len(texts)} is cut off: fewer bytes follow than its length says.")
        texts.append(_utf8(blob[at + 4 : at + 4 + length], len(texts), place))
        at += 4 + length
    if len(texts) != size:
        raise ProtocolError(
            f"{place}: shape and data disagree: {size} texts are announced, but there are {len(texts)}."
        )
    return _objects(texts)


def _utf8(raw: bytes | bytearray, i: int, place: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{place}: text {i} is not UTF-8. Encode it as UTF-8.") from error


def _objects(values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _from_json(data: Any, datatype: str, size: int, shape: list[int], place: str) -> np.ndarray:
    cells = _flat(data, shape, place)
    if len(cells) != size:
        raise ProtocolError(
            f"{place}: shape and data disagree: {shape} needs {size} values, but there are {len(cells)}."
        )
    if datatype in TYPES and datatype != "BOOL" and (values := plain_numbers(cells)) is not None:
        if datatype in INTEGER:
            _check_integers(values, datatype, shape, place)
        return values
    kinds = set(map(type, cells))
    if datatype == TEXT:
        if not kinds <= {str, type(None)}:
            i = next(i for i, c in enumerate(cells) if not isinstance(c, str | None))
            raise ProtocolError(f"{place}: value {_where(i, shape)} is not text.")
        return _objects(cells)
    allowed = {bool} if datatype == "BOOL" else {int, float, type(None)}
    if not kinds <= allowed:
        i = next(i for i, c in enumerate(cells) if type(c) not in allowed)
        raise ProtocolError(f"{place}: value {_where(i, shape)} must be {datatype}; it is {str(cells[i])[:40]!r}.")
    values = np.array([math.nan if c is None else c for c in cells], np.float64)
    if datatype in INTEGER:
        _check_integers(values, datatype, shape, place)
    return values


def _check_integers(values: np.ndarray, datatype: str, shape: list[int], place: str) -> None:
    """Raise ProtocolError for fractions and numbers outside the datatype.

    Missing values pass, because the model handles them.
    """
    limits = np.iinfo(TYPES[datatype])
    bad = ~np.isnan(values) & ((values != np.floor(values)) | (values < limits.min) | (values > limits.max))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ProtocolError(f"{place}: value {_where(i, shape)} must be {datatype}; it is {values[i]:g}.")


def _where(i: int, shape: list[int]) -> str:
    """Describe a flat index: its position, or row and column in a table."""
    return f"[{i}]" if len(shape) == 1 or not shape[1] else f"[row {i // shape[1]}, column {i % shape[1]}]"


def _flat(data: Any, shape: list[int], place: str) -> list[Any]:
    """Return the values of a flat list, or of a list of rows. Raises ProtocolError for rows of another length."""
    if not isinstance(data, list):
        raise ProtocolError(f"{place}: 'data' must be a list.")
    # if a later item is a list, the check for numbers or texts refuses it
    if not data or not isinstance(data[0], list):
        return data
    if len(shape) != 2 or not all(isinstance(row, list) and len(row) == shape[1] for row in data):
        raise ProtocolError(
            f"{place}: shape and data disagree: the rows of 'data' do not all have the length of 'shape'."
        )
    return [cell for row in data for cell in row]


def _to_bytes(values: np.ndarray) -> bytes:
    if values.dtype.kind in "fi":
        return np.ascontiguousarray(values).astype("<f8" if values.dtype.kind == "f" else "<i8").tobytes()
    parts = []
    for text in values.ravel().tolist():
        raw = str(text).encode()
        parts += [struct.pack("<I", len(raw)), raw]
    return b"".join(parts)
