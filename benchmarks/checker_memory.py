"""Compare memory and time of training `exact-numeric` and checking its model.

    python benchmarks/checker_memory.py [--rows 1000000] [--columns 30] [--values 1000] [--depth 2] [--csv]

The generated table has numbers with `--values` distinct values and two classes that depend on two columns, with one row
in ten flipped. Child processes read the same file: `manage.py train --proof`, and `manage.py verify` with the proof and
without.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

ROOT = Path(__file__).resolve().parent.parent


def table(path: Path, rows: int, columns: int, values: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, (rows, columns)) / 8
    y = (X[:, 0] > values / 16) ^ (X[:, 1] > values / 24) ^ (rng.random(rows) < 0.1)
    arrow_table = pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"kind": np.where(y, "yes", "no")})
    if path.suffix == ".csv":
        arrow_csv.write_csv(arrow_table, path)
    else:
        parquet.write_table(arrow_table, path)


def run_measured(command: list[str]) -> tuple[float, float, float, str]:
    """Run a program; return its peak memory in GiB, wall seconds, processor seconds and output."""
    with tempfile.TemporaryFile("w+") as out:
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        out.seek(0)
        output = out.read()
    if process.returncode not in (0, 1):
        raise SystemExit(output)
    return usage.ru_maxrss / 2**20, seconds, usage.ru_utime + usage.ru_stime, output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--values", type=int, default=1000, help="different values of each column")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--csv", action="store_true", help="a CSV file, not Parquet")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / ("rows.csv" if options.csv else "rows.parquet")
        table(data, options.rows, options.columns, options.values)
        model = str(folder / "model.json")
        proof = str(folder / "model.proof.jsonl.gz")
        train = [
            "manage.py",
            "train",
            str(data),
            "--target",
            "kind",
            "--method",
            "exact-numeric",
            "--depth",
            str(options.depth),
        ]
        verify = ["manage.py", "verify", model, str(data)]
        for what, command in {
            "training, with its proof": [*train, "--output", model, "--proof", proof],
            "checking with the proof": [*verify, "--proof", proof],
            "checking without it": verify,
        }.items():
            memory, seconds, cpu, output = run_measured(command)
            last = output.strip().splitlines()[-1] if command is not train else ""
            print(f"{what:26s} {memory:6.2f} GB {seconds:7.1f} s {cpu:7.1f} processor s   {last[:90]}", flush=True)


if __name__ == "__main__":
    main()
