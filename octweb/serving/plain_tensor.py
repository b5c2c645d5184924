"""Read one JSON tensor of numbers into an array.

This is the most frequent body of the Open Inference Protocol. In a large body, no Python object is created for a cell,
which would take most of the time. For any other or invalid body, the result is None: the full parser then reads it and
reports its errors.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import orjson

from octweb.serving.tensors import FLOATING, Request, Tensor
from trainer.data.rows import plain_numbers

try:
    import simdjson
except ImportError:  # there is no wheel for Python 3.14; without this package the full parser reads every large body
    simdjson = None

SMALL_BYTES = 4_000  # the full parser is faster for shorter bodies
MAX_BYTES = 4_000_000  # a parser keeps the memory of its largest body, so longer ones go to the full parser
LISTS = 3  # brackets of inputs, shape and data; a further one may belong to a nested list, which would be flattened
KEYS = (["inputs"], ["id", "inputs"])
TENSOR_KEYS = ["data", "datatype", "name", "shape"]

_local = threading.local()


class SmallTensor(NamedTuple):
    """The only tensor of a request, and the id of the request if it has one."""

    id: str | None
    tensor: Tensor


def plain_request(content: bytes | bytearray, outputs: tuple[str, ...]) -> Request | None:
    """Parse a JSON request with one tensor of finite numbers for the default `outputs`.

    Return None for other requests.
    """
    if len(content) < SMALL_BYTES:
        small = small_tensor(content)
        return None if small is None else Request(small.id, (small.tensor,), dict.fromkeys(outputs, False))
    if simdjson is None or len(content) > MAX_BYTES or content.count(b"[") != LISTS:
        return None
    parser = getattr(_local, "parser", None)
    if parser is None:
        parser = _local.parser = simdjson.Parser()
    try:
        return _request(parser.parse(content), outputs)
    except (ValueError, TypeError, KeyError, RuntimeError):
        return None


def small_tensor(content: bytes | bytearray) -> SmallTensor | None:
    """Parse a short JSON request with one tensor of numbers and no outputs. Return None for other requests."""
    try:
        document = orjson.loads(content)
        inputs = document["inputs"]
        name = document.get("id")
        (tensor,) = inputs
        title = tensor["name"]
        datatype = tensor["datatype"]
        rows, columns = tensor["shape"]
        data = tensor["data"]
        names = len(document) + len(tensor)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    # one colon for each name: a further one belongs to a duplicate or to a text
    if names != len(TENSOR_KEYS) + 1 + ("id" in document) or content.count(b":") != names:
        return None
    if type(inputs) is not list or type(title) is not str or type(tensor["shape"]) is not list:
        return None
    if type(rows) is not int or type(columns) is not int or type(data) is not list:
        return None
    if type(datatype) is not str or datatype not in FLOATING:
        return None
    if rows < 1 or columns < 1 or len(data) != rows * columns or not isinstance(name, str | None):
        return None
    values = plain_numbers(data)
    if values is None:
        return None
    shape = (rows, columns)
    return SmallTensor(name, Tensor(title, datatype, shape, values.reshape(shape)))


def _request(document: Any, outputs: tuple[str, ...]) -> Request | None:
    # Lists are compared, not sets, so that a document with duplicate keys goes to the full parser.
    if not isinstance(document, simdjson.Object) or sorted(document.keys()) not in KEYS:
        return None
    inputs = document["inputs"]
    name = document.get("id")
    if not isinstance(inputs, simdjson.Array) or len(inputs) != 1 or not isinstance(name, str | None):
        return None
    tensor = inputs[0]
    if not isinstance(tensor, simdjson.Object) or sorted(tensor.keys()) != TENSOR_KEYS:
        return None
    shape = tensor["shape"].as_list()
    data = tensor["data"]
    datatype = tensor["datatype"]
    if datatype not in FLOATING or not isinstance(tensor["name"], str) or [type(d) for d in shape] != [int, int]:
        return None
    if min(shape) < 1 or len(data) != shape[0] * shape[1]:
        return None
    values = np.frombuffer(data.as_buffer(of_type="d")).reshape(shape)
    tensor_read = Tensor(name=tensor["name"], datatype=datatype, shape=tuple(shape), values=values)
    return Request(id=name, inputs=(tensor_read,), outputs=dict.fromkeys(outputs, False))
