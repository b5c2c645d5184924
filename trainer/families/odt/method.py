"""Declare the method ODT: optimal trees with subset branching (Günlük et al.).

Every decision node tests one column: a subset of its categories, or a threshold between its bins. Two solvers exist: the exact search
of `trainer.families.odt.search`, and the paper's mixed-integer program under a solver (`trainer.families.odt.mip`).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.certificate import Evidence, Guarantee
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.families.odt.as_questions import MAX_QUESTIONS, count_questions, encode_questions, topology_proof
from trainer.families.odt.choice import AUTO, choose_topology, select_columns
from trainer.families.odt.editing.bench import check_wishes, subset_bench
from trainer.families.odt.goals import GOALS, RateGoalSearch, apply_class_weight, make_goal, orient_classes
from trainer.families.odt.grouping import limit_subsets, make_groups, relabel, scope, single_tests
from trainer.families.odt.groups import Groups
from trainer.families.odt.levels import LevelLimitReached
from trainer.families.odt.mip import MIP, solve_mip
from trainer.families.odt.search import SubsetSearch
from trainer.families.odt.topology import Shape, complete, parse
from trainer.goal import Goal
from trainer.methods.base import (
    ANSWER_COSTS,
    COMMON,
    DEPTH,
    MIP_GAP,
    SOLVER,
    Method,
    Parameter,
    Settings,
    Solution,
    having,
)
from trainer.methods.capabilities import Asks, Candidate, Example, Group, ProofKind, Role, WorkbenchSupport
from trainer.methods.cost import CostModel, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.methods.scope import count_noun
from trainer.milo import BACKENDS
from trainer.tree.nodes import Draft, DraftLeaf


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Find the best tree of the topology and its bound. The claim covers the column groups and bins that were used."""
    groups = make_groups(problem, settings["bins"], settings["max_card"])
    goal = make_goal(problem, settings)
    choice: tuple[dict[str, Any], ...] = ()
    shape: Shape | None
    if settings["topology"].strip() == AUTO:
        shape, evidence = choose_topology(problem, settings, monitor)
        choice = (evidence,)
    else:
        shape = _topology(settings)
    if settings["select"] == "cart":
        groups = select_columns(groups, settings["seed"])
    solution = _solve(problem, groups, shape, goal, settings, monitor)
    draft = solution.draft
    if settings["max_card"]:
        sizes = tuple(len(column.schema.categories) for column in problem.table.columns)
        draft = limit_subsets(draft, problem.matrix, sizes, settings["max_card"])
    needs_topology_step = bool(settings["topology"].strip()) or count_questions(groups) > MAX_QUESTIONS
    if needs_topology_step and goal is None and shape is not None and solution.bound is not None:
        proved = solution.bound
        total = problem.n
        solution = replace(solution, proof=lambda stop: topology_proof(groups, shape, proved, total))
    return replace(solution, draft=draft, evidence=choice + solution.evidence)


def _topology(settings: Settings) -> Shape | None:
    """Return the topology of the settings; None for depth 0 and for `auto`. Raises ParameterError."""
    text = settings["topology"].strip()
    if text == AUTO:
        if settings["frontier"] or any(settings[name] is not None for name in ("sensitivity", "specificity")):
            message = "'auto' compares accuracies, but a share is required here. Choose a topology."
            raise ParameterError({"topology": message})
        return None
    return parse(text) if text else complete(settings["depth"])


def _space(problem: Problem, settings: Settings) -> str:
    """Return the scope before the search; "" if the search selects topology or columns."""
    if settings["topology"].strip() == AUTO or settings["select"] != "none":
        return ""
    return scope(problem, _topology(settings), make_groups(problem, settings["bins"], settings["max_card"]), settings)


def _check_topology(settings: Settings, names: SettingNames) -> None:
    if settings["topology"].strip() == AUTO and settings["costs"]:
        raise ParameterError(
            {"topology": "'auto' compares accuracies, but answers have costs here. Choose a topology."}
        )
    _topology(settings)


def _check_solver(settings: Settings, names: SettingNames) -> None:
    if settings["frontier"] and settings["solver"] not in ("auto", "search"):
        raise ParameterError(
            {"frontier": "Only solver=search finds the whole frontier. Choose it, or leave the frontier out."}
        )


def _solve(
    problem: Problem, groups: Groups, shape: Shape | None, goal: Goal | None, settings: Settings, monitor: Monitor
) -> Solution:
    solution_fields: dict[str, Any] = {
        "scope": scope(problem, shape, groups, settings),
        "encoded_features": int(groups.sizes.sum()),
        "goal": goal,
    }
    if goal is None and not settings["topology"].strip() and count_questions(groups) <= MAX_QUESTIONS:
        solution_fields["questions"] = lambda: encode_questions(groups)
    if settings["solver"] not in ("auto", "search") and shape is not None and len(groups.sizes):
        return solve_mip(problem, groups, shape, goal, settings, monitor, solution_fields)
    if goal is not None and (goal.sensitivity or goal.specificity or settings["frontier"]):
        reach = RateGoalSearch(problem, groups, shape, goal, monitor, all_entries=settings["frontier"])
        draft, bound = reach.solve()
        evidence = (
            reach.evidence() if settings["frontier"] else {"kind": Evidence.SUBSET_SEARCH, "states": reach.search.nodes}
        )
        return Solution(
            draft=draft,
            bound=float(bound),
            finished=reach.search.finished,
            nodes=reach.search.nodes,
            evidence=(evidence,),
            **solution_fields,
        )
    if shape is None:
        return Solution(draft=_leaf(problem, goal), bound=_majority_share(problem, goal), **solution_fields)
    return _search(problem, groups, shape, goal, monitor, solution_fields)


