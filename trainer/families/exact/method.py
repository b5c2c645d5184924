"""Declare the method `exact`: an optimal tree over binary features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.certificate import Evidence, Guarantee
from trainer.constraints import CONSTRAINTS, Constraints
from trainer.constraints.coupling import RULES, active_rules, require_thresholds, rules_hold
from trainer.constraints.forbidden import FORBIDDEN, forbidden_columns
from trainer.constraints.leaves import LEAVES
from trainer.data.problem import Problem, SettingNames
from trainer.dtypes import BitArray
from trainer.errors import ParameterError, SolverError, list_names
from trainer.families.exact.instance import build_instance
from trainer.families.exact.proofs.any_depth import prove_any_depth
from trainer.families.exact.proofs.editing import constrained_bench, restricted_proof
from trainer.families.exact.proofs.frontier import frontier_proof
from trainer.families.exact.proofs.limits import limited_proof
from trainer.families.exact.proofs.priced import priced_cases_proof, priced_proof
from trainer.families.exact.proofs.rule_proof import proof_within_rules
from trainer.families.exact.rashomon.optima import optimal_trees
from trainer.families.exact.rules.rule_fronts import ruled_fronts
from trainer.families.exact.rules.ruled import RuledSearch
from trainer.families.exact.search.any_depth import solve_any_depth
from trainer.families.exact.search.column_cases import CHECKED_DEPTH, Case, CasesProof
from trainer.families.exact.search.constrained import solve_constrained
from trainer.families.exact.search.constraints import KEEP, LIMITS, exact_constraints
from trainer.families.exact.search.frontier import FrontierPoint, cheapest_point, count_leaves, solve_frontier
from trainer.families.exact.search.priced import ColumnPrices, solve_priced
from trainer.families.exact.search.proof import build_proof
from trainer.families.exact.search.search import ExactSearch
from trainer.families.exact.search.solve import ExactOptions, ExactResult, evaluate, prove_binary, solve_binary
from trainer.families.exact.workbench import check_depth, exact_bench
from trainer.goal import GOAL_NAMES, count_goal
from trainer.methods.base import (
    ANSWER_COSTS,
    AUTO,
    AUTO_BINS,
    AUTO_LEAF_PENALTY,
    BINARISE,
    CHECKER_SEARCHES,
    CLASS_WEIGHT,
    COLUMN_PRICE,
    COMMON,
    DEPTH,
    EXTRA_THRESHOLDS,
    GOALS,
    MIN_LEAF,
    OPTIMAL_TREES,
    Method,
    NotProved,
    ProofSteps,
    Settings,
    SizedDraft,
    SizeSearch,
    Solution,
    having,
    unsettled,
)
from trainer.methods.capabilities import Candidate, Example, Group, Penalty, ProofKind, Role, WorkbenchSupport
from trainer.methods.cost import CostModel, ProblemSize
from trainer.methods.monitor import BoundMonitor, Monitor
from trainer.methods.scope import binary_space
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.solver_common.warm_start import binary_tree
from trainer.tree.nodes import Draft, DraftLeaf
from trainer.tree.shapes import LabelledShape, Shape
from trainer.version import VERSION

# parameters that need a depth, with the values that disable them
NEEDS_DEPTH = {"optimal_trees": 0, "column_price": "", **dict.fromkeys(LIMITS), **RULES}
ANY_DEPTH = "The search proved more than the claim: no deeper tree over these questions has a higher objective, either."


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Find the best tree and prove it; if stopped, return the incumbent and a valid bound."""
    monitor.report(phase="search")
    if active_rules(settings):
        require_thresholds(problem, settings, problem.binary.features)
        relaxed = _solve_without_rules(problem, settings, BoundMonitor(monitor))
        if rules_hold(problem, settings, problem.tree(relaxed.draft)):
            return relaxed
        return _solve_ruled(problem, settings, monitor, relaxed)
    return _solve_without_rules(problem, settings, monitor)


