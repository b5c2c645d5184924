"""Test that every method keeps time limits and ends after SIGTERM.

Usage: python benchmarks/limits.py [--method M ...] [--shape S ...] [--limit 3] [--only limit|term] [--json]

Each run is a process `manage.py train` on one of twenty shapes of tables. Its search begins when the progress file says
so. Until then it imports, loads kernels and reads the table, which no time limit covers. From there a limit of L
seconds may take L + 10 % + 1 s to the end of the process with its model file written. A SIGTERM may take 2 s.
Other work on the machine makes wall-clock time unreliable. So a run fails if its processor time after the limit (or the
signal) is more than allowed, or if its wall-clock time is while it had nine tenths of a processor.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from common import ROOT

from trainer.registry import METHODS

POLL = 0.02
# A run may take SLACK seconds plus this SHARE of the limit after the limit, and TERM seconds after SIGTERM.
SLACK = 1.0
SHARE = 0.1
TERM = 2.0
GIVE_UP = 60.0  # seconds after the limit or the signal until a run is killed
REFUSED = ("takes two classes", "too many", "does not name classes", "takes at most", "are allowed. Use fewer bins")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a table of random cells whose classes depend on no column, so that every search takes
    long.

    `levels` is the number of distinct values of a numeric column, 0 for continuous values. There are
    `categories` categorical columns with `words` categories each.
    """

    rows: int
    numbers: int = 0
    levels: int = 0
    categories: int = 0
    words: int = 2
    classes: int = 2


SHAPES = {
    "wide": Shape(rows=200, numbers=1500),
    "very wide": Shape(rows=200, numbers=4999),
    "few rows, wide": Shape(rows=40, numbers=3000),
    "wide, yes or no": Shape(rows=200, numbers=2000, levels=2),
    "wide, three classes": Shape(rows=150, numbers=800, classes=3),
    "tall": Shape(rows=200_000, numbers=5),
    "tall, one column": Shape(rows=300_000, numbers=1),
    "tall, yes or no": Shape(rows=300_000, numbers=12, levels=2),
    "tall, few values": Shape(rows=100_000, numbers=12, levels=10),
    "tall and wide": Shape(rows=20_000, numbers=100),
    "tall, ten classes": Shape(rows=100_000, numbers=8, classes=10),
    "square": Shape(rows=1_000, numbers=300),
    "usual": Shape(rows=1_000, numbers=20),
    "twenty classes": Shape(rows=2_000, numbers=20, classes=20),
    "many classes": Shape(rows=2_000, numbers=10, classes=300),
    "a class a row": Shape(rows=400, numbers=8, classes=400),
    "many categories": Shape(rows=5_000, categories=3, words=800),
    "many columns of categories": Shape(rows=2_000, categories=25, words=40),
    "a category a row": Shape(rows=2_000, numbers=2, categories=1, words=2_000),
    "mixed": Shape(rows=5_000, numbers=15, categories=10, words=12, classes=4),
}


