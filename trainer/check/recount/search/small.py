"""Find the best tree of a small space without a proof.

The best tree of a whole space proves or refutes a bound. A tree from a part of the space can only refute a bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import (
    OBLIQUE,
    QUESTIONS,
    THRESHOLDS,
    ModelTable,
    active_parameter,
    has_margin,
    read_fraction,
)
from trainer.check.proof.space.questions import answer_matrix, bin_questions, questions
from trainer.check.proof.space.space import read_space, space_of
from trainer.check.proof.space.subsets import chosen_columns, subsets
from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.steps.parts import INFINITE_COST
from trainer.check.proof.subject import NoProof, ProofSpace
from trainer.check.recount.findings import TOLERANCE
from trainer.check.recount.restrictions import not_searched
from trainer.check.recount.search import subset_trees
from trainer.check.recount.search.exhaustive_search import ExhaustiveSearch, SearchTooLarge
from trainer.check.recount.search.goal_lines import GoalLines
from trainer.check.recount.search.optima import Optima
from trainer.check.recount.search.priced import PricedTrees, RestrictedPricedTrees
from trainer.check.recount.search.topology_search import TopologySearch
from trainer.check.recount.trees.counts import goal_value, penalty

WORK = 2e8  # limit on rows × questions in one search
CELLS = 3e7  # limit on rows × questions in memory
VISITS = 20_000  # limit on subproblems in one search
MOST_SETS = 40  # limit on sets of columns
# limits on questions and depth if only a part of the space is searched
FEW = 60
PART_DEPTH = 3
MOST_LINES = 200  # limit on the lines that bound a goal
MOST_GOAL_WEIGHT = 1 << 53
MOST = 400  # with more questions, the whole space is not tried
SAME_OBJECTIVE = QUESTIONS - {"binoct"}


@dataclass(frozen=True)
class SearchResult:
    """The best objective among the searched trees; `is_whole` if they are all trees of the space."""

    value: Fraction
    is_whole: bool


def best(model: dict[str, Any], rows: ModelTable) -> tuple[SearchResult | None, str]:
    """Find the best objective.

    Returns the result, and why the search was not complete. The result is None if there was no search.
    """
    if (value := subset_trees.top(model, rows)) is not None:
        return SearchResult(value, True), ""
    if goal := model["certificate"].get("goal"):
        return _best_pair(model, rows, goal), "something other than accuracy was maximised, and the space is too large"
    if name := not_searched(model):
        return None, f"trees with '{name}' are not part of the plain search"
    n = int(rows.weights.sum())
    wishes = bool(model["certificate"].get("wishes"))
    extra = read_fraction(model["certificate"].get("coefficient_penalty") or 0)
    listed = _listed_space(model, rows)
    if listed is None:
        return None, f"the trees of '{model['method']}' are not those of the plain search"
    X, columns, depth, is_listed_whole = listed
    try:
        if wishes:
            space = _wish_space(model, rows)
        else:
            space = replace(space_of(model, rows, X, columns, penalty(model) + extra), depth=depth, shape=None)
    except NoProof as reason:
        return None, str(reason)
    cost, all_of_it = _search(replace(space, kind="questions"))
    # with a topology, `_search` goes through all of its trees
    is_listed_whole = is_listed_whole or space.shape is not None
    if cost is None and not (wishes and all_of_it):
        return None, "no tree within the restrictions was found in the part of the space that can be searched"
    value = Fraction(-1) if cost is None else 1 + extra - cost / n
    return SearchResult(value, is_listed_whole and all_of_it), "it is too large for a plain search"


def best_priced(
    model: dict[str, Any], rows: ModelTable, charges: Mapping[int, Fraction]
) -> tuple[SearchResult | None, str]:
    """Find the best objective if rows pay for the columns on their paths; the results are those of `best`."""
    space = _full_space(model, rows, penalty(model))
    if space is None or space.rates is not None or space.rising is not None:
        return None, "trees with these restrictions are not part of the search with prices of columns"
    trees = PricedTrees if not space.recalls and space.apart is None else RestrictedPricedTrees
    every = sorted(set(space.column_of.tolist()))
    few = len(every) if space.max_columns is None else min(space.max_columns, len(every))
    if math.comb(len(every), few) > MOST_SETS:
        return None, "there are too many sets of columns for a plain search with prices of columns"
    sets = [np.isin(space.column_of, columns) for columns in itertools.combinations(every, few)]
    try:
        values = [
            trees(replace(space, allowed=space.allowed & among), charges, VISITS).least(space.depth) for among in sets
        ]
    except SearchTooLarge:
        return None, "it is too large for a plain search with prices of columns"
    least = min((value for value in values if value is not None), default=None)
    return SearchResult(Fraction(-1) if least is None else 1 - least / int(rows.weights.sum()), True), ""


def optimum_without(model: dict[str, Any], rows: ModelTable, dropped: Sequence[int]) -> Fraction | None:
    """Find the best objective without some wishes, whose questions stay allowed; None if the space is too large."""
    try:
        space = _wish_space(model, rows)
    except NoProof:
        return None
    wishes = [
        w if i not in dropped else replace(w, verb="held")
        for i, w in enumerate(space.wishes)
        if i not in dropped or w.numbers
    ]
    cost, is_whole = _search(replace(space, kind="questions", wishes=tuple(wishes)))
    return 1 - cost / int(rows.weights.sum()) if is_whole and cost is not None else None


def _wish_space(model: dict[str, Any], rows: ModelTable) -> ProofSpace:
    """Return the search space of a model; raise NoProof if there is none.

    A model of `odt` with a topology has a search space, although the format has no proof steps for it.
    """
    if model["method"] == "odt" and active_parameter(model, "topology"):
        return space_of(model, rows, *subsets(model, rows), penalty(model))
    return read_space(model, rows)


def _best_pair(model: dict[str, Any], rows: ModelTable, goal: dict[str, Any]) -> SearchResult | None:
    if goal["maximise"] in ("f1", "mcc"):
        return _best_by_lines(model, rows, goal) or _best_counts(model, rows, goal)
    listed = _listed_pairs(model, rows, goal["positive"])  # this runs only if the search by categories found no result
    if listed is None:
        return None
    positives, negatives, reached = listed
    values = [goal_value(goal, tp, positives, tn, negatives) for tp, tn in reached]
    return SearchResult(max((value for value, meets_shares in values if meets_shares), default=Fraction(-1)), True)


def _best_by_lines(model: dict[str, Any], rows: ModelTable, goal: dict[str, Any]) -> SearchResult | None:
    """Bound F1 or MCC by the lines of the file, each searched again; None unless the bound is as low as that of the file."""
    space = _full_space(model, rows, Fraction(0))
    claimed = model["certificate"].get("bound")
    if space is None or claimed is None or space.max_columns is not None or space.min_leaf > 1:
        return None
    k = model["classes"].index(goal["positive"])
    regions = GoalLines(goal, penalty(model), tuple(int(space.weights[space.labels == c].sum()) for c in (k, 1 - k)))
    most = 1 << min(space.depth, 20)
    most = most if space.max_leaves is None else min(most, space.max_leaves)
    for leaves, a, b, _ in _goal_search_lines(model):
        factors = np.where(space.labels == k, a, b).astype(np.int64)
        if max(a, b) * int(space.weights.sum()) >= MOST_GOAL_WEIGHT:
            return None
        limit = min(leaves or most, most)
        weighted_space = replace(
            space, weights=space.weights * factors, max_leaves=limit if limit < 1 << space.depth else None
        )
        least, is_whole = _search(weighted_space)
        if least is None or not is_whole:
            return None
        regions.add(leaves, a, b, least)
    top = regions.top(most)
    return SearchResult(top, True) if top <= read_fraction(claimed) + TOLERANCE else None


def _goal_search_lines(model: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    """Return the lines of the file: most leaves, costs of both kinds of errors, and the least sum, which is not trusted."""
    parts = [part for part in model["certificate"].get("evidence") or () if part.get("kind") == "goal-search"]
    lines = [tuple(map(int, line)) for part in parts for line in part.get("lines") or ()]
    return [line for line in lines if len(line) == 4 and min(line[1:3]) > 0][:MOST_LINES]


def _best_counts(model: dict[str, Any], rows: ModelTable, goal: dict[str, Any]) -> SearchResult | None:
    """Find the best F1 or MCC minus the price of the leaves; it decreases in errors and leaves, so the Pareto front suffices."""
    space = _full_space(model, rows, Fraction(0))
    if space is None or space.max_columns is not None or len(model["classes"]) != 2:
        return None
    price = penalty(model)
    k = model["classes"].index(goal["positive"])
    p, n = (int(rows.weights[rows.labels == label].sum()) for label in (k, 1 - k))
    most = space.max_leaves if space.max_leaves or not price else 1 << 30
    vectors = _all_vectors(replace(space, recalls=((k, p), (1 - k, n)), max_leaves=most))
    if vectors is None:
        return None
    values = (goal_value(goal, p - v[1], p, n - v[2], n)[0] - (price * v[-1] if price else 0) for v in vectors)
    return SearchResult(max(values, default=Fraction(-1)), True)


def pairs(model: dict[str, Any], rows: ModelTable, positive: str) -> tuple[int, int, list[tuple[int, int]]] | None:
    """Return the weights of positives and negatives, and the Pareto front of correct weights of both classes.

    Returns None if the space is too large to be searched.
    """
    by_subsets = subset_trees.pairs(model, rows, positive)
    return _listed_pairs(model, rows, positive) if by_subsets is None else by_subsets


def _listed_pairs(
    model: dict[str, Any], rows: ModelTable, positive: str
) -> tuple[int, int, list[tuple[int, int]]] | None:
    """Return the same as `pairs`, by a search over listed questions."""
    space = _full_space(model, rows, Fraction(0))
    if space is None or len(model["classes"]) != 2:
        return None
    k = model["classes"].index(positive)
    p, n = (int(rows.weights[rows.labels == label].sum()) for label in (k, 1 - k))
    vectors = _all_vectors(replace(space, recalls=((k, p), (1 - k, n))))
    return None if vectors is None else (p, n, [(p - v[1], n - v[2]) for v in vectors])


def optimal_trees(model: dict[str, Any], rows: ModelTable) -> int | None:
    """Count the trees with the best objective and, among these, the fewest leaves; None if the space is too large."""
    space = _full_space(model, rows, penalty(model))
    if space is None or space.apart is not None:
        return None
    # `scale` exceeds the leaves of any tree, so that the extra 1 per leaf only breaks ties between equal costs
    scale = min(1 << space.depth, len(space.X)) + 1
    counting = Counting(space, scale * space.penalty.denominator, scale * space.penalty.numerator + 1)
    try:
        return Optima(counting, VISITS).of(counting.root(), _height(space, counting))[1]
    except SearchTooLarge:
        return None


def frontier(model: dict[str, Any], rows: ModelTable) -> list[int] | None:
    """Return the most correct rows with at most 1, 2, … leaves; None if the space is too large."""
    space = _full_space(model, rows, Fraction(0))
    if space is None or space.max_columns is not None:
        return None
    vectors = _all_vectors(replace(space, max_leaves=1 << 30, recalls=(), rates=None))
    if vectors is None:
        return None
    n = int(rows.weights.sum())
    most = max(v[-1] for v in vectors)
    return [n - min(v[0] for v in vectors if v[-1] <= t) for t in range(1, most + 1)]


def _full_space(model: dict[str, Any], rows: ModelTable, price: Fraction) -> ProofSpace | None:
    """Return the space with this price of a leaf; None if the search leaves out some questions or restrictions."""
    listed = _listed_space(model, rows)
    if listed is None or not listed[3] or not_searched(model):
        return None
    try:
        return replace(space_of(model, rows, listed[0], listed[1], price), kind="questions")
    except NoProof:
        return None


def _all_vectors(space: ProofSpace) -> list[list[int]] | None:
    """Return the vectors of all trees, errors first; None if there are too many trees."""
    counting = Counting(space, 1, 0)
    try:
        return (
            ExhaustiveSearch(counting, VISITS).cover(counting.root(), _height(space, counting), INFINITE_COST).tolist()
        )
    except SearchTooLarge:
        return None


def _best_questions(X: np.ndarray, Y: np.ndarray, most: int) -> np.ndarray:
    """Return the questions with the fewest errors as a single split."""
    ones = np.array([Y[yes].sum(axis=0) for yes in X.T]).reshape(-1, Y.shape[1])
    right = ones.max(axis=1) + (Y.sum(axis=0) - ones).max(axis=1)
    return np.argsort(-right, kind="stable")[:most]


def _search(space: ProofSpace) -> tuple[Fraction | None, bool]:
    """Return the least cost, None if no tree satisfies the restrictions, and whether all trees were searched.

    Only a part of a large space is searched.
    """
    columns = sorted(set(space.column_of.tolist()))
    few = space.max_columns
    sets = [None] if few is None else itertools.combinations(columns, min(few, len(columns)))
    groups: list[tuple[int, ...] | None] = list(itertools.islice(sets, MOST_SETS + 1))
    try:
        return _least_cost(space, groups[:MOST_SETS]), len(groups) <= MOST_SETS
    except SearchTooLarge:
        pass
    try:
        return _least_cost(_reduced_space(space), groups[:MOST_SETS]), False
    except SearchTooLarge:
        return None, False


def _reduced_space(space: ProofSpace) -> ProofSpace:
    """Restrict a space to the best single splits and the questions that wishes name, and limit its depth."""
    depth = min(PART_DEPTH, space.depth)
    n = len(space.X)
    few = min(FEW, int(CELLS / n), int((WORK / n) ** (1 / max(1, depth - 1))))
    Y = np.zeros((n, space.classes))
    Y[np.arange(n), space.labels] = space.weights
    usable = np.flatnonzero(space.allowed & space.listed)
    best = np.sort(usable[_best_questions(space.X[:, usable], Y, max(1, few))])
    kept_questions = np.append(best, np.flatnonzero(~space.listed))
    position = {int(q): i for i, q in enumerate(kept_questions)}  # maps the number of a kept question to its new number
    separating = [tuple(sorted(position[q] for q in w.separating if q in position)) for w in space.wishes]
    moved = [
        replace(w, numbers=tuple(position[q] for q in w.numbers), separating=p)
        for w, p in zip(space.wishes, separating, strict=True)
    ]
    return replace(
        space,
        X=space.X[:, kept_questions],
        allowed=space.allowed[kept_questions],
        columns=space.column_of[kept_questions],
        yes_left=None if space.yes_left is None else space.yes_left[kept_questions],
        apart=None if space.apart is None else space.apart[np.ix_(kept_questions, kept_questions)],
        wishes=tuple(moved),
        depth=depth,
        rising=None if space.rising is None else space.rising[kept_questions],
        listed=space.listed[kept_questions],
    )


def _least_cost(space: ProofSpace, groups: Sequence[tuple[int, ...] | None]) -> Fraction | None:
    unit = space.penalty.denominator
    leaf = space.penalty.numerator
    if space.X.size > CELLS:
        raise SearchTooLarge
    counting = Counting(space, unit, leaf)
    if space.shape is not None:
        _height(space, counting)
        least = TopologySearch(counting, VISITS).least(counting.root(), space.shape)
        return None if least == INFINITE_COST else Fraction(least, unit)
    costs = [
        ExhaustiveSearch(counting, VISITS).optimum(counting.root(some), _height(space, counting)) for some in groups
    ]
    return min((Fraction(cost, unit) for cost in costs if cost is not None), default=None)


def _height(space: ProofSpace, counting: Counting) -> int:
    """Return the maximum depth of the search; raise SearchTooLarge if there are too many trees or costs exceed 64 bits."""
    depth = min(space.depth, counting.deepest)
    if counting.unit * int(space.weights.sum()) + (counting.leaf << min(depth, 62)) >= INFINITE_COST:
        raise SearchTooLarge
    if float(space.X.shape[1]) ** max(0, depth - 1) * len(counting.X) > WORK:
        raise SearchTooLarge
    return depth


def _listed_space(model: dict[str, Any], rows: ModelTable) -> tuple[np.ndarray, list[int], int, bool] | None:
    """Return answers, their columns, the depth, and whether these are all questions of the space."""
    method = model["method"]
    limit = model["parameters"]["depth"]
    depth = max(0, len(rows) - 1) if limit is None and method == "exact" else int(limit)
    if method in QUESTIONS:
        return *questions(model, rows), depth, True
    if method == "odt":
        return _odt_space(model, rows, depth)
    # thresholds and planes do not distinguish special values
    plain = model | {"columns": [column | {"special": []} for column in model["columns"]]}
    if method in THRESHOLDS:
        small = sum(len(np.unique(values)) for values in rows.columns) <= MOST
        return *_encode(plain, rows, "all-thresholds" if small else "quantile-thresholds", 10), depth, small
    if method in OBLIQUE and all(_separates_values(model, values) for values in rows.columns):
        return *_encode(plain, rows, "quantile-thresholds", 5), depth, False
    return None


def _encode(model: dict[str, Any], rows: ModelTable, scheme: str, bins: int) -> tuple[np.ndarray, list[int]]:
    return questions(model | {"parameters": model["parameters"] | {"binarise": scheme, "bins": bins}}, rows)


def _separates_values(model: dict[str, Any], values: np.ndarray) -> bool:
    """Return True if planes must be able to separate all values of a column: no two are so close that planes may ignore it."""
    values = np.unique(values[~np.isnan(values)])
    steps = np.diff(values)
    return not len(steps) or bool(steps.min() > (0.0051 if has_margin(model) else 1e-5) * np.ptp(values))


def _odt_space(model: dict[str, Any], rows: ModelTable, depth: int) -> tuple[np.ndarray, list[int], int, bool] | None:
    """Return the space of `odt`: subsets of categories and ends of bins; with a topology only the question at its root."""
    plain = active_parameter(model, "negative_weight") in (None, "1", 1)
    if chosen_columns(model) is None or not (plain or model["certificate"].get("goal")):
        return None
    is_complete = not active_parameter(model, "topology")
    height = depth if is_complete else 1
    try:
        return *subsets(model, rows, 5 * MOST), height, is_complete
    except NoProof:
        X, columns = _single_questions(model, rows)
        return None if X.shape[1] > 5 * MOST else (X, columns, height, False)


def _single_questions(model: dict[str, Any], rows: ModelTable) -> tuple[np.ndarray, list[int]]:
    """Return the questions about single categories and bins of the columns of the claim."""
    column_answers = list[tuple[int, np.ndarray]]()
    usable = chosen_columns(model) or ()
    bins = int(model["parameters"]["bins"])
    for j in np.flatnonzero(usable).tolist():
        values = rows.columns[j]
        nominal = model["columns"][j]["kind"] == "categorical"
        column_answers += [(j, values == level) for level in np.unique(values)] if nominal else []
        column_answers += [] if nominal else [(j, yes) for yes in bin_questions(values, bins)]
    return answer_matrix([answers for _, answers in column_answers], rows), [j for j, _ in column_answers]
