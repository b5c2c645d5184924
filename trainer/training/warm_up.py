"""Load a method's libraries and compile its kernels by tiny trainings."""

from __future__ import annotations

import numpy as np

from trainer.certificate import Guarantee
from trainer.families.exact.method import METHOD
from trainer.families.exact.workbench import Workbench
from trainer.methods.base import Method
from trainer.registry import get
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train

ROWS = 60
FEW = 12
CLASSES = ("a", "b", "c")


def _of_hyperplanes(method: Method) -> bool:
    """Return whether the method proves whole trees of linear splits."""
    return method.guarantee is Guarantee.TREE and "linear" in method.splits


def _rows(method: Method, rows: int, classes: int) -> tuple[Table, Labels]:
    """Return rows with two numeric columns, on which the classes depend jointly, and a categorical one of five categories."""
    draw = np.random.default_rng(0)
    x, z, free = draw.normal(size=(3, rows))
    noise = 0.0 if _of_hyperplanes(method) else 0.1
    codes = ((x * z > 0) ^ (draw.random(rows) < noise)).astype(np.int32)
    if classes == len(CLASSES):
        codes[free > 1] = classes - 1
    columns = [
        Column(schema=ColumnSchema(name="x", kind=ColumnKind.NUMERIC), cells=x),
        Column(schema=ColumnSchema(name="z", kind=ColumnKind.NUMERIC), cells=z),
        Column(
            schema=ColumnSchema(name="c", kind=ColumnKind.CATEGORICAL, categories=tuple("vwxyz")),
            cells=np.digitize(free + x, (-1.0, -0.3, 0.3, 1.0)).astype(np.float64),
        ),
    ]
    table = Table(columns=tuple(columns), row_numbers=np.arange(1, rows + 1))
    return table, Labels(name="y", classes=CLASSES[:classes], codes=codes)


def warm(method_id: str, *, workbench: bool = True) -> None:
    """Train tiny trees with the method, without a limit, because a limit during compilation would skip the other kernels.

    With `workbench`, also compile the kernels of its workbench.

    Methods without kernels get fewer rows, because any training loads their libraries. For hyperplanes, the rows are
    separable, so that the proof needs no search.
    """
    method = get(method_id)
    depth = {}
    if method.parameter("depth") is not None:
        depth = {"depth": 3 if method.precompile else 1}
    for more in method.precompile or ({},):
        settings = {**depth, **more}
        table, labels = _rows(method, ROWS if method.precompile else FEW, settings.pop("classes", 2))
        train(TrainRequest(table=table, labels=labels, method=method_id, parameters=settings))
    if workbench and method.workbench is not None and method.workbench.good_trees:
        warm_workbench()


def warm_workbench() -> None:
    """Compile the kernels of the workbench: complete a tree, price it and count good trees."""
    table, labels = _rows(METHOD, ROWS, 2)
    # few thresholds, because counting distinct trees and importance takes long and compiles the same for more of them
    problem = pose(table, labels, METHOD.settings({"leaf_penalty": 0.01, "bins": 2}))
    bench = Workbench(problem, depth=4)
    bench.complete(["forbid y x", "ask root z <= 0.123"])
    next(iter(bench.price_list("root")), None)
    good = bench.good_trees(slack="0.1", max_leaves=6, must=["x"])
    _ = good.count, good.without_idle, good.distinct, good.first_questions, good.tested_weights, good.importance
    good.sample(3)