def _solve_without_rules(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Find the best tree, whatever `monotone` and `fairness` are."""
    constraints = exact_constraints(problem, settings)
    if constraints is None and settings["max_leaves"] and active_rules(settings):
        # the frontier of leaves would be about trees without the rules
        constraints = Constraints(max_leaves=settings["max_leaves"])
    evidence: list[dict[str, object]] = []
    points: list[FrontierPoint] = []
    if problem.column_prices and constraints is None:
        result = _solve_priced(problem, settings, monitor)
    elif constraints is not None:
        result = _solve_constrained(problem, settings, monitor, constraints)
    elif settings["max_leaves"]:
        result, points = _solve_leaf_budget(problem, settings, monitor)
        evidence.append(_frontier_evidence(problem, points))
    else:
        result = _solve_free(problem, settings, monitor)
        if settings["optimal_trees"] and result.optimal:
            evidence.append(_optimal_trees_evidence(problem, settings, monitor))
    bound = _objective(result.bound, problem)
    monitor.report(incumbent=_objective(result.cost, problem), bound=bound, nodes=result.nodes, leaves=result.leaves)
    return Solution(
        draft=_draft(problem, result.shape),
        bound=bound,
        finished=result.optimal,
        nodes=result.nodes,
        encoded_features=len(problem.binary.features),
        solver="octweb",
        solver_version=VERSION,
        warm_start_objective=None if result.start is None else _objective(result.start, problem),
        evidence=(_evidence(result), *evidence),
        note=ANY_DEPTH if result.any_depth and settings["depth"] is not None else "",
        proof=_proof(problem, settings, constraints, result, points),
    )


def _solve_ruled(problem: Problem, settings: Settings, monitor: Monitor, relaxed: Solution) -> Solution:
    """Find the best tree within the rules, if the best tree without them breaks one; its bound holds within them, too."""
    memory = settings["memory_limit"]
    fronts = ruled_fronts(problem, settings, memory=memory * 500_000 if memory else 1 << 30)
    plain = problem.binary.bits(problem.table) > 0
    turned = [bool(plain[0, q] != fronts.space.questions.answers(q)[0]) for q in range(plain.shape[1])]

    def draft(shape: LabelledShape) -> Draft:
        if not isinstance(shape, tuple):
            return DraftLeaf(label=shape)
        question, no, yes = shape
        sides = (yes, no) if turned[question] else (no, yes)
        return problem.binary.branch(question, draft(sides[0]), draft(sides[1]))

    def report(shape: LabelledShape, cost: Fraction) -> None:
        monitor.report(incumbent=_objective(cost, problem), nodes=fronts.places, draft=draft(shape))

    search = RuledSearch(fronts, settings["max_columns"], monitor.stopped, report)
    best = search.run(Fraction(relaxed.evidence[0]["bound"]))
    bound = _objective(best.bound, problem)
    monitor.report(incumbent=_objective(best.cost, problem), bound=bound, nodes=fronts.places)
    return replace(
        relaxed,
        draft=draft(best.shape),
        bound=bound,
        finished=best.is_optimal,
        nodes=(relaxed.nodes or 0) + fronts.places,
        evidence=({"kind": Evidence.DYNAMIC_PROGRAMMING, "cost": str(best.cost), "bound": str(best.bound)},),
        note=best.note,
        proof=lambda stop: proof_within_rules(problem, settings, best.bound, stop),
    )


def best_by_leaves(problem: Problem, settings: Settings, monitor: Monitor) -> list[SizedDraft]:
    """Return the tree with the fewest errors for each number of leaves that the settings allow."""
    points = _frontier(problem, settings, monitor)
    return [SizedDraft(p.leaves, p.errors, _draft(problem, p.shape)) for p in points]


def _frontier(problem: Problem, settings: Settings, monitor: Monitor) -> list[FrontierPoint]:
    return solve_frontier(
        binary_problem(problem, settings),
        max_leaves=settings["max_leaves"],
        limits=_limits(settings, monitor),
        options=_options(settings),
    )


def _proof(
    problem: Problem,
    settings: Settings,
    constraints: Constraints | None,
    result: ExactResult,
    points: list[FrontierPoint],
) -> Callable[[Callable[[], bool]], ProofSteps | None]:
    """Return the function that builds the proof. For a large depth it searches again, since that search stores no steps."""
    if problem.column_prices:
        return _priced_proof(problem, settings, result)
    if result.search is not None:
        return result.proof
    if constraints is not None or settings["max_leaves"]:
        return _constrained_proof(problem, settings, constraints, result, points)
    binary = binary_problem(problem, settings)
    prove = prove_binary if settings["depth"] is not None else prove_any_depth
    return lambda stop: prove(binary, result.bound, stop=stop)


def _priced_proof(
    problem: Problem, settings: Settings, result: ExactResult
) -> Callable[[Callable[[], bool]], ProofSteps | None]:
    """Return the function that builds the proof with prices of columns."""

    def build(stop: Callable[[], bool]) -> ProofSteps | None:
        binary = binary_problem(problem, settings)
        prices = _prices(problem)
        options = _options(settings)
        leaves = settings["max_leaves"]
        if settings["recall"] or settings["forbidden_pairs"]:
            raise NotProved(
                f"Proof steps with prices of columns do not support minimum recalls and forbidden pairs. {CHECKER_SEARCHES}"
            )
        if result.cases is not None:
            return priced_cases_proof(
                binary, prices, result.cases, result.bound, options=options, max_leaves=leaves, stop=stop
            )
        return priced_proof(binary, prices, result.bound, options=options, max_leaves=leaves, stop=stop)

    return build


def _constrained_proof(
    problem: Problem,
    settings: Settings,
    constraints: Constraints | None,
    result: ExactResult,
    points: list[FrontierPoint],
) -> Callable[[Callable[[], bool]], ProofSteps | None]:
    """Return the function that builds the proof of a frontier, or of the best tree under constraints."""
    binary = binary_problem(problem, settings)

    def build(stop: Callable[[], bool]) -> ProofSteps | None:
        errors = [p.bound for p in points]
        most = settings["max_leaves"]
        proof = frontier_proof(binary, errors, most=most, stop=stop) if points else None
        proof = proof or _cases_proof(problem, settings, constraints, result, stop)
        if proof is not None or stop():
            return proof
        return limited_proof(
            binary,
            constraints or Constraints(max_leaves=settings["max_leaves"]),
            result.bound,
            stop=stop,
            vectors=lambda: restricted_proof(
                constrained_bench(problem, settings), (), result.bound, settings["depth"], stop
            ),
        )

    return build


def _cases_proof(
    problem: Problem, settings: Settings, constraints: Constraints | None, result: ExactResult, stop: Callable[[], bool]
) -> ProofSteps | None:
    """Return the proof of a column limit from the cases of the search; None if they are not enough."""
    # when the checker counts a case by itself, it ignores required recalls
    if result.cases is None or constraints is None or constraints.recalls:
        return None
    # proof steps below the root do not account for forbidden pairs
    if constraints.conflict is not None and settings["depth"] > CHECKED_DEPTH:
        return None
    binary = binary_problem(problem, settings)
    columns = np.array([f.column for f in problem.binary.features])

    def search(usable: frozenset[int]) -> ExactSearch:
        among = binary.allowed_features * np.isin(columns, list(usable)).astype(np.uint8)
        again = solve_binary(replace(binary, allowed=among), limits=SearchLimits(stop=stop), options=_options(settings))
        assert again.search is not None
        return again.search

    def close(case: Case, goal: int) -> list[dict[str, Any]] | None:
        proof = build_proof(case.search or search(case.usable), goal, stop)
        return None if proof is None else proof.steps

    return CasesProof(
        root=result.cases,
        bound=result.bound,
        depth=settings["depth"],
        leaves=constraints.max_leaves,
        Q=problem.kappa.denominator,
        scale=build_instance(binary).scale,
        close=close,
        stop=stop,
    ).build_steps()


def binary_problem(problem: Problem, settings: Settings) -> BinaryProblem:
    """Return the rows over binary features, with the limits of the settings on single splits."""
    bits = problem.binary.bits(problem.table)
    depth = settings["depth"]
    return BinaryProblem(
        bits,
        problem.y,
        n_classes=problem.n_classes,
        # no path tests a feature twice, so no tree is deeper than the number of features
        depth=bits.shape[1] if depth is None else depth,
        leaf_cost=problem.kappa,
        weights=problem.weights,
        min_leaf=settings["min_leaf"],
        allowed=_allowed_features(problem, settings),
    )


def _limits(settings: Settings, monitor: Monitor) -> SearchLimits:
    return SearchLimits(threads=settings["threads"], stop=monitor.stopped, flag=monitor.flag)


def _draft(problem: Problem, shape: LabelledShape) -> Draft:
    """Return the tree with splits in the units of the columns."""
    if not isinstance(shape, tuple):
        return DraftLeaf(label=shape)
    return problem.binary.branch(shape[0], _draft(problem, shape[1]), _draft(problem, shape[2]))


def _objective(cost: Fraction, problem: Problem) -> float:
    return float(1 - cost / problem.n)


def _options(settings: Settings) -> ExactOptions:
    memory = settings["memory_limit"]
    return ExactOptions(memory=memory * 500_000 if memory else 1 << 30)


def _allowed_features(problem: Problem, settings: Settings) -> BitArray:
    """Return 1 for the features of columns that may be used."""
    banned = forbidden_columns(settings, problem.names)
    names = problem.table.names
    return np.array([names[f.column] not in banned for f in problem.binary.features], np.uint8)


def _solve_free(problem: Problem, settings: Settings, monitor: Monitor) -> ExactResult:
    """Solve without constraints."""

    def report(cost: Fraction, bound: Fraction, nodes: int) -> None:
        monitor.report(incumbent=_objective(cost, problem), bound=_objective(bound, problem), nodes=nodes)

    def report_tree(shape: Shape) -> None:
        draft = _draft(problem, shape)
        monitor.report(incumbent=problem.objective(problem.tree(draft)), draft=draft)

    binary = binary_problem(problem, settings)
    start = None
    if problem.warm_start is not None:
        start = binary_tree(
            problem.warm_start, problem, depth=binary.depth, min_leaf=binary.min_leaf, allowed=binary.allowed
        )
    return solve_any_depth(
        binary,
        limits=_limits(settings, monitor),
        options=_options(settings),
        start=start,
        report=report,
        improved=report_tree,
    )


def _solve_constrained(problem: Problem, settings: Settings, monitor: Monitor, constraints: Constraints) -> ExactResult:
    """Solve under side constraints."""

    def report(cost: Fraction, bound: Fraction, nodes: int) -> None:
        monitor.report(incumbent=_objective(cost, problem), bound=_objective(bound, problem), nodes=nodes)

    binary = binary_problem(problem, settings)
    result = solve_constrained(
        binary,
        constraints,
        limits=_limits(settings, monitor),
        options=_options(settings),
        report=report,
        prices=_prices(problem) if problem.column_prices else None,
    )
    if not result.found:
        raise SolverError("The search was stopped before it found a tree within the constraints. Give it more time.")
    leaves = count_leaves(result.shape)
    errors = int(result.cost - problem.kappa * leaves)
    if problem.column_prices:  # the cost includes the prices of columns, so count the errors on the tree
        errors, _ = evaluate(build_instance(binary), result.shape)
    return ExactResult(
        shape=result.shape,
        errors=errors,
        leaves=leaves,
        cost=result.cost,
        bound=result.bound,
        optimal=result.optimal,
        nodes=result.nodes,
        depth_two=0,
        cache_entries=0,
        evictions=0,
        cases=result.cases,
    )


def _solve_priced(problem: Problem, settings: Settings, monitor: Monitor) -> ExactResult:
    """Solve with prices of columns."""

    def report(cost: Fraction, bound: Fraction, nodes: int) -> None:
        monitor.report(incumbent=_objective(cost, problem), bound=_objective(bound, problem), nodes=nodes)

    def report_tree(shape: Shape) -> None:
        monitor.report(draft=_draft(problem, shape))

    return solve_priced(
        binary_problem(problem, settings),
        _prices(problem),
        limits=_limits(settings, monitor),
        options=_options(settings),
        report=report,
        improved=report_tree,
        max_leaves=settings["max_leaves"],
    )


def _prices(problem: Problem) -> ColumnPrices:
    return ColumnPrices(np.array([f.column for f in problem.binary.features]), problem.column_prices)


def _check_depth(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for settings that a search without a limit of depth does not support."""
    if settings["depth"] is not None:
        return
    penalty = settings["leaf_penalty"]
    if penalty == AUTO or not penalty:
        words = (
            "it must be a number above 0 without a limit of depth. If a leaf costs nothing, a tree may ask until it has "
            "separated all rows. Say what a leaf must gain, for example 0.01, or set a depth."
        )
        raise ParameterError({"leaf_penalty": words})
    limits = [name for name, off in NEEDS_DEPTH.items() if settings[name] not in (off, "", None)]
    if goal := count_goal(settings):
        limits.append(f"the goal {GOAL_NAMES[goal]}")
    if limits:
        raise ParameterError({"depth": f"it needs a number of questions with {list_names(limits)}, not 'none'."})


def _optimal_trees_evidence(problem: Problem, settings: Settings, monitor: Monitor) -> dict[str, object]:
    """Return the number of optimal trees, as a text since it may be large, and the first of them."""
    monitor.report(phase="all optimal trees")
    optima = optimal_trees(
        binary_problem(problem, settings),
        limit=settings["optimal_trees"],
        limits=_limits(settings, monitor),
        options=_options(settings),
    )
    if optima is None:
        return {"kind": Evidence.OPTIMAL_TREES, "count": None, "listed": []}

    trees = [problem.finish(problem.tree(_draft(problem, shape))).to_json() for shape in optima.trees]
    return {"kind": Evidence.OPTIMAL_TREES, "count": str(optima.count), "listed": trees}


def _frontier_evidence(problem: Problem, points: list[FrontierPoint]) -> dict[str, object]:
    """Return the Pareto points of correct rows against leaves, and the leaf counts whose optimum is still open."""
    n = problem.n
    better = [p for k, p in enumerate(points) if k == 0 or p.errors < points[k - 1].errors]
    open_sizes = unsettled([n - p.errors for p in points], [n - p.bound for p in points], {p.leaves for p in better})
    lines = [_point(problem, p) for p in better]
    return {"kind": Evidence.LEAF_FRONTIER, "n": n, "most": len(points), "points": lines, "unsettled": open_sizes}


def _point(problem: Problem, p: FrontierPoint) -> dict[str, object]:
    """Return correct rows, their upper bound and the tree of a frontier point."""
    tree = problem.finish(problem.tree(_draft(problem, p.shape))).to_json()
    correct = problem.n - p.errors
    most = problem.n - p.bound
    return {"leaves": p.leaves, "correct": correct, "bound": most, "proved": correct == most, "tree": tree}


def _solve_leaf_budget(
    problem: Problem, settings: Settings, monitor: Monitor
) -> tuple[ExactResult, list[FrontierPoint]]:
    """Return the best tree within the leaf budget, and the frontier up to it."""
    points = _frontier(problem, settings, monitor)
    best, cost, bound = cheapest_point(points, problem.kappa)
    result = ExactResult(
        shape=best.shape,
        errors=best.errors,
        leaves=best.leaves,
        cost=cost,
        bound=bound,
        optimal=bound == cost,
        nodes=0,
        depth_two=0,
        cache_entries=0,
        evictions=0,
    )
    return result, points


def _evidence(result: ExactResult) -> dict[str, object]:
    """Return the statistics of the search for the model file; costs as fractions, in rows."""
    return {
        "kind": Evidence.DYNAMIC_PROGRAMMING,
        "cost": str(result.cost),
        "bound": str(result.bound),
        "depth_two_subtrees": result.depth_two,
        "cache_entries": result.cache_entries,
        "cache_evictions": result.evictions,
    }


def _seconds(size: ProblemSize) -> float:
    """Return the seconds of a fit.

    The last three levels cost about as much as the pair counts. Each level above repeats a part of them.
    """
    above = (0.22 * size.F) ** max(0, size.d - 3)
    return 1.8e-10 * (size.n + 350 * size.K) * size.F * size.F * above


def _pair_bytes(size: ProblemSize) -> float:
    return 8.0 * size.K * size.F**2


METHOD = Method(
    id="exact",
    title="Exact search",
    summary="The best tree of a small depth, proved: dynamic programming with branch and bound over yes/no questions.",
    paper="Demirović et al. (2022); van der Linden, de Weerdt & Demirović (2023); Aglin, Nijssen & Schaus (2020)",
    guarantee=Guarantee.TREE,
    splits=("threshold", "subset"),
    binary=True,
    space=binary_space,
    warm_start=True,
    size_hint="Depth 3 with hundreds of thousands of rows or hundreds of questions, depth 4 with hundreds of questions.",
    good_for="Depth 3 with hundreds of questions, depth 4 with fewer.",
    claim="Proves that no tree of this depth, or of any depth without a limit, over the same questions has a higher objective.",
    parameters=(
        having(
            DEPTH, unlimited=True, check=_check_depth,
            help="The largest number of questions between the root and a leaf. 'none' sets no limit; leaf_penalty must "
            "then be a number above 0.",
        ),
        AUTO_LEAF_PENALTY,
        having(
            LEAVES, maximum=1 << 20, label="Most leaves", unit="leaves", advanced=False,
            help="The tree may have at most this many leaves; empty means as many as the depth allows.",
        ),
        having(MIN_LEAF, advanced=True, counts_rows=False),
        FORBIDDEN,
        CLASS_WEIGHT,
        OPTIMAL_TREES,
        *(p for p in CONSTRAINTS if p is not LEAVES),
        BINARISE,
        AUTO_BINS,
        EXTRA_THRESHOLDS,
        *ANSWER_COSTS,
        COLUMN_PRICE,
        *GOALS,
        *COMMON,
    ),
    solve=solve,
    estimator="ExactTreeClassifier",
    proof=ProofKind.OWN,
    cost=CostModel(
        seconds=_seconds, spread=0.5, search_bytes=_pair_bytes, unmodelled=("optimal_trees", "forbidden", "column_price", *LIMITS, *RULES)
    ),
    # a single one of these searches chooses its size, which takes many trainings
    precompile=(
        {"depth": 4},
        {"depth": 5, "leaf_penalty": 0.01},
        {"max_leaves": 5, "leaf_penalty": 0.01},
        {"recall": "a: 1", "leaf_penalty": 0.01},
        {"optimal_trees": 2, "leaf_penalty": 0.01},
    ),
    workbench=WorkbenchSupport(build=exact_bench, check=check_depth, overrides={"optimal_trees": 0}, good_trees=True),
    leaf_frontier=True,
    sizes=SizeSearch(best=best_by_leaves, without=(*KEEP, *RULES, "column_price")),
    chooses_bins=True,
    group=Group.RECOMMENDED,
    roles=(Role.ONE_PROVED,),
    candidates=tuple(
        Candidate(parameters={"depth": depth, "leaf_penalty": penalty})
        for depth, penalty in (
            (1, Penalty.LARGE), (2, Penalty.LARGE), (3, Penalty.LARGE), (3, Penalty.SMALL), (4, Penalty.SMALL),
            (5, Penalty.LARGE),  # 32 leaves are hard to read, so this depth takes only the higher penalty
        )
    ),
    example=Example(options=("--depth", "3", "--leaf-penalty", "0.01")),
)  # fmt: skip
