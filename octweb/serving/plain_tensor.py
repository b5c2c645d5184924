"""Read one JSON tensor of numbers into an array.

This is the most frequent body of the Open Inference Protocol. In a large body, no Python object is created for a cell,
which would take most of the time. For any other or invalid body, the result is None: the full parser then reads it and
reports its errors.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from octweb.core import strict_json
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


def plain_request(content: bytes | bytearray, outputs: tuple[str, ...]) -> Request | None:
    """Parse a JSON request with one tensor of finite numbers for the default `outputs`.

    Return None for other requests.
    """
    if len(content) < SMALL_BYTES:
        return _small_request(content, outputs)
    if simdjson is None or len(content) > MAX_BYTES or content.count(b"[") != LISTS:
        return None
    parser = getattr(_local, "parser", None)
    if parser is None:
        parser = _local.parser = simdjson.Parser()
    try:
        return _request(parser.parse(content), outputs)
    except (ValueError, TypeError, KeyError, RuntimeError):
        return None


def _small_request(content: bytes | bytearray, outputs: tuple[str, ...]) -> Request | None:
    try:
        document = strict_json.loads(content)
        inputs = document["inputs"]
        name = document.get("id")
        (tensor,) = inputs
        title, datatype, (rows, columns), data = tensor["name"], tensor["datatype"], tensor["shape"], tensor["data"]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    types = [type(v) for v in (inputs, title, datatype, tensor["shape"], rows, columns, data)]
    if types != [list, str, str, list, int, int, list] or datatype not in FLOATING:
        return None
    if len(document) != 1 + ("id" in document) or len(tensor) != len(TENSOR_KEYS) or not isinstance(name, str | None):
        return None
    if rows < 1 or columns < 1 or len(data) != rows * columns:
        return None
    values = plain_numbers(data)
    if values is None:
        return None
    shape = (rows, columns)
    tensor_read = Tensor(name=title, datatype=datatype, shape=shape, values=values.reshape(shape))
    return Request(id=name, inputs=(tensor_read,), outputs=dict.fromkeys(outputs, False))


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
