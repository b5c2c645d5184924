"""Time counting and training from counts, beside training from rows.

python benchmarks/counts.py [--rows 200000] [--large 10000000] [--columns 20]
Processor seconds, and peak memory of a child process beyond that of the loaded libraries. `kernel` counts --large
rows × 60 binary features, drawn as they are counted, so no table is made. `parquet` writes --rows rows of numbers to
Parquet, chooses thresholds, and counts. `exact`, scikit-learn, LightGBM and pystreed train on the same file if it fits
into memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import ROOT

QUESTIONS = 60
WORDS = 512
DEPTH = 3
BINS = 4
TARGET = "class"


def kernel(rows: int) -> dict[str, float]:
    """Count random binary features of two classes.

    Returns the rows and the processor seconds, without the time to generate the features.
    """
    from trainer.counts.kernels import add_counts
    from trainer.counts.sets import number_of_sets

    rng = np.random.default_rng(0)
    out = np.zeros((2, number_of_sets(QUESTIONS, DEPTH)), np.int64)
    # compiles the kernel before the clock starts
    add_counts(rng.integers(0, 2**63, (QUESTIONS, 1)).astype(np.uint64), DEPTH, out[0].copy())
    seconds = 0.0
    for block in range(-(-rows // (64 * WORDS))):
        words = rng.integers(0, 2**63, (QUESTIONS, WORDS)).astype(np.uint64)
        begun = time.process_time()
        add_counts(words, DEPTH, out[block % 2])
        seconds += time.process_time() - begun
    return {"rows": rows, "seconds": seconds}


def write_table(path: Path, rows: int, columns: int) -> None:
    """Write a Parquet table of numbers with two decimals, whose class depends on three columns and noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(columns)]
    schema = pa.schema([*((name, pa.float64()) for name in names), (TARGET, pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1 << 18):
            X = rng.normal(size=(min(1 << 18, rows - start), columns)).round(2)
            y = (X[:, 0] > 0) ^ ((X[:, 1] > 0.5) & (X[:, 2] > 0)) ^ (rng.random(len(X)) < 0.1)
            arrays = [*(pa.array(X[:, j]) for j in range(columns)), pa.array(np.where(y, "yes", "no"))]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def counting(path: Path) -> dict[str, float | str]:
    """Count the file and train from the counts."""
    from trainer.counts.collect import CountRequest, count
    from trainer.counts.train import train_counts

    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        counts = count(
            CountRequest(source=path, target=TARGET, depth=DEPTH, bins=BINS, threads=1), Path(folder) / "counts"
        )
        middle = time.process_time()
        result = train_counts(counts, {"depth": DEPTH})
        return {"questions": len(counts.questions), "seconds": middle - begun, "search": time.process_time() - middle,
                "correct": result.certificate.correct, "status": str(result.certificate.status)}  # fmt: skip


def exact(path: Path) -> dict[str, float | str]:
    """Train `exact` from the file, as the command line does."""
    from trainer.data.reader import load
    from trainer.training.run import TrainRequest, train

    begun = time.process_time()
    table, labels, _ = load(path, target=TARGET)
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": DEPTH, "bins": BINS}))
    return {
        "seconds": time.process_time() - begun,
        "correct": result.certificate.correct,
        "status": str(result.certificate.status),
    }


def sklearn(path: Path) -> dict[str, float | str]:
    """Grow scikit-learn's tree of the same depth: greedy, over all thresholds."""
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    begun = time.process_time()
    table = pd.read_parquet(path)
    X = table.drop(columns=TARGET)
    tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(X, table[TARGET])
    return {
        "seconds": time.process_time() - begun,
        "correct": int((tree.predict(X) == table[TARGET]).sum()),
        "status": "greedy",
    }


def lightgbm(path: Path) -> dict[str, float | str]:
    """Grow one tree of LightGBM."""
    import pandas as pd
    from lightgbm import LGBMClassifier

    begun = time.process_time()
    table = pd.read_parquet(path)
    X = table.drop(columns=TARGET)
    tree = LGBMClassifier(n_estimators=1, max_depth=DEPTH, num_leaves=8, n_jobs=1, verbose=-1).fit(X, table[TARGET])
    return {
        "seconds": time.process_time() - begun,
        "correct": int((tree.predict(X) == table[TARGET]).sum()),
        "status": "greedy",
    }


def pystreed(path: Path) -> dict[str, float | str]:
    """Train pystreed on the binary features that `exact` uses."""
    import pandas as pd
    from pystreed import STreeDClassifier

    from trainer.data.encoding import encode_binary
    from trainer.data.reader import load

    begun = time.process_time()
    table, labels, _ = load(path, target=TARGET)
    X = pd.DataFrame(encode_binary(table, bins=BINS).bits(table))
    tree = STreeDClassifier(max_depth=DEPTH, max_num_nodes=2**DEPTH - 1, time_limit=600)
    tree.fit(X.to_numpy(), labels.codes)
    right = int((tree.predict(X.to_numpy()) == labels.codes).sum())
    return {
        "seconds": time.process_time() - begun,
        "correct": right,
        "status": "optimal" if tree.is_optimal() else "limit",
    }


WORK = {"counts": counting, "exact": exact, "sklearn": sklearn, "lightgbm": lightgbm, "pystreed": pystreed}
NEEDED = {"lightgbm": "lightgbm", "pystreed": "pystreed"}


def run_apart(name: str, argument: str) -> dict[str, float | str]:
    """Run one worker in a child process; return its record, or only a status if it fails."""
    result = subprocess.run(
        [sys.executable, __file__, "--worker", name, argument], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if result.returncode:
        return {"status": result.stderr.strip().splitlines()[-1][:60]}
    return dict(json.loads(result.stdout.splitlines()[-1]))


def worker(name: str, argument: str) -> None:
    """Print the record of one worker, with its peak memory in MB beyond that of the loaded libraries."""
    import pyarrow.parquet  # noqa: F401, part of what every worker loads

    import trainer.training.run  # noqa: F401

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = kernel(int(argument)) if name == "kernel" else WORK[name](Path(argument))
    print(json.dumps(record | {"mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--large", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker)
        return
    record = run_apart("kernel", str(options.large))
    print(
        f"kernel: {options.large:,} rows × {QUESTIONS} questions, depth {DEPTH}: {record['seconds']:.1f} s, {record['mb']:.0f} MB"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_table(path, options.rows, options.columns)
        print(f"parquet: {options.rows:,} rows × {options.columns} columns\n{'':10}{'seconds':>9}{'MB':>7}  correct")
        for name in WORK:
            if name in NEEDED and importlib.util.find_spec(NEEDED[name]) is None:
                print(f"{name:10} is not installed")
                continue
            record = run_apart(name, str(path))
            if "seconds" not in record:
                print(f"{name:10} {record['status']}")
                continue
            search = f", search {record['search']:.1f} s" if "search" in record else ""
            print(
                f"{name:10}{record['seconds']:9.1f}{record['mb']:7.0f}  {record['correct']:,} ({record['status']}{search})"
            )


if __name__ == "__main__":
    main()
