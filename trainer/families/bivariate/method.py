"""Declare the method of bivariate trees (Bollwein & Westphal).

Each split is proved optimal on at most two columns; the tree as a whole is greedy. Each branch carries its impurity and its proved
bound.
"""

from __future__ import annotations

import math
from typing import Any

from trainer.certificate import Guarantee
from trainer.data.encoding import encode_filled
from trainer.data.problem import Problem
from trainer.dtypes import CountArray
from trainer.families.bivariate.pair import BOUNDS, SearchOptions
from trainer.families.bivariate.search import best_split
from trainer.growing.growth import Splitter
from trainer.growing.method import GROWTH_PARAMETERS, grow_and_prune
from trainer.growing.node_split import NodeSplit, SplitData
from trainer.growing.split_units import warm_start_splits
from trainer.methods.base import ANSWER_COSTS, COMMON, Method, Parameter, Settings, Solution
from trainer.methods.capabilities import Asks, Candidate, Example, Group, Penalty, Role
from trainer.methods.cost import CostModel, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.worker_pool import WorkerPool

ROUNDED = (
    "some columns with more digits than can be compared exactly: lines that pass the rows by less than 1e-14 of a column's range "
    "are not counted"
)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Grow the tree, each split under the run's limits, and prune it."""
    options = SearchOptions(
        measure=settings["impurity"],
        bound=settings["bound"],
        strategy=int(settings["branching"]),
        best_first=settings["order"] == "best-first",
        min_leaf=settings["min_leaf"],
        gap=settings["split_gap"],
    )
    limit = settings["split_time_limit"]

    sums = encode_filled(problem.table, indicators=False) if problem.has_empty else problem.numeric

    def make(data: SplitData, monitor: Monitor, crew: WorkerPool[Any]) -> Splitter:
        known_by_rows = warm_start_splits(problem, data, options, sums)

        def split(rows: CountArray, node: int) -> NodeSplit | None:
            end = math.inf if limit is None else monitor.elapsed() + limit

            def stopped() -> bool:
                return monitor.stopped() or monitor.elapsed() > end

            return best_split(
                data,
                rows,
                options,
                crew=crew,
                stopped=stopped,
                # do not mix the node's number into the seed, because numbers depend on the timing of other nodes
                seed=settings["seed"],
                known=known_by_rows.get(rows.tobytes()),
            )

        return split

    return grow_and_prune(problem, settings, monitor, make, rounded=ROUNDED, threads=settings["threads"], sums=sums)


def _seconds(size: ProblemSize) -> float:
    return 1.5e-7 * size.n * size.p**2 * max(1, size.d) + 2e-6 * size.n * size.p


def _pair_bytes(size: ProblemSize) -> float:
    return 60.0 * size.p**2


METHOD = Method(
    id="bivariate",
    title="Bivariate tree",
    summary="A greedy tree whose questions compare two columns, each proved to be the best such question.",
    paper="Bollwein & Westphal",
    guarantee=Guarantee.SPLITS,
    warm_start=True,
    splits=("threshold", "subset", "linear"),
    size_hint="Tens of thousands of rows, tens of columns; the time grows with the square of the columns.",
    good_for="Each line is the best for its rows. Tens of columns.",
    claim="Every split is proved optimal on at most two columns; the tree as a whole is built step by step.",
    parameters=(
        *GROWTH_PARAMETERS,
        Parameter(
            name="split_gap",
            type="number",
            default=0.0,
            minimum=0,
            maximum=0.99,
            label="Gap of a split",
            help="A split may be worse than the best one by this share of its impurity; the proved share is reported.",
            advanced=True,
        ),
        Parameter(
            name="split_time_limit",
            type="number",
            default=None,
            minimum=0,
            maximum=604_800,
            label="Time for a split",
            help="After this time a node takes the best split found, with its bound; empty means that only the "
            "run's limit counts.",
            unit="s",
            advanced=True,
        ),
        Parameter(
            name="bound",
            type="choice",
            default="assignment",
            choices=tuple(BOUNDS),
            label="Lower bound",
            help="'theorem4' and 'paper' (Theorems 5 and 6) are the bounds of the paper; 'assignment' is at least as strong.",
            advanced=True,
        ),
        Parameter(
            name="branching",
            type="choice",
            default="2",
            choices=("1", "2"),
            label="Branching strategy",
            help="Where a box is divided: in the middle (1), or at the mean of the lines of its points (2).",
            advanced=True,
        ),
        Parameter(
            name="order",
            type="choice",
            default="depth-first",
            choices=("depth-first", "best-first"),
            label="Order",
            help="Which box is searched next: the newest, or the one with the lowest bound.",
            advanced=True,
        ),
        *ANSWER_COSTS,
        *COMMON,
    ),
    solve=solve,
    estimator="BivariateTreeClassifier",
    cost=CostModel(seconds=_seconds, spread=0.5, search_bytes=_pair_bytes),
    precompile=({},),
    group=Group.RECOMMENDED,
    asks=Asks.TWO,
    roles=(Role.TWO_PROVED, Role.TWO_QUICK),
    candidates=tuple(Candidate(parameters={"depth": depth, "pruning": Penalty.LARGE}) for depth in (1, 2)),
    example=Example(sample="balance-scale", options=("--depth", "3")),
)
