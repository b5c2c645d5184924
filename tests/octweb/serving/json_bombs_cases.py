"""Cases and oracles of `test_json_bombs.py` that other tests use, too."""

from __future__ import annotations

from collections.abc import Callable


def _filled(head: bytes, unit: bytes, tail: bytes) -> Callable[[int], bytes]:
    return lambda size: head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def _names(size: int, more: bytes = b"") -> bytes:
    return b"{" + b",".join(b'"%d":1' % i for i in range(size // 11)) + more + b"}"


ROWS = b'{"rows":['
# Name of a bomb → a function that makes a body of a given number of bytes.
BOMBS: dict[str, Callable[[int], bytes]] = {
    "deep lists": lambda size: b"[" * size,
    "deep lists, closed": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "deep objects": lambda size: b'{"a":' * (size // 5),
    "empty lists": _filled(ROWS, b"[],", b"[]]}"),
    "empty objects": _filled(ROWS, b"{},", b"{}]}"),
    "small objects": _filled(ROWS, b'{"a":1},', b'{"a":1}]}'),
    "small numbers": _filled(ROWS, b"1.5,", b"1]}"),
    "whole numbers": _filled(ROWS, b"257,", b"1]}"),
    "longer numbers": _filled(ROWS, b"1.53333,", b"1]}"),
    "short texts": _filled(ROWS, b'"ab",', b'"ab"]}'),
    "longer texts": _filled(ROWS, b'"abcdef",', b'"ab"]}'),
    "many columns": lambda size: b'{"columns":{' + b",".join(b'"%d":[]' % i for i in range(size // 12)) + b"}}",
    "many names in a row": lambda size: b'{"rows":[' + _names(size) + b"]}",
    "many names, and one twice": lambda size: _names(size, b',"0":1'),
    "one name again and again": _filled(b"{", b'"a":1,', b'"a":1}'),
    "a long text": _filled(b'{"rows":"', b"x", b'"}'),
    "a text of colons": _filled(b'{"rows":"', b":", b'"}'),
    "a text of escapes": _filled(b'{"rows":"', b"\\u00ff", b'"}'),
    "a long name": _filled(b'{"', b"x", b'":1}'),
    "a long number": _filled(b'{"rows":[', b"1", b"]}"),
    "a long fraction": _filled(b'{"rows":[0.', b"1", b"]}"),
    "a long exponent": _filled(b'{"rows":[1e', b"1", b"]}"),
    "NaN and numbers": _filled(b'{"inputs":[NaN,', b"1.5,", b"1]}"),
    "NaN and lists": _filled(b'{"inputs":[NaN,', b"[],", b"1]}"),
    "a tensor of small numbers": _filled(b'{"inputs":[{"name":"x","shape":[1,1],"datatype":"FP64","data":[', b"1.5,", b"1]}]}"),
    "a tensor of short texts": _filled(b'{"inputs":[{"name":"x","shape":[1,1],"datatype":"BYTES","data":[', b'"ab",', b'"ab"]}]}'),
    "many tensors": _filled(b'{"inputs":[', b'{"name":"x"},', b'{"name":"x"}]}'),
}  # fmt: skip
