"""Compare counterfactuals of octweb and dice-ml for the same trees and rows.

Usage: DICE_PYTHON=/path/of/venv/bin/python python benchmarks/dice_peer.py [--rows 60] [--seconds 60]
       [--sets heloc,transfusion,credit]

dice-ml needs its own versions of libraries, so it runs in its own environment: `python -m venv V`,
`V/bin/pip install dice-ml`. The tree is CART of depth 4. dice-ml gets it as the exported Python function behind
scikit-learn's interface. Its methods are random, genetic and kdtree, with one counterfactual each. A change is measured
as in octweb: by the columns that differ, and by the sum of |change| / scale of the column, a category counting 1.
dice-ml rounds numbers to the decimals of the column, as octweb does. "none" counts rows for which dice-ml returned
nothing within 10 seconds, or a row with the same class. Rows are the first of the table; all columns may change within
their training range. Each method gets `--seconds` of processor time for a data set, and as many rows as it answers in
that time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics as stats
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SETS = ("heloc", "transfusion", "credit")
METHODS = ("random", "genetic", "kdtree")
ROW_SECONDS = 10.0  # processor seconds for one row; a slower row counts as one without a counterfactual


def child(path: str) -> int:
    """Find one counterfactual for each row and method with dice-ml, in its environment; print a line of JSON."""
    import dice_ml
    import numpy as np
    import pandas as pd

    case = json.loads(Path(path).read_text())
    space: dict[str, Any] = {}
    exec(case["python"], space)
    classes = case["classes"]
    columns = case["columns"]
    numeric = case["numeric"]
    frame = pd.DataFrame(case["table"], columns=[*columns, "outcome"])

    class Model:
        """Offer a tree through the part of scikit-learn's interface that dice-ml uses."""

        classes_ = np.arange(len(classes))

        def predict_proba(self, X: Any) -> Any:
            rows = pd.DataFrame(X, columns=columns).to_dict("records")
            shares = np.zeros((len(rows), len(classes)))
            shares[np.arange(len(rows)), [classes.index(space["predict"](row)) for row in rows]] = 1.0
            return shares

        def predict(self, X: Any) -> Any:
            return self.predict_proba(X).argmax(axis=1)

    signal.signal(signal.SIGPROF, _too_long)
    data = dice_ml.Data(dataframe=frame, continuous_features=numeric, outcome_name="outcome")
    record: dict[str, Any] = {}
    for method in case["methods"]:
        explainer = dice_ml.Dice(data, dice_ml.Model(model=Model(), backend="sklearn"), method=method)
        answers: list[dict[str, Any]] = []
        for row in case["rows"]:
            if sum(a["seconds"] for a in answers) > case["seconds"]:
                break
            began = time.process_time()
            changed = None
            signal.setitimer(signal.ITIMER_PROF, ROW_SECONDS)
            try:
                options = {"random_seed": 1} if method == "random" else {}
                query = pd.DataFrame([row], columns=columns)
                examples = explainer.generate_counterfactuals(
                    query, total_CFs=1, desired_class="opposite", verbose=False, **options
                )
                final = examples.cf_examples_list[0].final_cfs_df
                changed = None if final is None or not len(final) else json.loads(final[columns].iloc[0].to_json())
            except Exception as error:  # failures are counted, and must not end the benchmark
                print(str(error)[:100], file=sys.stderr)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            answers.append({"row": changed, "seconds": time.process_time() - began})
        record[method] = answers
    print("RESULT " + json.dumps(record), flush=True)
    return 0


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"nothing within {ROW_SECONDS:.0f} s")


def compare(name: str, python: str, most: int, budget: float) -> None:
    from common import FOLDER

    from trainer.data.column_statistics import statistics
    from trainer.data.reader import load
    from trainer.explain.flip import Flipper
    from trainer.table import ColumnKind
    from trainer.training.run import TrainRequest, train
    from trainer.tree.export.code import to_python

    about = next(d for d in json.loads((FOLDER / "manifest.json").read_text()) if d["name"] == name)
    # the last column is the target in all three files
    target = (FOLDER / about["file"]).read_text().partition("\n")[0].split(",")[-1]
    table, labels, _ = load(FOLDER / about["file"], target=target)
    tree = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 4}, name=name)).model.tree
    matrix = table.matrix()
    schema = table.schema
    known = statistics(schema, matrix)
    rows = matrix[:most]
    flipper = Flipper(tree, known)
    ours = []
    for row in rows:
        began = time.process_time()
        ours.append((flipper.find(row).flip, time.process_time() - began))

    def record(row: Any) -> dict[str, Any]:
        return {c.name: c.categories[int(v)] if c.categories else float(v) for c, v in zip(schema, row, strict=True)}

    case = {
        "python": to_python(tree), "classes": list(tree.classes), "columns": [c.name for c in schema], "methods": METHODS,
        "seconds": budget,
        "numeric": [c.name for c in schema if c.kind is ColumnKind.NUMERIC],
        "table": [[*record(row).values(), int(k)] for row, k in zip(matrix[:4000], labels.codes, strict=False)],
        "rows": [list(record(row).values()) for row in rows],
    }  # fmt: skip
    with TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(case))
        process = subprocess.run([python, __file__, "--child", str(path)], capture_output=True, text=True, timeout=1800)
    line = next((line for line in process.stdout.splitlines() if line.startswith("RESULT ")), "")
    if not line:
        print(f"{name}: dice-ml failed: {process.stderr.strip()[-300:]}")
        return
    space: dict[str, Any] = {}
    exec(case["python"], space)
    proved = sum(f is not None and f.proved for f, _ in ours)
    print(
        f"{name}: {tree.n_leaves} leaves, {len(rows)} rows; ours: {proved} proved, {1000 * stats.median(s for _, s in ours):.2f} ms"
    )
    for method, answers in json.loads(line.removeprefix("RESULT ")).items():
        more = []
        ratio = []
        none = 0
        seconds = []
        for row, (flip, _), answer in zip(rows, ours, answers, strict=False):
            seconds.append(answer["seconds"])
            row_record = record(row)
            other = answer["row"]
            if other is None or space["predict"](other) == space["predict"](row_record) or flip is None:
                none += 1
                continue
            parts = [
                (1.0 if c.categories else abs(float(other[c.name]) - row_record[c.name]) / s.scale)
                for c, s in zip(schema, known, strict=True)
                if (other[c.name] != row_record[c.name] if c.categories else float(other[c.name]) != row_record[c.name])
            ]
            more.append(len(parts) - len(flip.columns))
            ratio.append(sum(parts) / flip.distance)
        words = (
            f"size {stats.median(ratio):.1f} times ours (median; smallest {min(ratio):.2f}), {stats.mean(more):.1f} more columns, "
            if ratio
            else ""
        )
        print(f"  {method}: {words}{none} of {len(answers)} none, {1000 * stats.median(seconds):.0f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child)
    python = os.environ.get("DICE_PYTHON", "")
    if not Path(python).is_file():
        print("dice-ml is not here: make an environment for it and set DICE_PYTHON; see the top of this file.")
        return 0
    for name in arguments.sets.split(","):
        compare(name, python, arguments.rows, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    raise SystemExit(main())
