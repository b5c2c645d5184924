"""Declare `local-search`: deep trees whose small subtrees are each optimal for their rows.

Dunn (2018), local search; Carreira-Perpiñán & Tavallali (2018), alternating optimisation. Nothing is claimed about the whole tree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.certificate import Evidence, Guarantee
from trainer.data.encoding import Test
from trainer.data.problem import Problem
from trainer.families.local.search import SubtreeSearch
from trainer.families.local.starts import grow, grown_trees, pruned, shape_of
from trainer.families.local.subproblem import CountedSubtree, RankedRows, Shape, Subproblems, rank_rows
from trainer.methods.base import (
    ANSWER_COSTS,
    AUTO_LEAF_PENALTY,
    CLASS_WEIGHT,
    COMMON,
    DEPTH,
    MIN_LEAF,
    Method,
    Parameter,
    Settings,
    SizedDraft,
    SizeSearch,
    Solution,
    having,
)
from trainer.methods.capabilities import Candidate, Example, Group, Penalty
from trainer.methods.cost import CostModel, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.methods.scope import numeric_space
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.numbers import middle
from trainer.tree.prune import alphas, collapses
from trainer.version import VERSION

FEWEST_SAVED = 0.9  # smallest leaf penalty of the size comparison, in rows
STEP = 2.0  # ratio of consecutive leaf penalties of the size comparison
SIZES_HEIGHT = 2  # largest height of the replaced subtrees in the size comparison
MOST_SIZES = 400  # limit on the prunings of one tree in the size comparison


class _Search(NamedTuple):
    """The best tree, the search that found it, and the number of finished starts."""

    part: CountedSubtree
    search: SubtreeSearch
    starts: int


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Improve trees from several starts and return the best one, with the subtrees that are proved."""
    monitor.report(phase="search")
    rows = rank_rows(problem)
    is_small = int(rows.weights.sum()) < 2 * settings["min_leaf"]  # no split leaves `min_leaf` on both sides
    if not len(rows.rank) or len(np.unique(rows.y)) < 2 or is_small:
        return Solution(draft=DraftLeaf(), encoded_features=len(rows.rank), evidence=(_evidence(settings, [], 0),))
    found = _search(problem, settings, rows, monitor)
    draft, marks = _draft(problem, rows, found.part.shape, found.search)
    return Solution(
        draft=draft,
        finished=monitor.reason is None,
        nodes=found.search.subproblems.solved,
        encoded_features=len(rows.rank),
        solver="octweb",
        solver_version=VERSION,
        evidence=(_evidence(settings, _open_ids(marks), found.starts),),
    )


def _search(problem: Problem, settings: Settings, rows: RankedRows, monitor: Monitor) -> _Search:
    subproblems = Subproblems(problem, rows, settings["min_leaf"], monitor)
    search = SubtreeSearch(subproblems, settings["depth"], settings["height"])
    best = subproblems.leaf(rows.order)

    def report(part: CountedSubtree) -> None:
        nonlocal best
        if subproblems.cost(part) < subproblems.cost(best):
            best = part
            draft, _ = _draft(problem, rows, part.shape, None)
            objective = problem.objective(problem.tree(draft))
            monitor.report(incumbent=objective, draft=draft, leaves=part.leaves, nodes=subproblems.solved)

    finished = 0
    for draft in _starts(problem, settings, monitor):
        shape = shape_of(draft, problem, subproblems)
        search.improve(shape, report)
        if monitor.stopped():
            break
        finished += 1
    return _Search(best, search, finished)


def _starts(problem: Problem, settings: Settings, monitor: Monitor) -> Iterator[Draft]:
    if problem.warm_start is not None:
        yield problem.warm_start
    yield from grown_trees(problem, settings, settings["starts"], monitor)


def _evidence(settings: Settings, open_ids: list[int], starts: int) -> dict[str, Any]:
    return {"kind": Evidence.SUBTREES, "height": settings["height"], "open": open_ids, "starts": starts}


def _draft(problem: Problem, rows: RankedRows, shape: Shape, search: SubtreeSearch | None) -> tuple[Draft, Any]:
    """Return the tree with splits in the units of the columns, and which subtrees are proved, nested like the draft."""

    def visit(part: Shape, order: np.ndarray, marks: Any) -> tuple[Draft, Any]:
        if not isinstance(part, tuple):
            return DraftLeaf(), marks
        index, rank = part[:2]
        is_low = rows.rank[index, order] <= rank
        count = int(is_low[0].sum())
        low, low_marks = visit(part[2], order[is_low].reshape(len(order), count), marks and marks[1])
        high, high_marks = visit(part[3], order[~is_low].reshape(len(order), -1), marks and marks[2])
        feature = problem.numeric.features[index]
        if feature.test is Test.VALUE:
            values = rows.X[order[index, count - 1 : count + 1], index]
            split, exchanged = feature.cut(middle(*values.tolist()))
        else:
            split, exchanged = feature.split()
        draft = DraftBranch(split=split, left=high if exchanged else low, right=low if exchanged else high)
        sides = (high_marks, low_marks) if exchanged else (low_marks, high_marks)
        return draft, marks and (marks[0], *sides)

    return visit(shape, rows.order, None if search is None else search.open_nodes(rows.order, shape))


