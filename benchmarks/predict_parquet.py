"""Compare batch prediction of a Parquet file by octweb, scikit-learn and onnxruntime.

    python benchmarks/predict_parquet.py [--rows 1000000] [--columns 30] [--depth 6] [--repeats 3] [--few-columns]

All of them read the same file from the disk cache with pyarrow on one thread and use the same tree. octweb also writes
the answers (label, shares, leaf) to a file, as `manage.py predict` does after its start. Before timing, classes and
leaves are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from predict_kernel import onnx_session, translate
from sklearn.tree import DecisionTreeClassifier

from trainer.data.formats.file_bytes import ReadLimits
from trainer.prediction.predict_file import predict_file
from trainer.tree.file import ModelFile

LIMITS = ReadLimits(bytes=10**11, unpacked_bytes=10**11, rows=10**9, columns=10**5, cells=10**11)


def times(programs: dict[str, Callable[[], object]], repeats: int) -> dict[str, tuple[float, float]]:
    """Run the programs in turn; return the least wall and the least processor seconds of each."""
    times_by_program: dict[str, list[tuple[float, float]]] = {}
    for _ in range(repeats):
        for name, work in programs.items():
            wall = time.perf_counter()
            cpu = time.process_time()
            work()
            times_by_program.setdefault(name, []).append((time.perf_counter() - wall, time.process_time() - cpu))
    return {name: (min(t[0] for t in all_), min(t[1] for t in all_)) for name, all_ in times_by_program.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--few-columns", action="store_true", help="a tree that reads about ten columns, not nearly all"
    )
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    # All values are exact in float32, because scikit-learn converts its input to that.
    X = rng.normal(size=(options.rows, options.columns)).astype(np.float32).astype(np.float64)
    signal = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] ** 2 + rng.normal(size=options.rows)
    if not options.few_columns:
        signal = X.sum(axis=1)
    y = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3])).astype(np.int32)
    train = slice(0, min(100_000, options.rows))
    sklearn_tree = DecisionTreeClassifier(max_depth=options.depth, random_state=0).fit(X[train], y[train])
    tree = translate(sklearn_tree, X[train], y[train])
    session = onnx_session(tree)
    names = [c.name for c in tree.schema]
    with tempfile.TemporaryDirectory(prefix="octweb-bench-") as folder:
        source = Path(folder) / "rows.parquet"
        pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), source)
        size = source.stat().st_size
        model = ModelFile.of_tree(tree)

        def matrix() -> np.ndarray:
            table = pq.read_table(source, use_threads=False)
            return np.column_stack([column.to_numpy() for column in table.columns])

        def predict_with_octweb(ending: str) -> Path:
            output = Path(folder) / f"answers.{ending}"
            predict_file(model, source, output, limits=LIMITS)
            return output

        answers = pq.read_table(predict_with_octweb("parquet"))
        classes = np.array(answers["label"].to_pylist())
        assert np.array_equal(classes, np.array(tree.classes)[sklearn_tree.predict(matrix())]), "other classes"
        leaves = session.run(["leaf"], {"X": matrix()})[0]
        assert np.array_equal(answers["leaf"].to_numpy(), leaves), "onnxruntime reaches other leaves"
        del answers, classes, leaves, X
        times_by_program = times(
            {
                "octweb, answers written as Parquet": lambda: predict_with_octweb("parquet"),
                "octweb, answers written as CSV": lambda: predict_with_octweb("csv"),
                "scikit-learn, classes in memory": lambda: sklearn_tree.predict(matrix()),
                "scikit-learn, shares in memory": lambda: sklearn_tree.predict_proba(matrix()),
                "onnxruntime, leaves in memory": lambda: session.run(["leaf"], {"X": matrix()}),
            },
            options.repeats,
        )
    n_used = len(tree.used_columns)
    print(
        f"{options.rows:,} rows x {options.columns} columns ({size / 1e6:.0f} MB, the tree reads {n_used}), depth {tree.depth}, "
        f"{tree.n_leaves} leaves, load average {os.getloadavg()[0]:.1f}\n\n"
        "| program | s | processor s | million rows per processor second | processor time ÷ ours |\n|---|---|---|---|---|"
    )
    base = times_by_program["octweb, answers written as Parquet"][1]
    for name, (wall, cpu) in times_by_program.items():
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {options.rows / cpu / 1e6:.2f} | {cpu / base:.2f} |")
    print(json.dumps({"rows": options.rows, "seconds": times_by_program}))


if __name__ == "__main__":
    main()
