"""Declare the method OC1: oblique trees by hill climbing (Murthy, Kasif & Salzberg, 1994)."""

from __future__ import annotations

from typing import Any

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.dtypes import CountArray
from trainer.families.greedy.oc1_search import CYCLES, OC1Options, oc1_split
from trainer.growing.growth import Splitter
from trainer.growing.method import GROWTH_PARAMETERS, grow_and_prune
from trainer.growing.node_split import NodeSplit, SplitData
from trainer.methods.base import ANSWER_COSTS, COMMON, Method, Parameter, Settings, Solution
from trainer.methods.capabilities import Asks, Candidate, Example, Penalty, Role
from trainer.methods.cost import CostModel, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.worker_pool import WorkerPool


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Grow the tree with OC1's hyperplanes and prune it."""
    options = OC1Options(
        measure=settings["impurity"],
        min_leaf=settings["min_leaf"],
        restarts=settings["restarts"],
        jumps=settings["jumps"],
        cycle=settings["cycle"],
    )

    def make(data: SplitData, monitor: Monitor, crew: WorkerPool[Any]) -> Splitter:
        def split(rows: CountArray, node: int) -> NodeSplit | None:
            return oc1_split(data, rows, options, seed=settings["seed"] + node, flag=monitor.flag)

        return split

    # thresholds learn a side for empty cells; hyperplanes fill them and add indicators of empty cells
    return grow_and_prune(problem, settings, monitor, make, sums=problem.filled if problem.has_empty else None)


def _seconds(size: ProblemSize) -> float:
    return 2e-5 * size.n * size.p * min(2 ** max(1, size.d), 32)


METHOD = Method(
    id="oc1",
    title="OC1",
    summary="A greedy tree whose questions weigh many columns at once, found by random search.",
    paper="Murthy, Kasif & Salzberg (1994)",
    guarantee=Guarantee.HEURISTIC,
    splits=("threshold", "subset", "linear"),
    size_hint="Thousands of rows, tens of columns.",
    good_for="Random search over weighted sums.",
    claim="Heuristic: hyperplanes are found by random search, and nothing is proved.",
    parameters=(
        *GROWTH_PARAMETERS,
        Parameter(
            name="restarts",
            type="integer",
            default=20,
            minimum=0,
            maximum=1000,
            label="Restarts",
            help="Number of random hyperplanes to start from, besides the best threshold.",
            advanced=True,
        ),
        Parameter(
            name="jumps",
            type="integer",
            default=5,
            minimum=0,
            maximum=1000,
            label="Jumps",
            help="Number of random directions to try when no single coefficient improves the split.",
            advanced=True,
        ),
        Parameter(
            name="cycle",
            type="choice",
            default="sequential",
            choices=tuple(CYCLES),
            label="Cycle",
            help="Which coefficient is changed next: each in order, the one that helps most, or fifty at random.",
            advanced=True,
        ),
        *ANSWER_COSTS,
        *COMMON,
    ),
    solve=solve,
    estimator="OC1Classifier",
    cost=CostModel(seconds=_seconds, spread=0.4),
    precompile=({},),
    asks=Asks.MANY,
    roles=(Role.MANY_QUICK,),
    candidates=(Candidate(parameters={"depth": 2, "pruning": Penalty.LARGE}),),
    example=Example(options=("--depth", "2")),
)
