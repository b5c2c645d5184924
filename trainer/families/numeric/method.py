"""Declare `exact-numeric`: an optimal tree over all thresholds of numeric columns."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from trainer.certificate import Evidence, Guarantee
from trainer.constraints import column_pairs
from trainer.constraints.columns import COLUMNS
from trainer.constraints.fairness import FAIRNESS
from trainer.constraints.forbidden import FORBIDDEN, forbidden_columns
from trainer.constraints.leaves import LEAVES
from trainer.constraints.monotone import MONOTONE
from trainer.constraints.pairs import PAIRS
from trainer.constraints.recall import RECALL
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.dtypes import BoolArray
from trainer.families.numeric.editing.bench import numeric_bench
from trainer.families.numeric.limits import LIMITS, LimitedIncumbent, WholeTreeLimits, has_limits, is_restricted
from trainer.families.numeric.paths import PathRules
from trainer.families.numeric.proof import build_proof
from trainer.families.numeric.restricted import prove_questions, solve_questions, solve_within
from trainer.families.numeric.search import NumericProblem, NumericShape, solve_numeric
from trainer.methods.base import (
    ANSWER_COSTS,
    CLASS_WEIGHT,
    COLUMN_PRICE,
    COMMON,
    DEPTH,
    GOALS,
    LEAF_PENALTY,
    MIN_LEAF,
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
from trainer.solver_common.binary_problem import SearchLimits
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, simplify
from trainer.version import VERSION

Report = Callable[[Fraction, Fraction, NumericShape], None]


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Find the best tree and prove it; if stopped, return the incumbent and a valid bound."""
    monitor.report(phase="search")
    if settings["optimal_trees"]:
        return solve_questions(problem, settings, monitor)
    rules = _path_rules(problem, settings)
    if not has_limits(settings, but="min_leaf" if rules is None else ""):

        def report_best(cost: Fraction, bound: Fraction, shape: NumericShape) -> None:
            incumbent = float(1 - cost / problem.n)
            monitor.report(incumbent=incumbent, bound=float(1 - bound / problem.n), draft=_draft(problem, shape))

        return _solve_thresholds(problem, settings, monitor, rules, report_best)
    incumbent = LimitedIncumbent(WholeTreeLimits(problem, settings), monitor)
    monitor.report(bound=float(1 - problem.kappa / problem.n))  # every tree has a leaf
    incumbent.offer(DraftLeaf())

    def report(cost: Fraction, bound: Fraction, shape: NumericShape) -> None:
        monitor.report(bound=float(1 - bound / problem.n))
        if float(1 - cost / problem.n) > incumbent.objective:  # a tree near it costs about as much or more
            incumbent.offer(_draft(problem, shape))

    relaxed = _solve_thresholds(problem, settings, monitor, rules, report)
    if incumbent.limits.hold(problem.tree(simplify(problem.tree(relaxed.draft)))):
        return relaxed
    return solve_within(problem, settings, relaxed, incumbent)


def _solve_thresholds(
    problem: Problem, settings: Settings, monitor: Monitor, rules: PathRules | None, report: Report
) -> Solution:
    """Find the best tree and prove it, without the limits of whole trees, for which bounds between thresholds do not hold."""
    # the objective is at least that of a single leaf, so this tolerance guarantees the relative gap
    single = np.bincount(problem.y, problem.row_weights).max()
    tolerance = exact_fraction(settings["mip_gap"]) * max(Fraction(0), int(single) - problem.kappa)

    result = solve_numeric(
        NumericProblem(
            problem.numeric.matrix(problem.table),
            problem.y,
            n_classes=problem.n_classes,
            weights=problem.weights,
            depth=settings["depth"],
            leaf_cost=problem.kappa,
            rules=rules,
            allowed=_allowed_features(problem, settings),
            min_leaf=settings["min_leaf"] if rules is None else 1,
        ),
        SearchLimits(stop=monitor.stopped, flag=monitor.flag),
        tolerance=tolerance,
        report=report,
    )
    report(result.cost, result.bound, result.shape)
    bound = float(1 - result.bound / problem.n)
    monitor.report(bound=bound, nodes=result.nodes)
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
            if is_restricted(settings) or settings["column_price"]
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


def _allowed_features(problem: Problem, settings: Settings) -> BoolArray:
    """Return whether each feature may be tested, bool (F,)."""
    banned = forbidden_columns(settings, problem.names)
    names = problem.table.names
    return np.array([names[f.column] not in banned for f in problem.numeric.features], bool)


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
        LEAVES,
        having(MIN_LEAF, advanced=True, counts_rows=False),
        FORBIDDEN,
        CLASS_WEIGHT,
        OPTIMAL_TREES,
        COLUMNS,
        RECALL,
        *FAIRNESS,
        PAIRS,
        MONOTONE,
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
    cost=CostModel(
        seconds=_seconds,
        spread=0.6,
        unmodelled=("column_price", "optimal_trees", "forbidden", *LIMITS, "forbidden_pairs"),
    ),
    precompile=({},),
    workbench=WorkbenchSupport(build=numeric_bench, overrides={"optimal_trees": 0}),
    group=Group.RECOMMENDED,
    roles=(Role.ALL_THRESHOLDS,),
    candidates=(Candidate(parameters={"depth": 2, "leaf_penalty": Penalty.LARGE}, needs_numbers=True),),
    example=Example(options=("--depth", "3", "--leaf-penalty", "0.01")),
)
