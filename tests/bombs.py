"""Small files that unpack to very large ones, for tests of upload limits."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MEGABYTE = 1_000_000


def _packed(head: bytes, unit: bytes, megabytes: float) -> bytes:
    """Return the gzip file of `head` followed by many repetitions of `unit`.

    Its content is never in memory as a whole.
    """
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    block = unit * max(1, MEGABYTE // len(unit))
    parts = [packer.compress(head)]
    parts += [packer.compress(block) for _ in range(max(1, int(megabytes * MEGABYTE / len(block))))]
    return b"".join([*parts, packer.flush()])


def _parquet(columns: int, rows: int, text: str) -> bytes:
    out = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    pq.write_table(pa.table([column] * columns, names=[f"c{j}" for j in range(columns)]), out, compression="zstd")
    return out.getvalue()


def _many_columns(megabytes: float) -> bytes:
    width = 1900
    head = ",".join(f"c{j}" for j in range(width)).encode() + b"\n"
    return _packed(head, b"," * (width - 1) + b"\n", megabytes)


# Name of each bomb → its file name, and a function that makes the file from its size in megabytes after unpacking.
BOMBS: dict[str, tuple[str, Callable[[float], bytes]]] = {
    "empty lines": ("t.csv.gz", lambda mb: _packed(b"a,b\n", b"\n", mb)),
    "lines of one cell": ("t.csv.gz", lambda mb: _packed(b"a\n", b"x\n", mb)),
    "an unclosed quote": ("t.csv.gz", lambda mb: _packed(b'a,b\n1,"', b"1,2\n", mb)),
    "nothing but quotes": ("t.csv.gz", lambda mb: _packed(b"a,b\n", b'"', mb)),
    "quotes in values": ("t.csv.gz", lambda mb: _packed(b"a,b\nx", b'"x', mb)),
    "one long line": ("t.csv.gz", lambda mb: _packed(b"a,b\n", b"x", mb)),
    "a long header": ("t.csv.gz", lambda mb: _packed(b"", b"x,", mb)),
    "many empty columns": ("t.csv.gz", _many_columns),
    "spaces": ("t.csv.gz", lambda mb: _packed(b"a,b\n", b" \n", mb)),
    "UTF-16": ("t.csv.gz", lambda mb: _packed("a,b\n".encode("utf-16"), "\U0001f600,1\n".encode("utf-16-le"), mb)),
    "a bomb in a bomb": ("t.csv.gz", lambda mb: gzip.compress(_packed(b"a,b\n", b"1,2\n", mb))),
    "Parquet of one long text": ("t.parquet", lambda mb: _parquet(2, int(mb), "x" * (MEGABYTE // 2))),
    "Parquet of many columns": ("t.parquet", lambda mb: _parquet(1900, int(mb * 100), "word")),
}


def bombs(megabytes: float) -> Iterator[tuple[str, str, bytes]]:
    """Yield the name, the file name and the content of each bomb."""
    for name, (file_name, make) in BOMBS.items():
        yield name, file_name, make(megabytes)
