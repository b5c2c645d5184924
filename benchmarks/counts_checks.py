"""Compare trees from counts with `exact` on the rows, and divisions of a table with the whole table."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import ROOT
from pyarrow import csv

KEY = "person"
TARGET = "class"
PENALTIES = (0.0, 0.01, 0.03)
EPSILON = 1e-9
# counts a file in small pieces with a checkpoint after each, and prints the counted rows
COUNT_OFTEN = """
import sys
from pathlib import Path
from trainer.counts import collect, files
collect.SECONDS = 0.0
files.PIECE_ROWS = 1 << 15
request = collect.CountRequest(source=Path(sys.argv[1]), target="class", depth=3, threads=1)
say = lambda phase, rows: print(phase, rows, flush=True) if phase == "counting" else None
collect.count(request, Path(sys.argv[2]), say)
"""
NAMES = ("counts.json", "counts.npz")


def random_table(rng: np.random.Generator) -> pa.Table:
    """Return 12 to 80 rows with 2 to 8 yes/no columns, some constant or equal, a person, and 2 or 3 classes."""
    n = int(rng.integers(12, 80))
    bits = rng.integers(0, 2, (n, int(rng.integers(2, 9))))
    bits[:, 0] *= int(rng.integers(0, 2))  # in half of the tables it is constant
    if rng.random() < 0.3:
        bits[:, -1] = bits[:, 1]
    classes = int(rng.integers(2, 4))
    labels = rng.integers(0, classes, n)
    labels[:classes] = range(classes)
    return as_table(bits, [f"c{k}" for k in labels], rng.integers(0, 12, n))


def as_table(bits: np.ndarray, labels: list[str], people: np.ndarray) -> pa.Table:
    columns = {f"q{j}": pa.array(bits[:, j].astype(np.int8)) for j in range(bits.shape[1])}
    return pa.table(columns | {KEY: pa.array([f"p{k}" for k in people]), TARGET: pa.array(labels)})


def counted(path: Path, folder: Path, depth: int, **changes: Any) -> Any:
    from trainer.counts.collect import CountRequest, count

    request = CountRequest(source=path, target=TARGET, depth=depth, folds=3, key=KEY, threads=1, **changes)
    return count(request, folder)


def compare(table: pa.Table, folder: Path, depth: int, penalty: float, *, editing: bool) -> int:
    """Compare everything that is stated from counts with `exact`; return the number of comparisons, or raise AssertionError."""
    from trainer.counts.collect import folds_of
    from trainer.counts.files import FileSource
    from trainer.counts.good_trees import count_good_trees
    from trainer.counts.recount import recount
    from trainer.counts.train import train_counts
    from trainer.counts.workbench import CountedSession
    from trainer.data.parsing.cells import Cells
    from trainer.data.reader import load
    from trainer.training.run import TrainRequest, train
    from trainer.workbench.good_trees import GoodRequest
    from trainer.workbench.requests import WorkbenchSession

    folder.mkdir(parents=True)
    pq.write_table(table, folder / "rows.parquet")
    counts = counted(folder / "rows.parquet", folder / "counts", depth)
    settings = {"depth": depth, "leaf_penalty": penalty}
    found = train_counts(counts, settings)
    rows, labels, _ = load(folder / "rows.parquet", target=TARGET, ignore=[KEY])
    request = TrainRequest(table=rows, labels=labels, method="exact", parameters=settings)
    expected = train(request).certificate
    value = expected.objective
    same = [abs(stated - value) < EPSILON for stated in (found.certificate.objective, found.certificate.bound)]
    again = recount(found.model, FileSource(folder / "rows.parquet"))
    same += [again.same, again.correct == found.certificate.correct]
    people = Cells.of(table[KEY].combine_chunks())
    same += compare_folds(found.model, folds_of(people, counts.folds), request)
    if editing:
        session = WorkbenchSession(request)
        monitor = session.monitor()
        both = [
            {session.bench.space.questions.text(p.question): p.price for p in listed}
            for listed in (
                session.price_list("root", [], monitor),
                CountedSession(counts, settings).price_list("root", [], monitor),
            )
        ]
        same.append(both[0] == both[1])
        good = count_good_trees(counts, settings, slack_rows=2)
        record = session.good_trees(GoodRequest(slack_rows="2", listed=0, disputed=0), session.monitor())
        same += [good.count == record["count"], good.count_without_idle == record["count_without_idle"]]
    assert all(same), same
    return len(same)


def compare_folds(model: Any, folds: np.ndarray, request: Any) -> list[bool]:
    """Return whether each fold's tree is the best on the other folds, and whether its accuracy is that of its rows."""
    from trainer.training.run import train
    from trainer.tree.nodes import tree_from_json

    accuracies = model.metrics["cross_validation"].get("accuracies", [])
    matrix = request.table.matrix()
    codes = request.labels.codes
    same = []
    for fold, (nodes, accuracy) in enumerate(zip(model.rows["fold_trees"] or [], accuracies, strict=True)):
        tree = tree_from_json(nodes, schema=model.tree.schema, classes=model.tree.classes)
        right = tree.predict(matrix) == codes
        others = np.flatnonzero(folds != fold)
        request_of_fold = replace(request, table=request.table.take(others), labels=request.labels.take(others))
        best = train(request_of_fold).certificate.objective
        value = right[others].mean() - request.parameters["leaf_penalty"] * tree.n_leaves
        same += [abs(right[folds == fold].mean() - accuracy) < EPSILON, abs(value - best) < EPSILON]
    return same


