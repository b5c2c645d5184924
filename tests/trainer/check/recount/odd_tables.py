"""Random tables with odd encodings, delimiters, quotes, line breaks, spaces and cells, as CSV and Parquet."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

BREAKS = ("a\nb", "a\r\nb", "a\u2028b", "a\x85b", "a\x0cb", "a\x0bb", "a\x1cb", "a\tb", "a b", "a\u2029b")
WORDS = (
    "red",
    "Größe",
    "it's",
    'say "no"',
    "a,b",
    "x;y",
    "p|q",
    "",
    " padded ",
    "NA",
    "null",
    "?",
    "1_0",
    "١",
    "\xa0edge\xa0",
    "--",
)
NAMES = (
    "size",
    "size, cm",
    "a;b",
    'the "flag"',
    "two\nlines",
    " spaced ",
    "Größe",
    "col|umn",
    "column 1",
    "x\u2028y",
    "class.",
)


def odd_table(folder: Path, seed: int) -> tuple[Path, dict[str, Any]]:
    """Return a file of rows, and the options with which `load` must read it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    signal = rng.random(n)
    columns = [_column(rng, n, signal) for _ in range(int(rng.integers(1, 4)))] + [
        [f"{v:.3g}" for v in rng.normal(size=n)]
    ]
    names = [NAMES[i] for i in rng.permutation(len(NAMES))[: len(columns)]] + ["target"]
    columns.append(_target(rng, signal))
    if rng.random() < 0.25:
        return _parquet(folder, seed, rng, names, columns)
    return _csv(folder, seed, rng, names, columns)


def _column(rng: np.random.Generator, n: int, signal: np.ndarray) -> list[str]:
    kind = rng.integers(9)
    if kind == 0:  # truth values
        pair = [("true", "false"), ("TRUE", "FALSE"), ("True", "False")][rng.integers(3)]
        return [pair[int(v > rng.random())] for v in signal]
    if kind == 1:  # numbers in many notations
        return [
            rng.choice([f"{v:.2e}", f"+{v:.2f}", f"{v:.3f}".lstrip("0"), "5.", "-0.0", "1E2", f"{v:f}"]) for v in signal
        ]
    if kind == 2:  # leading zeros
        return [f"00{int(v * 9)}" for v in signal]
    if kind == 3:  # numbers with empty cells
        return [rng.choice([f"{v:.3f}", "NA", "", "nan"], p=[0.9, 0.04, 0.03, 0.03]) for v in signal]
    if kind == 4:  # two-letter codes, among them NA for Namibia
        return [str(rng.choice(["NA", "DE", "FR", "IT"])) for _ in signal]
    if kind == 5:  # large integers
        return [str(int(v * 2**52)) for v in signal]
    if kind == 6:  # line breaks and similar characters within a cell
        return [str(rng.choice([BREAKS[i] for i in rng.permutation(len(BREAKS))[:3]])) for _ in signal]
    if kind == 7:
        return [str(int(v > 0.5)) for v in signal]
    return [str(rng.choice(WORDS)) for _ in signal]


def _target(rng: np.random.Generator, signal: np.ndarray) -> list[str]:
    words = [
        ("true", "false"),
        ("0", "1"),
        ("1.0", "2.0"),
        ("yes", "no"),
        ("a\nb", "c,d"),
        ("NA", "DE"),
        ("TRUE", "FALSE"),
    ]
    pair = words[rng.integers(len(words))]
    found = [pair[int(v > 0.5)] for v in signal]
    for i in np.flatnonzero(rng.random(len(found)) < 0.1):
        found[i] = pair[int(rng.integers(2))]
    found[:2] = pair
    return found


def _csv(
    folder: Path, seed: int, rng: np.random.Generator, names: list[str], columns: list[list[str]]
) -> tuple[Path, dict]:
    delimiter = str(rng.choice([",", ";", "\t", "|", "^"], p=[0.4, 0.25, 0.15, 0.15, 0.05]))
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"], p=[0.4, 0.2, 0.2, 0.1, 0.1]))
    header = rng.random() < 0.9
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    stream = io.StringIO()
    writer = csv.writer(
        stream, delimiter=delimiter, quoting=quoting, lineterminator=str(rng.choice(["\n", "\r\n", "\r"]))
    )
    writer.writerows(([names] if header else []) + list(map(list, zip(*columns, strict=True))))
    text = stream.getvalue()
    if rng.random() < 0.2:
        text += "\n\n  \n"
    content = text.encode(encoding, errors="replace")
    path = folder / f"odd-{seed}.csv"
    if rng.random() < 0.2:
        path = folder / f"odd-{seed}.csv.gz"
        content = gzip.compress(content)
    path.write_bytes(content)
    reading: dict[str, Any] = {"delimiter": delimiter, "header": header}
    if encoding in ("cp1252", "latin-1"):
        reading["encoding"] = encoding
    return path, reading | {"target": "target" if header else f"column {len(names)}"}


def _parquet(
    folder: Path, seed: int, rng: np.random.Generator, names: list[str], columns: list[list[str]]
) -> tuple[Path, dict]:
    n = len(columns[0])
    arrays = [pa.array(column) for column in columns]
    typed = [
        pa.array(rng.random(n) < 0.5),
        pa.array(rng.integers(0, 5, n).astype(np.uint8)),
        pa.array(rng.normal(size=n).astype(np.float32)),
        pa.array([None if v < 0.1 else float(v) for v in rng.random(n)]),
        pa.array([datetime.date(2020, 1, 1 + int(d)) for d in rng.integers(0, 5, n)]),
        pa.array([datetime.datetime(2020, 1, 1, int(h)) for h in rng.integers(0, 5, n)]),
        pa.array([decimal.Decimal(int(d)) / 4 for d in rng.integers(0, 9, n)], pa.decimal128(9, 2)),
        pa.array(rng.choice(["low", "high"], n)).dictionary_encode(),
    ]
    arrays[0] = typed[rng.integers(len(typed))]
    target = rng.integers(4)
    signal = rng.random(n) < 0.5
    signal[:2] = True, False
    if target < 3:
        arrays[-1] = pa.array([signal, signal.astype(float) + 0.5 * (target == 1), signal.astype(np.int16)][target])
    path = folder / f"odd-{seed}.parquet"
    parquet.write_table(pa.table(dict(zip([name.strip() for name in names], arrays, strict=True))), path)
    return path, {"target": "target"}
