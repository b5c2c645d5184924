"""`exact`: the optimal tree over the binary features of the encoding, by dynamic programming with branch and bound."""

from __future__ import annotations

from fractions import Fraction

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.methods.base import (
    BINARISE,
    BINS,
    COMMON,
    DEPTH,
    LEAF_PENALTY,
    MIN_LEAF,
    Method,
    Settings,
    Solution,
    having,
)
from trainer.monitor import Monitor
from trainer.search.exact import ExactOptions, ExactResult, Shape, solve_binary
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.version import VERSION

SCOPE = "all trees of the given depth over the binary features of the encoding"


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """The best tree and its proof; a stopped search returns its best tree and a valid bound."""
    monitor.report(phase="search")
    encoding, n = problem.binary, problem.n

    def objective(cost: Fraction) -> float:
        return float(1 - cost / n)

    def report(cost: Fraction, bound: Fraction, nodes: int) -> None:
        monitor.report(incumbent=objective(cost), bound=objective(bound), nodes=nodes)

    memory = settings["memory_limit"]
    found = solve_binary(
        encoding.bits(problem.table),
        problem.y,
        n_classes=problem.n_classes,
        weights=problem.weights,
        depth=settings["depth"],
        leaf_cost=problem.leaf_penalty * n,
        min_leaf=settings["min_leaf"],
        threads=settings["threads"],
        options=ExactOptions(memory=memory * 500_000 if memory else 1 << 30),
        stop=monitor.stopped,
        flag=monitor.flag,
        report=report,
    )

    def draft(shape: Shape) -> Draft:
        if shape is None:
            return DraftLeaf()
        return encoding.branch(shape[0], draft(shape[1]), draft(shape[2]))

    monitor.report(
        incumbent=objective(found.cost), bound=objective(found.bound), nodes=found.nodes, leaves=found.leaves
    )
    return Solution(
        draft=draft(found.shape),
        bound=objective(found.bound),
        finished=found.optimal,
        scope=SCOPE,
        nodes=found.nodes,
        encoded_features=len(encoding.features),
        solver="octweb",
        solver_version=VERSION,
        evidence=(_evidence(found),),
    )


def _evidence(found: ExactResult) -> dict[str, object]:
    """What the search did, for the model file; costs as fractions, in rows."""
    return {
        "kind": "dynamic-programming",
        "cost": str(found.cost),
        "bound": str(found.bound),
        "depth_two_subtrees": found.depth_two,
        "cache_entries": found.cache_entries,
        "cache_evictions": found.evictions,
    }


METHOD = Method(
    id="exact",
    title="Exact search",
    summary="The best tree of a small depth, proved: dynamic programming with branch and bound over yes/no questions.",
    paper="Demirović et al. (2022); van der Linden, de Weerdt & Demirović (2023); Aglin, Nijssen & Schaus (2020)",
    guarantee=Guarantee.TREE,
    splits=("threshold", "subset"),
    binary=True,
    size_hint="Depth 3 with hundreds of thousands of rows or hundreds of questions, depth 4 with hundreds of questions.",
    claim="Proves that no tree of this depth over the same questions has a higher objective.",
    parameters=(DEPTH, LEAF_PENALTY, having(MIN_LEAF, advanced=True), BINARISE, BINS, *COMMON),
    solve=solve,
)
