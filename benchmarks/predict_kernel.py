"""Compare the prediction speed of our kernel, scikit-learn and onnxruntime.

    python benchmarks/predict_kernel.py [--rows 1000000] [--columns 30] [--depth 6] [--repeats 5]

All three use the same CART tree and one thread, in one run. Before timing, all leaves and classes are compared. Ratios
are the result; rows per second depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import onnxruntime
from sklearn.tree import DecisionTreeClassifier

from trainer.table import numeric_table
from trainer.tree.export.onnx import to_onnx
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Linear, Threshold


def best_time(work: Callable[[], object], repeats: int) -> float:
    """Return the seconds of the fastest of `repeats` calls, after a first call that does not count."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def translate(model: DecisionTreeClassifier, X: np.ndarray, y: np.ndarray) -> Tree:
    """Convert a scikit-learn tree to a tree of octweb."""
    inner = model.tree_

    def visit(v: int) -> Draft:
        if inner.children_left[v] < 0:
            return DraftLeaf()
        split = Threshold(feature=int(inner.feature[v]), threshold=float(inner.threshold[v]))
        return DraftBranch(split=split, left=visit(inner.children_left[v]), right=visit(inner.children_right[v]))

    return grow(visit(0), X, y, schema=numeric_table(X[:10]).schema, classes=("a", "b", "c"))


def bivariate(tree: Tree, X: np.ndarray, y: np.ndarray) -> Tree:
    """Return a copy of the tree with a second column in every split."""

    def visit(v: int) -> Draft:
        node = tree.nodes[v]
        if not isinstance(node.split, Threshold):
            return DraftLeaf()
        split = Linear(
            features=(node.split.feature, (node.split.feature + 1) % X.shape[1]),
            coefficients=(1.0, 0.125),
            threshold=node.split.threshold,
            levels=(-1, -1),
        )
        return DraftBranch(split=split, left=visit(node.left), right=visit(node.right))

    return grow(visit(0), X, y, schema=tree.schema, classes=tree.classes)


def onnx_session(tree: Tree) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(to_onnx(tree), options, providers=["CPUExecutionProvider"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    # All values are exact in float32, because scikit-learn converts its input to that.
    X = rng.normal(size=(options.rows, options.columns)).astype(np.float32).astype(np.float64)
    single = X.astype(np.float32)
    signal = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] ** 2 + rng.normal(size=options.rows)
    y = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3])).astype(np.int32)
    train = slice(0, min(100_000, options.rows))
    model = DecisionTreeClassifier(max_depth=options.depth, random_state=0).fit(single[train], y[train])
    tree = translate(model, X[train], y[train])
    pairs = bivariate(tree, X[train], y[train])
    sessions = {"threshold": onnx_session(tree), "two columns": onnx_session(pairs)}
    for session, names in zip(sessions.values(), (tree, pairs), strict=True):
        assert np.array_equal(session.run(["leaf"], {"X": X})[0], names.apply(X)), "onnxruntime reaches other leaves"
    assert np.array_equal(model.predict(single), tree.predict(X)), "scikit-learn predicts other classes"

    seconds = {
        "octweb kernel, threshold splits": best_time(lambda: tree.apply(X), options.repeats),
        "octweb kernel, two columns per split": best_time(lambda: pairs.apply(X), options.repeats),
        "scikit-learn, float32 input": best_time(lambda: model.tree_.apply(single), options.repeats),
        "scikit-learn, float64 input": best_time(lambda: model.apply(X), options.repeats),
        "onnxruntime, threshold splits": best_time(
            lambda: sessions["threshold"].run(["leaf"], {"X": X}), options.repeats
        ),
        "onnxruntime, two columns per split": best_time(
            lambda: sessions["two columns"].run(["leaf"], {"X": X}), options.repeats
        ),
    }
    base = seconds["octweb kernel, threshold splits"]
    print(f"{options.rows:,} rows x {options.columns} columns, depth {tree.depth}, {tree.n_leaves} leaves, one thread")
    for name, value in seconds.items():
        print(f"{name:36} {value:7.3f} s {options.rows / value / 1e6:7.1f} M rows/s {value / base:6.2f} x our time")
    print(json.dumps({"rows": options.rows, "columns": options.columns, "depth": tree.depth, "seconds": seconds}))


if __name__ == "__main__":
    main()
