"""Measure fits to many rows: processor seconds, and peak memory beyond the input (Linux).

    python benchmarks/large_fits.py [--rows 1000000] [--columns 100] [--depth 2] [--methods exact ...] [--forms bytes ...]

The columns are random answers yes or no (or numbers, in the form `numbers`), and the class depends on three of them, with
one row in ten flipped. Each fit has a process of its own, which fits a few rows first, so that kernels are loaded. The form
`parquet` runs `manage.py train` on a file; its figures are those beyond the same command on 1,000 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import ROOT

from trainer import make_classifier

FORMS = ("bytes", "bool", "floats", "frame", "numbers", "parquet")
FEW = 1000  # rows of the fit that loads the kernels
TARGET = "class"


def rows_of(form: str, n: int, columns: int) -> tuple[np.ndarray | pd.DataFrame, np.ndarray]:
    """Return X in a form, and y int64 (n,)."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (n, columns), dtype=np.uint8)
    y = (((bits[:, 0] & bits[:, 1]) | bits[:, 2]) ^ (rng.random(n) < 0.1)).astype(np.int64)
    if form == "bool":
        return bits.astype(bool), y
    if form == "floats":
        return bits.astype(np.float64), y
    if form == "numbers":
        return (bits + rng.random(bits.shape)).round(2), y
    return pd.DataFrame(bits, columns=[f"x{j}" for j in range(columns)]) if form == "frame" else bits, y


def memory(field: str) -> float:
    """Return a field of this process's memory, in MB: `VmRSS` now, `VmHWM` at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def fit_apart(method: str, form: str, n: int, columns: int, depth: int) -> dict[str, float]:
    """Fit in this process; return processor seconds and peak memory of fit and of predict."""
    few = make_classifier(method, depth=depth).fit(*rows_of(form, FEW, columns))
    few.predict(rows_of(form, FEW, columns)[0])
    X, y = rows_of(form, n, columns)
    figures = {}
    for name, work in (("fit", lambda: few.fit(X, y)), ("predict", lambda: few.predict(X))):
        Path("/proc/self/clear_refs").write_text("5")  # sets the peak to the memory of now
        before = memory("VmRSS")
        begun = time.process_time()
        work()
        figures[f"{name} s"] = time.process_time() - begun
        figures[f"{name} MB"] = memory("VmHWM") - before
    return figures


def train_file(method: str, n: int, columns: int, depth: int) -> dict[str, float]:
    """Train from Parquet; return processor seconds and peak memory beyond those for few rows."""
    usage = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in (FEW, n):
            X, y = rows_of("frame", rows, columns)
            X.assign(**{TARGET: y}).to_parquet(f"{folder}/{rows}.parquet")
            command = ["manage.py", "train", f"{folder}/{rows}.parquet", "--target", TARGET, "--method", method]
            command += ["--depth", str(depth), "--test-share", "0", "--output", f"{folder}/model.json"]
            process = subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{' '.join(command)} failed.")
            usage.append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return {"train s": usage[1][0] - usage[0][0], "train MB": usage[1][1] - usage[0][1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=["exact"])
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS)
    parser.add_argument("--apart", action="store_true", help="fit once in this process and print a record")
    options = parser.parse_args()
    size = (options.rows, options.columns, options.depth)
    if options.apart:
        print(json.dumps(fit_apart(options.methods[0], options.forms[0], *size)))
        return
    for method in options.methods:
        for form in options.forms:
            if form == "parquet":
                figures = train_file(method, *size)
            else:
                command = [__file__, "--apart", "--methods", method, "--forms", form]
                for name, number in zip(("--rows", "--columns", "--depth"), size, strict=True):
                    command += [name, str(number)]
                ran = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True)
                figures = json.loads(ran.stdout)
            words = ", ".join(f"{name.split()[0]} {value:,.1f} {name.split()[1]}" for name, value in figures.items())
            print(f"{method} {form}: {words} (load {os.getloadavg()[0]:.0f})", flush=True)


if __name__ == "__main__":
    main()
