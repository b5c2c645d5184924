"""Time counting and training from counts, beside training from rows.

python benchmarks/counts.py [MODE] [--rows N] [--columns 20]
Processor seconds, and peak memory of a child process beyond that of the loaded libraries.

peers (the default) writes --rows (200,000) rows of numbers to Parquet, chooses thresholds, counts and trains. `exact`,
scikit-learn, LightGBM and pystreed train on the same file.
stream counts --rows (100,000,000) rows of --columns binary features at --depth, drawn as they are counted, so no table
is made, and proves the best tree.
parquet writes --rows (4,000,000) rows of --columns (40) yes/no columns, counts them, and trains. Also with a quarter of
the rows, for the time and the memory of one more row.
tables compares --rows (500) random tables and the encodings of the shared data with `exact` at depth 1 to 3: value,
bound, node counts, accuracy by folds, prices of questions, and numbers of good trees.
parts counts 300 random divisions of a table into parts, in random order, and compares the bytes.
kills kills a count of --rows (1,000,000) rows ten times, resumes it, and compares the bytes.
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
from common import FOLDER, ROOT
from counts_checks import compare_encoded, compare_kills, compare_parts, compare_tables

QUESTIONS = 60
WORDS = 512
DEPTH = 3
BINS = 4
TARGET = "class"


def stream(rows: int, questions: int, depth: int) -> dict[str, float]:
    """Count random binary features whose class depends on three of them and noise, and find the best tree.

    Returns the processor seconds, without the time to generate the features, those of the search, and the accuracy.
    """
    from trainer.counts.kernels import add_counts
    from trainer.counts.search import TreeSearch
    from trainer.counts.sets import number_of_sets

    rng = np.random.default_rng(0)
    out = np.zeros((2, number_of_sets(questions, depth)), np.int64)
    # compiles the kernel before the clock starts
    add_counts(rng.integers(0, 2**63, (questions, 1)).astype(np.uint64), depth, out[0].copy())
    seconds = 0.0
    for block in range(-(-rows // (64 * WORDS))):
        words = rng.integers(0, 2**64, (questions, WORDS), dtype=np.uint64)
        noise = rng.integers(0, 2**64, (3, WORDS), dtype=np.uint64)
        label = block % 2  # a block has rows of one class, as a count sorts them
        words[0] = (words[1] & words[2]) ^ (noise[0] & noise[1] & noise[2])
        words[0] = ~words[0] if label else words[0]
        begun = time.process_time()
        add_counts(words, depth, out[label])
        seconds += time.process_time() - begun
        out[label, 0] += 64 * WORDS
    begun = time.process_time()
    allowed = np.ones(questions, bool)
    best = TreeSearch(own=out, other=out, allowed=allowed, depth=depth).best
    search = time.process_time() - begun
    return {"rows": int(out[:, 0].sum()), "seconds": seconds, "search": search, "correct": best.correct[-1]}


def write_answers(path: Path, rows: int, columns: int) -> None:
    """Write a Parquet table of yes/no columns, whose class depends on three of them and noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.bool_()) for name in [*(f"q{j}" for j in range(columns)), TARGET]])
    with pq.ParquetWriter(path, schema, compression=None) as writer:
        for start in range(0, rows, 1 << 20):
            size = min(1 << 20, rows - start)
            words = rng.integers(0, 2**64, (columns, 1 << 14), dtype=np.uint64)
            noise = rng.integers(0, 2**64, (3, 1 << 14), dtype=np.uint64)
            label = (words[0] ^ (words[1] & words[2])) ^ (noise[0] & noise[1] & noise[2])
            arrays = [
                pa.Array.from_buffers(pa.bool_(), size, [None, pa.py_buffer(own.tobytes())]) for own in [*words, label]
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


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
        "status": "optimal" if tree.fit_result.is_optimal() else "limit",
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


def count_answers(path: Path) -> dict[str, float | str]:
    """Count a file of yes/no columns and train."""
    from trainer.counts.collect import CountRequest, count
    from trainer.counts.train import train_counts

    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        counts = count(CountRequest(source=path, target=TARGET, depth=DEPTH), Path(folder) / "counts")
        seconds = time.process_time() - begun
        certificate = train_counts(counts, {"depth": DEPTH}).certificate
        return {"seconds": seconds, "correct": certificate.correct, "status": str(certificate.status)}


def worker(name: str, argument: str) -> None:
    """Print the record of one worker, with its peak memory in MB beyond that of the loaded libraries."""
    import pyarrow.parquet  # noqa: F401, part of what every worker loads

    import trainer.training.run  # noqa: F401

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name == "stream":
        rows, questions, depth = map(int, argument.split(","))
        record: dict[str, float | str] = dict(stream(rows, questions, depth))
    else:
        record = (WORK | {"answers": count_answers})[name](Path(argument))
    print(json.dumps(record | {"mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}))


def peers(rows: int, columns: int) -> None:
    """Print the time, the memory and the correct rows of each method on the same Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_table(path, rows, columns)
        print(f"parquet: {rows:,} rows × {columns} columns\n{'':10}{'seconds':>9}{'MB':>7}  correct")
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


def parquet(rows: int, columns: int) -> None:
    """Print time and memory of a count of yes/no columns, and what one more row takes."""
    seconds = []
    for size in (rows // 4, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            write_answers(path, size, columns)
            record = run_apart("answers", str(path))
        seconds.append(float(record["seconds"]))
        print(
            f"parquet: {size:,} rows × {columns}: {record['seconds']:.1f} s, {record['mb']:.0f} MB, {record['status']}"
        )
    print(f"one more row: {1e9 * (seconds[1] - seconds[0]) / (rows - rows // 4):.0f} ns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "mode", nargs="?", default="peers", choices=["peers", "stream", "parquet", "tables", "parts", "kills"]
    )
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--depth", type=int, default=DEPTH)
    parser.add_argument("--encoded-columns", type=int, default=60, help="tables: leave wider encodings out")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker)
    elif options.mode == "stream":
        rows = options.rows or 100_000_000
        columns = options.columns or QUESTIONS
        record = run_apart("stream", f"{rows},{columns},{options.depth}")
        print(
            f"stream: {rows:,} rows × {columns} questions, depth {options.depth}: {record['seconds']:.1f} s, "
            f"search {record['search']:.2f} s, {record['mb']:.0f} MB, {record['correct']:,} correct"
        )
    elif options.mode == "parquet":
        parquet(options.rows or 4_000_000, options.columns or 40)
    elif options.mode == "peers":
        peers(options.rows or 200_000, options.columns or 20)
    else:
        check(options.mode, options.rows, options.encoded_columns)


def check(mode: str, number: int | None, most: int) -> None:
    """Compare trees from counts with those of the rows, or divisions of a table with the whole."""
    with tempfile.TemporaryDirectory() as folder:
        if mode == "kills":
            path = Path(folder) / "rows.parquet"
            write_answers(path, number or 1_000_000, 40)
            print(compare_kills(path, Path(folder) / "kills"))
            return
        if mode == "parts":
            print(compare_parts(number or 300, Path(folder) / "parts"))
            return
        print(compare_tables(number or 500, Path(folder) / "tables"))
        for line in compare_encoded(Path(folder) / "encoded", FOLDER / "encoded", most):
            print(line, flush=True)


if __name__ == "__main__":
    main()