def _open_ids(marks: Any) -> list[int]:
    """Return the ids of the nodes whose subtree is low enough and not proved; ids follow the breadth-first order of trees."""
    queue = deque([marks])
    open_ids = []
    for node in range(1 << 30):
        if not queue:
            break
        mark = queue.popleft()
        if isinstance(mark, tuple):
            queue += mark[1:]
            mark = mark[0]
        if mark is False:
            open_ids.append(node)
    return open_ids


def best_by_leaves(problem: Problem, settings: Settings, monitor: Monitor) -> list[SizedDraft]:
    """Return the best tree found with at most 1, 2, … leaves: the prunings of a search for each leaf penalty."""
    rows = rank_rows(problem)
    leaf = DraftLeaf()
    best = {1: SizedDraft(1, problem.n - problem.correct(problem.tree(leaf)), leaf)}
    if not len(rows.rank):
        return list(best.values())
    few = Settings(settings.to_json() | {"height": min(settings["height"], SIZES_HEIGHT)})
    greedy = grow(problem, few, np.arange(len(problem.y)), "gini", monitor)
    for penalty in _penalties(problem):
        if monitor.stopped():
            break
        priced = _with_penalty(problem, penalty)
        subproblems = Subproblems(priced, rows, few["min_leaf"], monitor)
        search = SubtreeSearch(subproblems, few["depth"], few["height"])
        part = search.improve(shape_of(pruned(problem, greedy, penalty), priced, subproblems), lambda part: None)
        draft, _ = _draft(problem, rows, part.shape, None)
        _add_prunings(problem, draft, best)
    return _at_most(best)


def _penalties(problem: Problem) -> list[Fraction]:
    """Return leaf penalties as shares of the rows, from nearly a row to a quarter of the rows."""
    rows = int((problem.row_weights > 0).sum())
    count = 1 + int(np.ceil(np.log(max(1.0, rows / 4)) / np.log(STEP)))
    shares = [FEWEST_SAVED * STEP**k / rows for k in range(count)]
    return [Fraction(share).limit_denominator(10**6) for share in shares if share < 0.5]


def _with_penalty(problem: Problem, penalty: Fraction) -> Problem:
    return replace(problem, leaf_penalty=penalty)


def _add_prunings(problem: Problem, draft: Draft, best: dict[int, SizedDraft]) -> None:
    """Add each pruning of a draft that has fewer errors than the known tree with as many leaves."""
    tree = problem.tree(draft)
    for alpha in alphas(collapses(tree))[:MOST_SIZES]:
        smaller = pruned(problem, draft, alpha)
        counted = problem.tree(smaller)
        errors = problem.n - problem.correct(counted)
        known = best.get(counted.n_leaves)
        if known is None or errors < known.errors:
            best[counted.n_leaves] = SizedDraft(counted.n_leaves, errors, smaller)


def _at_most(best: dict[int, SizedDraft]) -> list[SizedDraft]:
    """Return the best known tree with at most 1, 2, … leaves."""
    drafts: list[SizedDraft] = []
    for leaves in range(1, max(best) + 1):
        known = best.get(leaves)
        if known is not None and (not drafts or known.errors < drafts[-1].errors):
            drafts.append(known)
        else:
            drafts.append(drafts[-1])
    return drafts


def _seconds(size: ProblemSize) -> float:
    return 2e-7 * size.n * size.p * size.n**0.5 * max(1, size.d)


def _sizes_seconds(size: ProblemSize) -> float:
    return 4 * _seconds(size)


METHOD = Method(
    id="local-search",
    title="Local search over subtrees",
    summary="A deep tree in which exact searches replace small subtrees until no replacement helps.",
    paper="Dunn (2018); Carreira-Perpiñán & Tavallali (2018)",
    guarantee=Guarantee.SUBTREES,
    space=numeric_space,
    splits=("threshold", "subset"),
    warm_start=True,
    size_hint="Thousands of rows, tens of columns, many classes.",
    good_for="Many classes, and trees deeper than a search of all trees can prove.",
    claim="Proves for each small subtree that no other small tree in its place is better; the tree as a whole is not proved.",
    parameters=(
        having(DEPTH, default=10),
        AUTO_LEAF_PENALTY,
        Parameter(
            name="height", type="integer", default=2, minimum=1, maximum=3, label="Height of the subtrees", unit="questions",
            help="Subtrees with at most this many questions on a path are replaced by the best ones for their rows. 3 takes much longer.",
            restricts=lambda s: [f"subtrees of height ≤ {s['height']}"],
        ),
        Parameter(
            name="starts", type="integer", default=3, minimum=1, maximum=1000, label="Starts", advanced=True,
            help="The search starts from this many greedy trees and keeps the best result.",
        ),
        MIN_LEAF,
        CLASS_WEIGHT,
        *ANSWER_COSTS,
        *COMMON,
    ),
    solve=solve,
    estimator="LocalSearchClassifier",
    cost=CostModel(seconds=_seconds, spread=0.6, unmodelled=("height", "starts")),
    precompile=({"height": 3, "leaf_penalty": 0.01}, {"height": 3, "leaf_penalty": 0.01, "classes": 3}),
    sizes=SizeSearch(best=best_by_leaves, deepest=20, most_seconds=300.0, seconds=_sizes_seconds),
    group=Group.RECOMMENDED,
    candidates=tuple(Candidate(parameters={"depth": 10, "leaf_penalty": penalty}) for penalty in (Penalty.LARGE, Penalty.SMALL)),
    example=Example(options=("--depth", "6", "--leaf-penalty", "0.01")),
)  # fmt: skip