def _search(
    problem: Problem, groups: Groups, shape: Shape, goal: Goal | None, monitor: Monitor, solution_fields: dict[str, Any]
) -> Solution:
    """Maximise the weight of correct rows by the exact search."""
    classes = tuple(range(problem.n_classes))
    if goal is not None:
        groups, (a, b) = orient_classes(problem, groups, goal)
        groups, _ = apply_class_weight(groups, goal)
        classes = (a, b)
    total = int(groups.w.sum())
    search = SubsetSearch(groups=groups, root=shape, stopped=monitor.stopped, flag=monitor.flag)
    incumbent: list[Draft] = [DraftLeaf()]

    def report_incumbent(value: int, draft: Draft) -> None:
        incumbent[0] = relabel(draft, classes)
        monitor.report(phase="search", incumbent=value / total, nodes=search.nodes, draft=incumbent[0])

    search.on_incumbent = report_incumbent
    search.on_bound = lambda bound: monitor.report(bound=bound / total, nodes=search.nodes)
    rows = np.arange(len(problem.y))
    monitor.report(phase="search", bound=search.bound / total)
    finished = True
    try:
        value, draft = search.solve(shape, rows)
        if draft is not None:
            incumbent[0] = relabel(draft, classes)
    except LevelLimitReached:
        finished = False
        value = search.bound
    monitor.report(bound=value / total, nodes=search.nodes)
    return Solution(
        draft=incumbent[0],
        bound=float(Fraction(value, total)),
        finished=finished,
        nodes=search.nodes,
        evidence=({"kind": Evidence.SUBSET_SEARCH, "states": search.nodes},),
        **solution_fields,
    )


def _class_values(problem: Problem, goal: Goal | None) -> list[Fraction]:
    class_weights = np.bincount(problem.y, weights=problem.row_weights, minlength=problem.n_classes)
    factor = [Fraction(1)] * problem.n_classes
    if goal is not None:
        factor[1 - problem.labels.classes.index(goal.positive)] = Fraction(goal.weight)
    return [int(w) * f for w, f in zip(class_weights, factor, strict=True)]


def _leaf(problem: Problem, goal: Goal | None) -> DraftLeaf:
    weights = _class_values(problem, goal)
    return DraftLeaf(label=weights.index(max(weights)))


def _majority_share(problem: Problem, goal: Goal | None) -> float:
    weights = _class_values(problem, goal)
    return float(max(weights) / sum(weights))


def _seconds(size: ProblemSize) -> float:
    return 2e-7 * size.n * size.F * 4 ** min(max(1, size.d), 8)


METHOD = Method(
    id="odt",
    title="ODT, subsets of categories",
    summary="Optimal trees of a fixed shape. A question is a set of categories, such as 'married or widowed', or a threshold between bins.",
    paper="Günlük, Kalagnanam, Li, Menickelly & Scheinberg (2019)",
    guarantee=Guarantee.TREE,
    splits=("subset", "threshold"),
    size_hint="Made for columns with up to about 15 categories and some thousand rows; depth 2 in seconds, depth 3 for smaller data.",
    good_for="Up to about 15 categories per column; sensitivity and specificity.",
    claim="Optimal over all trees of the topology with subset questions, on the training rows.",
    parameters=(
        having(DEPTH, default=2, maximum=4, restricts=None, help="The largest number of questions between the root and a leaf; 'topology' overrides it."),
        Parameter(
            name="topology", type="text", default="", label="Topology",
            help="depth-2, depth-2.5, depth-3, imbalanced, or brackets such as [[..][..]]; auto: the best of these four by "
            "cross-validation; empty: complete to the depth.", check=_check_topology,
        ),
        Parameter(
            name="select", type="choice", default="none", choices=("none", "cart"), label="Columns",
            help="'cart' uses only the columns that a large greedy tree asks about; the claim then covers these columns only.", advanced=True,
        ),
        Parameter(
            name="max_card", type="integer", default=0, minimum=0, maximum=62, label="Largest subset",
            help="A subset or its complement has at most this many categories; 0 means any number.",
            restricts=lambda s: (
                [f"at most {count_noun(s['max_card'], 'category', 'categories')} in a subset or outside it"] if s["max_card"] else []
            ),
        ),
        *GOALS,
        Parameter(
            name="bins", type="integer", default=10, minimum=2, maximum=60, flag=True, label="Bins",
            help="Numeric columns are cut into this many bins at their quantiles.", advanced=True,
        ),
        *MIP,
        having(
            SOLVER, choices=("auto", "search", *BACKENDS),
            help="'search' (and 'auto') runs this method's own exact search; the others solve the paper's mixed-integer program.",
            check=_check_solver,
        ),
        MIP_GAP,
        *ANSWER_COSTS,
        *COMMON,
    ),
    space=_space,
    solve=solve,
    estimator="ODTClassifier",
    proof=ProofKind.OWN,
    cost=CostModel(seconds=_seconds, spread=0.8),
    first_features=single_tests,
    precompile=({}, {"frontier": True}, {"classes": 3, "depth": 2}),
    workbench=WorkbenchSupport(
        build=subset_bench, check=check_wishes, groups_categories=True,
        overrides={"solver": "auto"},  # edits use the method's own search over the same trees
    ),
    group=Group.RECOMMENDED,
    asks=Asks.GROUPS,
    roles=(Role.GROUPS_PROVED,),
    candidates=(Candidate(parameters={"depth": 2}),),
    example=Example(sample="monks-1", options=("--set", "topology=imbalanced")),
)  # fmt: skip