def compare_tables(number: int, folder: Path) -> str:
    """Compare random tables at depth 1 to 3; return a sentence."""
    comparisons = 0
    for seed in range(number):
        rng = np.random.default_rng([seed, 46])
        penalty = float(rng.choice(PENALTIES))
        comparisons += compare(random_table(rng), folder / str(seed), 1 + seed % 3, penalty, editing=True)
    return f"{number} random tables: {comparisons:,} comparisons with `exact` are equal"


def compare_encoded(folder: Path, data: Path, most: int) -> Iterator[str]:
    """Compare the shared encodings with at most `most` columns at depth 2 and 3; yield a line for each."""
    for path in sorted(data.glob("*.csv*")):
        read = csv.read_csv(path)
        columns = [name for name in read.column_names if name not in (TARGET, "target", "label")]
        target = next(name for name in read.column_names if name not in columns)
        if len(columns) > most:
            yield f"{path.name}: {len(columns)} columns, left out"
            continue
        bits = np.array([read[name].to_numpy() for name in columns]).T
        labels = [f"c{k}" for k in read[target].to_pylist()]
        table = as_table(bits, labels, np.arange(len(bits)) % 97)
        begun = time.process_time()
        done = [compare(table, folder / f"{path.name}-{depth}", depth, 0.005, editing=depth == 2) for depth in (2, 3)]
        yield f"{path.name}: {len(bits)} × {len(columns)}, {sum(done)} comparisons, {time.process_time() - begun:.1f} s"


def compare_kills(rows: Path, folder: Path, kills: int = 10) -> str:
    """Kill a count `kills` times, each after three further pieces, and compare its numbers with those of a whole count."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-c", COUNT_OFTEN, str(rows)]
    subprocess.run([*command, str(folder / "whole")], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    starts = []
    for _ in range(kills):
        with subprocess.Popen([*command, str(folder / "killed")], stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
            assert child.stdout is not None
            reached = [int(line.split()[1]) for line in itertools.islice(child.stdout, 3)]
            child.kill()
        starts.append(reached[0])
    subprocess.run([*command, str(folder / "killed")], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    numbers = [(folder / name / NAMES[1]).read_bytes() for name in ("whole", "killed")]
    assert numbers[0] == numbers[1]
    assert starts == sorted(set(starts))
    return f"a count that was killed {kills} times, and resumed after {starts[-1]:,} rows at last, gives the same bytes"


def compare_parts(number: int, folder: Path) -> str:
    """Compare random divisions of a table into parts, merged in random order, with the whole; return a sentence."""
    from trainer.counts.folder import merge, write_counts

    rng = np.random.default_rng(46)
    table = random_table(rng)
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "whole.parquet")
    whole = counted(folder / "whole.parquet", folder / "whole", 3)
    for division in range(number):
        order = rng.permutation(len(table))
        cuts = sorted({0, len(order), *rng.integers(1, len(order), int(rng.integers(1, 8))).tolist()})
        parts = []
        for part, (start, end) in enumerate(pairwise(cuts)):
            place = folder / f"{division}-{part}"
            pq.write_table(table.take(order[start:end]), place.with_suffix(".parquet"))
            parts.append(counted(place.with_suffix(".parquet"), place, 3, questions=whole.questions))
        merged = [merge([parts[k] for k in rng.permutation(len(parts))]) for _ in range(2)]
        assert (merged[0].low == whole.low).all(), division
        assert merged[0].rows == whole.rows
        for place, one in zip((f"{division}-a", f"{division}-b"), merged, strict=True):
            write_counts(replace(one, created=""), folder / place)
        files = [[(folder / f"{division}-{side}" / name).read_bytes() for name in NAMES] for side in "ab"]
        assert files[0] == files[1], division
    return f"{number} random divisions into up to 8 parts: numbers of the whole, and the same bytes in any order"
