"""Declare the method CART, a baseline: the greedy tree of thresholds.

Breiman, Friedman, Olshen & Stone (1984). Stopping and pruning are those of all greedy methods. Nothing is proved about the tree.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.dtypes import CountArray
from trainer.growing.growth import Splitter
from trainer.growing.impurity import SplitOptions
from trainer.growing.method import GROWTH_PARAMETERS, grow_and_prune
from trainer.growing.node_split import NodeSplit, SplitData, univariate_split
from trainer.methods.base import ANSWER_COSTS, COMMON, Method, Settings, Solution
from trainer.methods.capabilities import Candidate, Example, Group, Penalty, Role
from trainer.methods.cost import CostModel, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.worker_pool import WorkerPool


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Grow the tree with the best threshold at every node and prune it."""
    options = SplitOptions(measure=settings["impurity"], min_leaf=settings["min_leaf"])

    def make(data: SplitData, monitor: Monitor, crew: WorkerPool[Any]) -> Splitter:
        def split(rows: CountArray, node: int) -> NodeSplit | None:
            best_split = univariate_split(data, rows, options)
            # drop the bound, because an optimal threshold proves nothing about the tree
            return None if best_split is None else replace(best_split, bound=None)

        return split

    return grow_and_prune(problem, settings, monitor, make)


def _seconds(size: ProblemSize) -> float:
    return 4e-8 * size.n * math.log2(size.n + 2) * size.p * max(1, size.d)


METHOD = Method(
    id="cart",
    title="CART",
    summary="The classic greedy tree: at each step the one question that separates the classes best.",
    paper="Breiman, Friedman, Olshen & Stone (1984)",
    guarantee=Guarantee.HEURISTIC,
    splits=("threshold", "subset"),
    size_hint="Millions of rows, hundreds of columns, in seconds.",
    good_for="Greedy, the classic. Millions of rows.",
    claim="Heuristic: the tree is built step by step, and nothing is proved.",
    parameters=(*GROWTH_PARAMETERS, *ANSWER_COSTS, *COMMON),
    solve=solve,
    estimator="CartClassifier",
    cost=CostModel(seconds=_seconds, spread=0.4),
    group=Group.RECOMMENDED,
    roles=(Role.ONE_QUICK, Role.GROUPS_QUICK),
    candidates=(
        Candidate(parameters={"depth": 3, "pruning": Penalty.LARGE}),
        Candidate(parameters={"depth": 6, "pruning": Penalty.SMALL}),
        Candidate(parameters={"depth": 10, "pruning": "cross-validation"}),
    ),
    example=Example(options=("--depth", "3")),
)
