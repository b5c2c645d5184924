"""Declare `exact-numeric`: an optimal tree over all thresholds of numeric columns."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from trainer.certificate import Evidence, Guarantee
from trainer.constraints import active_constraints, column_pairs
from trainer.constraints.columns import COLUMNS
from trainer.constraints.pairs import PAIRS
from trainer.constraints.recall import RECALL
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.families.numeric.editing.bench import numeric_bench
from trainer.families.numeric.paths import PathRules
from trainer.families.numeric.proof import build_proof
from trainer.families.numeric.restricted import is_within, prove_questions, solve_questions
from trainer.families.numeric.search import NumericShape, solve_numeric
from trainer.methods.base import (
    ANSWER_COSTS,
    CLASS_WEIGHT,
    COLUMN_PRICE,
    COMMON,
    DEPTH,
    GOALS,
    LEAF_PENALTY,
    MIP_GAP,
    OPTIMAL_TREES,
    Method,
    Settings,
    Solution,
    exact_fraction,
    having,
)
from trainer.methods.capabilities import Candidate, Example, Group, Penalty, ProofKind, Role, WorkbenchSupport
from trainer.methods.cost import CostModel, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.methods.scope import numeric_space
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.version import VERSION


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Find the best tree and prove it; if stopped, return the incumbent and a valid bound."""
    monitor.report(phase="search")
    if settings["optimal_trees"]:
        return solve_questions(problem, settings, monitor)
    solution = _solve_thresholds(problem, settings, monitor)
    if is_within(problem, settings, solution.draft):
        return solution
    return solve_questions(problem, settings, monitor)


def _solve_thresholds(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Find the best tree without restrictions of whole trees and prove it.

    The bounds between thresholds would not hold with minimum recalls and a limit of columns.
    """
    has_limits = bool(settings["recall"]) or settings["max_columns"] is not None
    # the objective is at least that of a single leaf, so this tolerance guarantees the relative gap
    single = np.bincount(problem.y, problem.row_weights).max()
    tolerance = exact_fraction(settings["mip_gap"]) * max(Fraction(0), int(single) - problem.kappa)

    def report(cost: Fraction, bound: Fraction, shape: NumericShape) -> None:
        monitor.report(
            incumbent=float(1 - cost / problem.n), bound=float(1 - bound / problem.n), draft=_draft(problem, shape)
        )

    result = solve_numeric(
        problem.numeric.matrix(problem.table),
        problem.y,
        n_classes=problem.n_classes,
        weights=problem.weights,
        depth=settings["depth"],
        leaf_cost=problem.kappa,
        tolerance=tolerance,
        stop=monitor.stopped,
        flag=monitor.flag,
        report=None if has_limits else report,  # the tree may violate the limits
        rules=_path_rules(problem, settings),
    )
    bound = float(1 - result.bound / problem.n)
    monitor.report(bound=bound, nodes=result.nodes)
    if not has_limits:
        monitor.report(incumbent=float(1 - result.cost / problem.n))
    is_restricted = bool(active_constraints(settings))
    return Solution(
        draft=_draft(problem, result.shape),
        bound=bound,
        finished=monitor.reason is None,
        nodes=result.nodes,
        encoded_features=len(problem.numeric.features),
        solver="octweb",
        solver_version=VERSION,
        proof=lambda stop: (
            prove_questions(problem, settings, stop)
            if is_restricted
            else build_proof(result.prepared, settings["depth"], stop)
        ),
        evidence=({"kind": Evidence.INTERVAL_PRUNING, "cost": str(result.cost), "bound": str(result.bound)},),
    )


def _path_rules(problem: Problem, settings: Settings) -> PathRules | None:
    """Return the prices of columns and the forbidden pairs; None if there are none."""
    partners = column_pairs(problem, settings)
    if not problem.column_prices and not partners:
        return None
    columns = np.array([f.column for f in problem.numeric.features])
    return PathRules(columns=columns, prices=problem.column_prices, partners=partners)


def _draft(problem: Problem, shape: NumericShape) -> Draft:
    """Return the tree with splits in the units of the columns."""
    if shape is None:
        return DraftLeaf()
    feature = problem.numeric.features[shape[0]]
    low = _draft(problem, shape[2])
    high = _draft(problem, shape[3])
    if feature.test is Test.VALUE:
        split, exchanged = feature.cut(float(np.float64(shape[1])))
        return DraftBranch(split=split, left=high if exchanged else low, right=low if exchanged else high)
    return problem.numeric.branch(shape[0], low, high)


def _seconds(size: ProblemSize) -> float:
    return 1e-10 * size.n * (size.n * size.p) ** max(0, size.d - 1) * size.p**0.5


METHOD = Method(
    id="exact-numeric",
    title="Exact search over all thresholds",
    summary="The best tree of depth two or three over every threshold of numeric columns, proved, without binarisation.",
    paper="Briţa, van der Linden & Demirović (2025)",
    guarantee=Guarantee.TREE,
    space=numeric_space,
    splits=("threshold", "subset"),
    size_hint="Depth 2 with tens of thousands of rows, depth 3 with hundreds to a few thousand.",
    good_for="Depth 2 with tens of thousands of rows, depth 3 with fewer.",
    claim="Proves that no tree of this depth, whatever its thresholds, has a higher objective.",
    parameters=(
        having(DEPTH, default=2, maximum=4),
        LEAF_PENALTY,
        CLASS_WEIGHT,
        OPTIMAL_TREES,
        COLUMNS,
        RECALL,
        PAIRS,
        having(
            MIP_GAP,
            help="From depth 3 on, the search may stop at this relative gap; 0 asks for a full proof.",
        ),
        *ANSWER_COSTS,
        COLUMN_PRICE,
        *GOALS,
        *COMMON,
    ),
    solve=solve,
    estimator="ExactNumericClassifier",
    proof=ProofKind.OWN,
    cost=CostModel(seconds=_seconds, spread=0.6, unmodelled=("column_price", "optimal_trees", "max_columns", "recall", "forbidden_pairs")),
    precompile=({},),
    workbench=WorkbenchSupport(build=numeric_bench, overrides={"optimal_trees": 0}),
    group=Group.RECOMMENDED,
    roles=(Role.ALL_THRESHOLDS,),
    candidates=(Candidate(parameters={"depth": 2, "leaf_penalty": Penalty.LARGE}, needs_numbers=True),),
    example=Example(options=("--depth", "3", "--leaf-penalty", "0.01")),
)  # fmt: skip