def write(shape: Shape, path: Path) -> None:
    """Write the same table as CSV at every call.

    With enough rows, each class and category occurs.
    """
    rng = np.random.default_rng(0)
    n = shape.rows
    columns: dict[str, np.ndarray] = {}
    for j in range(shape.numbers):
        values = rng.normal(size=n) if shape.levels == 0 else rng.integers(0, shape.levels, n)
        columns[f"x{j}"] = np.array([f"{v:.6g}" for v in values])
    for j in range(shape.categories):
        codes = rng.permutation(
            np.r_[np.arange(min(shape.words, n)), rng.integers(0, shape.words, max(0, n - shape.words))]
        )
        columns[f"c{j}"] = np.array([f"w{code}" for code in codes])
    codes = rng.permutation(
        np.r_[np.arange(min(shape.classes, n)), rng.integers(0, shape.classes, max(0, n - shape.classes))]
    )
    columns["class"] = np.array([f"k{code}" for code in codes])
    with path.open("w") as stream:
        stream.write(",".join(columns) + "\n")
        stream.writelines(",".join(row) + "\n" for row in zip(*columns.values(), strict=True))


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The measurements of one run, and how it ended.

    `begin` is the seconds until the search began, `wall` those from there to the end of the process. `after`
    and `processor` are the wall-clock and processor seconds after the limit or the signal.
    """

    method: str
    shape: str
    kind: str
    begin: float
    wall: float
    after: float
    processor: float
    allowed: float
    ended: str
    kept: bool


def watch_run(
    method: str, shape: str, data: Path, folder: Path, *, limit: float, kind: str, options: list[str]
) -> Seen:
    """Start a run, send it SIGTERM if `kind` is 'term', and measure it."""
    progress = folder / "progress.jsonl"
    output = folder / "model.json"
    for path in (progress, output):
        path.unlink(missing_ok=True)
    time_limit = limit if kind == "limit" else 600.0
    command = [
        sys.executable, str(ROOT / "manage.py"), "train", str(data), "--target=class", f"--method={method}",
        f"--time-limit={time_limit}", f"--progress={progress}", f"--output={output}", "--json", *options,
    ]  # fmt: skip
    started = time.perf_counter()
    # Output goes to files, because a long output would block on a pipe that nobody reads.
    stdout = folder / "stdout"
    complained = folder / "stderr"
    with stdout.open("w") as out, complained.open("w") as error:
        process = subprocess.Popen(command, stdout=out, stderr=error)
    inside = psutil.Process(process.pid)
    begun = mark = None  # `begun`: when the search began; `mark`: wall and processor clock at the limit or the signal
    last = 0.0
    while process.poll() is None:
        now = time.perf_counter()
        begun = begun or _begin(progress, now)
        if begun is not None and mark is None and now >= begun + limit:
            mark = now, _processor(inside)
            if kind == "term":
                process.send_signal(signal.SIGTERM)
        last = _processor(inside) or last
        if mark is not None and now > mark[0] + GIVE_UP:
            process.kill()
        time.sleep(POLL)
    ended = time.perf_counter()
    begun = started if begun is None else begun
    after, processor = (0.0, 0.0) if mark is None else (ended - mark[0], last - (mark[1] or last))
    allowed = SHARE * limit + SLACK if kind == "limit" else TERM
    word = _how(process.returncode, stdout.read_text(), complained.read_text())
    # If the process got less than nine tenths of a processor, other work delayed it.
    late = processor > allowed or (after > allowed and processor > 0.9 * after)
    return Seen(
        method=method,
        shape=shape,
        kind=kind,
        begin=round(begun - started, 2),
        wall=round(ended - begun, 2),
        after=round(after, 2),
        processor=round(processor, 2),
        allowed=allowed,
        ended=word,
        kept=not late and not word.startswith("failed"),
    )


def _begin(progress: Path, now: float) -> float | None:
    """Return when the search began, from the first line of the progress file; None without one."""
    try:
        line = progress.read_text().partition("\n")
        return now - json.loads(line[0])["t"] if line[1] else None
    except (OSError, ValueError):
        return None


def _processor(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
        return float(times.user + times.system)
    except psutil.Error:
        return 0.0


def _how(code: int, out: str, error: str) -> str:
    if code == 0 or (code == -signal.SIGTERM and out):  # the signal came after the model was written
        return str(json.loads(out.splitlines()[-1])["status"])
    message = error.strip().splitlines()[-1][:150] if error.strip() else f"code {code}"
    return f"refused: {message}" if any(word in message for word in REFUSED) else f"failed: {message}"


def runs(arguments: argparse.Namespace) -> Iterator[Seen]:
    """Yield the runs of the chosen methods on the chosen shapes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shape in arguments.shape or SHAPES:
            data = folder / "data.csv"
            write(SHAPES[shape], data)
            for method in arguments.method or [m.id for m in METHODS]:
                for kind in [arguments.only] if arguments.only else ["limit", "term"]:
                    yield watch_run(
                        method,
                        shape,
                        data,
                        folder,
                        limit=arguments.limit if kind == "limit" else 1.0,
                        kind=kind,
                        options=arguments.option,
                    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", action="append")
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--limit", type=float, default=3.0)
    parser.add_argument("--only", choices=["limit", "term"])
    parser.add_argument("--option", action="append", default=[], help="a further argument of `train`")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    broken = 0
    if not arguments.json:
        print(
            "| method | shape | kind | begins | search | after | processor | allowed | ended | kept |\n"
            + "|---" * 10
            + "|"
        )
    for seen in runs(arguments):
        broken += not seen.kept
        record: dict[str, Any] = asdict(seen)
        print(json.dumps(record) if arguments.json else "| " + " | ".join(map(str, record.values())) + " |", flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
