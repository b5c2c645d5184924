"""Make random messy files: with known content, or with bad lines. An error must name one of these lines."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainer.data.parsing.dates import WEEKDAYS

UNITS = ("kg", "m", "%", "€", "km/h", "mg/dl")
GAPS = ("unknown", "-", "n.a.", "k.A.", "#N/A")
DATES = {
    "dd/mm/yyyy": "%d/%m/%Y",
    "mm/dd/yyyy": "%m/%d/%Y",
    "dd.mm.yyyy": "%d.%m.%Y",
    "yyyy-mm-dd": "%Y-%m-%d",
    "dd mmm yyyy": "%d %b %Y",
}


@dataclass
class Messy:
    """Messy file: its bytes, its true columns, and the lines of its rows. An error must name one of the lines in `bad`.

    `bad` is empty if no error is expected.
    """

    content: bytes = b""
    truth: dict[str, list[str]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    encoding: str | None = None


def messy_file(seed: int) -> Messy:
    """Return a random file. About a third of the files cannot be read without a question to the user."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(24, 60))
    decimal, thousands = [(",", "."), (".", ","), (",", " "), (".", "'"), (",", ""), (".", "")][rng.integers(6)]
    out = Messy(encoding=str(rng.choice(["utf-8", "utf-16", "cp1252"])))
    columns = {}
    trouble = str(rng.choice(["", "", "", "", "unit", "slip", "ragged", "order", "day"]))
    for name in ("price", "share", "size")[: int(rng.integers(1, 4))]:
        columns[name] = _numbers(rng, n, decimal, thousands, out, name)
    columns["when"] = _dates(rng, n, out, trouble == "order")
    columns["code"] = [f"{'ABC'[rng.integers(3)]}-{rng.integers(9)}" for _ in range(n)]
    columns["zip"] = [f"0{rng.integers(1000, 1004)}" for _ in range(n)]
    out.truth |= {"code": columns["code"], "zip": columns["zip"]}
    columns["class"] = out.truth["class"] = ["ab"[i % 2] for i in range(n)]
    row = _spoil(rng, columns, trouble, decimal, n)
    _write(rng, out, columns, trouble, row)
    return out


def _numbers(rng: Any, n: int, decimal: str, thousands: str, out: Messy, name: str) -> list[str]:
    unit = str(rng.choice(UNITS)) if rng.random() < 0.4 else ""
    values = [f"{v:.2f}" for v in rng.uniform(-3000, 30000, n)]
    before, behind = [("-", ""), ("\u2212", ""), ("(", ")"), ("", "-")][int(rng.integers(4))]
    if before == "\u2212" and out.encoding == "cp1252":
        before = "-"
    cells = []
    for i, value in enumerate(values):
        whole, part = value.lstrip("-").split(".")
        groups = f"{int(whole):,}".replace(",", thousands)
        cell = groups + decimal + part
        if value[0] == "-":
            cell = before + cell + behind
        if unit:
            cell = f"{cell} {unit}" if unit != "%" or i % 2 else f"{cell}{unit}"
        cells.append(cell)
    if rng.random() < 0.5:
        i = int(rng.integers(n))
        cells[i] = str(rng.choice(GAPS))
        values[i] = ""
    out.truth[name] = values
    return cells


def _dates(rng: Any, n: int, out: Messy, ambiguous: bool) -> list[str]:
    form = str(rng.choice(["dd/mm/yyyy", "mm/dd/yyyy", "dd.mm.yyyy"] if ambiguous else list(DATES)))
    most = 12 if ambiguous else 28
    days = [
        datetime.date(int(rng.integers(2019, 2025)), int(rng.integers(1, 13)), int(rng.integers(1, most + 1)))
        for _ in range(n)
    ]
    if ambiguous:
        days[0] = days[0].replace(day=1, month=2)
    else:
        days[int(rng.integers(n))] = datetime.date(2021, 5, 31)
    zero = datetime.date(min(day.year for day in days), 1, 1)
    out.truth |= {
        "when year": [str(d.year) for d in days],
        "when month": [str(d.month) for d in days],
        "when weekday": [WEEKDAYS[d.weekday()] for d in days],
        f"when days since {zero}": [str((d - zero).days) for d in days],
    }
    return [day.strftime(DATES[form]) for day in days]


def _spoil(rng: Any, columns: dict[str, list[str]], trouble: str, decimal: str, n: int) -> int | None:
    """Put an error that must be noticed into one row. Return the row, or None without an error in a row."""
    if trouble in ("", "ragged"):
        return None
    row = int(rng.integers(3, n))
    if trouble == "unit":
        columns["price"] = [f"1{decimal}5 kg"] * n
        columns["price"][row] = "300 g"
    elif trouble == "slip":
        columns["price"][row] = f"12{decimal}5x"
    elif trouble == "day":
        columns["when"][row] = {"-": "2023-02-30", "/": "31/31/2023", ".": "31.02.2023"}.get(
            next((c for c in columns["when"][row] if c in "-/."), ""), "30 Feb 2023"
        )
    else:
        return 0
    return row


def _write(rng: Any, out: Messy, columns: dict[str, list[str]], trouble: str, row: int | None) -> None:
    delimiter = str(rng.choice([";", "\t", "|"]))
    top = [[], [f"sep={delimiter}"], ["Report of the year", ""], ["Report, first part", "made by hand", ""]][
        rng.integers(4)
    ]
    bottom = [[], ["Total" + delimiter * (len(columns) - 1)], ["", "Source: the office"], ["Note: nothing"]][
        rng.integers(4)
    ]
    table = [delimiter.join(columns)] + [delimiter.join(cells) for cells in zip(*columns.values(), strict=True)]
    first = len(top) + 2
    out.lines = list(range(first, first + len(table) - 1))
    if trouble == "ragged":
        at = int(rng.integers(2, len(table) - 2))
        table[at] = table[at].rpartition(delimiter)[0]
        out.bad = [len(top) + 1 + at]
    elif trouble == "order":
        out.bad = out.lines
    elif row is not None:
        out.bad = [out.lines[row]]
    text = "\n".join([*top, *table, *bottom]) + "\n"
    assert out.encoding is not None
    out.content = text.replace("\n", str(rng.choice(["\n", "\r\n"]))).encode(out.encoding)
