"""The most frequent body of the Open Inference Protocol, one JSON tensor of numbers, straight into an array.

No Python object is made for a cell, which is what takes the time of a large body. Everything that is not exactly of this form, or
not valid, is None: the full parser looks at it, and says what is wrong with it.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import simdjson

from octweb.serving.tensors import FLOATING, Request, Tensor

MIN_BYTES = 4_000  # a small body has few cells, and its other parts are quicker in the full parser
MAX_BYTES = 4_000_000  # a parser keeps room for the largest body that it has seen
LISTS = 3  # the inputs, a shape, the data: another bracket may be a list within the data, which would be flattened
KEYS, TENSOR_KEYS = (["inputs"], ["id", "inputs"]), ["data", "datatype", "name", "shape"]

_local = threading.local()


def plain_request(content: bytes, outputs: tuple[str, ...]) -> Request | None:
    """The request with the default `outputs` in JSON, or None; the cells are finite float64."""
    if not MIN_BYTES <= len(content) <= MAX_BYTES or content.count(b"[") != LISTS:
        return None
    parser = getattr(_local, "parser", None)
    if parser is None:
        parser = _local.parser = simdjson.Parser()
    try:
        return _request(parser.parse(content), outputs)
    except (ValueError, TypeError, KeyError, RuntimeError):
        return None


def _request(document: Any, outputs: tuple[str, ...]) -> Request | None:
    # sorted lists, not sets: a key that is there twice is for the full parser
    if not isinstance(document, simdjson.Object) or sorted(document.keys()) not in KEYS:
        return None
    inputs, name = document["inputs"], document.get("id")
    if not isinstance(inputs, simdjson.Array) or len(inputs) != 1 or not isinstance(name, str | None):
        return None
    tensor = inputs[0]
    if not isinstance(tensor, simdjson.Object) or sorted(tensor.keys()) != TENSOR_KEYS:
        return None
    shape, data, datatype = tensor["shape"].as_list(), tensor["data"], tensor["datatype"]
    if datatype not in FLOATING or not isinstance(tensor["name"], str) or [type(d) for d in shape] != [int, int]:
        return None
    if min(shape) < 1 or len(data) != shape[0] * shape[1]:
        return None
    values = np.frombuffer(data.as_buffer(of_type="d")).reshape(shape)
    made = Tensor(name=tensor["name"], datatype=datatype, shape=tuple(shape), values=values)
    return Request(id=name, inputs=(made,), outputs=dict.fromkeys(outputs, False))
