"""Certify how many training rows must change before another tree is as good.

Trees fall into two groups: `home` with the given tree, and `rivals`. The gap is the least cost of a rival minus the least cost of a
home tree. Removing a row changes each cost by at most one row, in one direction; so it lowers the gap by at most 1, and relabelling a
row by at most 2. That is the lower bound. For a fixed rival, the fewest rows solve a small covering program, whose constraints are the
home trees (implicit hitting set, Moreno-Centeno & Karp 2013). That is the upper bound. A depth-first search over sets of rows closes the gap.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple, Protocol

import numpy as np

from trainer.dtypes import BitArray, BoolArray, CodeArray
from trainer.errors import DataError, ParameterError
from trainer.families.exact.search.solve import solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits, never
from trainer.tree.shapes import LabelledShape

Change = Literal["remove", "relabel"]
Edit = tuple[int, int]  # a row group, and its new label or REMOVED
REMOVED = -1


@dataclass(frozen=True, kw_only=True)
class Stability:
    """How many training rows must change before another tree is as good.

    Parameters
    ----------
    change : str
        "remove" or "relabel".
    lower : int
        No smaller number of changed rows is enough.
    upper : int, optional
        This number is enough; None if no set of rows is known.
    rows : tuple of int
        Rows whose change makes another tree at least as good, `upper` of them.
    labels : tuple of int
        The new label of each row; empty if rows are removed.
    """

    change: Change
    lower: int
    upper: int | None
    rows: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the number is known: both bounds agree."""
        return self.lower == self.upper


class Fitted(NamedTuple):
    """A tree on changed rows: its label for each row, int32 (n,), and its leaves."""

    answers: CodeArray
    leaves: int


class TreeGroup(Protocol):
    """A group of trees over the same rows."""

    def best(self, rows: ChangedRows) -> Fitted:
        """Return a tree of least cost."""


class ChangedRows(NamedTuple):
    """The rows of a problem with changed labels; `kept` marks those that are not removed."""

    problem: BinaryProblem
    y: CodeArray
    kept: BoolArray
    stop: Callable[[], bool]


class SearchEnded(Exception):
    """A limit ended the search."""


def root_stability(
    problem: BinaryProblem, is_high: BoolArray | None, *, change: Change = "remove", stop: Callable[[], bool] = never
) -> Stability:
    """Certify how many rows must change before a tree with another root question is as good.

    Parameters
    ----------
    problem : BinaryProblem
        The training rows, without weights and with `min_leaf` 1. A leaf keeps its price in rows.
    is_high : bool array of shape (n_rows,), optional
        The side of each row at the root of the optimal tree; None if that tree is a leaf. Questions that split all rows
        alike count as one.
    change : str
        Whether rows are removed or relabelled.
    stop : callable
        Returns True to end the search with the bounds so far.

    Returns
    -------
    Stability

    Raises
    ------
    DataError
        If no optimal tree has this root, or no question splits the rows.
    ParameterError
        If the problem has weights, a depth of 0 or `min_leaf` above 1.
    """
    _check(problem)
    if not problem.depth:
        raise ParameterError({"depth": "must be at least 1, since trees of depth 0 have no root question. It is 0."})
    columns = problem.X[:, problem.allowed_features > 0].T > 0
    # a question and its opposite split alike
    questions = {
        (column ^ column[0]).tobytes(): column ^ column[0] for column in columns if column.any() and not column.all()
    }
    if not questions:
        raise DataError("No question splits the rows, so there is no other root question. Give other columns.")
    key = b"" if is_high is None else (is_high ^ is_high[0]).tobytes()
    groups: dict[bytes, TreeGroup] = {name: _Rooted(side) for name, side in questions.items()}
    groups[b""] = _Leaf()
    if key not in groups:
        raise DataError("The root question of the tree is not among the questions of the search.")
    home = groups.pop(key)
    return _certify(problem, home, list(groups.values()), change, stop)


def answer_stability(
    problem: BinaryProblem, row: BitArray, label: int, *, change: Change = "remove", stop: Callable[[], bool] = never
) -> Stability:
    """Certify how many rows must change before a tree with another answer for one row is as good.

    Parameters
    ----------
    problem : BinaryProblem
        As for `root_stability`.
    row : uint8 array of shape (n_features,)
        The row; it need not be a training row.
    label : int
        The answer of the optimal tree for it.
    change, stop
        As for `root_stability`.

    Returns
    -------
    Stability

    Raises
    ------
    DataError
        If no optimal tree gives this answer, or there is only one class.
    ParameterError
        As for `root_stability`.
    """
    _check(problem)
    rivals: list[TreeGroup] = [_Answering(row, other) for other in range(problem.n_classes) if other != label]
    if not rivals:
        raise DataError("There is only one class, so no tree gives another answer. Give rows of two classes.")
    constants = [_constant(problem, other) for other in range(problem.n_classes) if other != label]
    return _certify(problem, _Answering(row, label), rivals, change, stop, constants)


def tree_stability(
    problem: BinaryProblem,
    answers: CodeArray,
    leaves: int,
    *,
    change: Change = "remove",
    stop: Callable[[], bool] = never,
) -> Stability:
    """Certify how many rows must change before a tree that answers a training row otherwise is as good.

    Parameters
    ----------
    problem : BinaryProblem
        As for `root_stability`.
    answers : int32 array of shape (n_rows,)
        The answers of the optimal tree.
    leaves : int
        Its number of leaves.
    change, stop
        As for `root_stability`.

    Returns
    -------
    Stability

    Raises
    ------
    DataError
        If the tree is not optimal, or there is only one class.
    ParameterError
        As for `root_stability`.
    """
    _check(problem)
    _, first = np.unique(problem.X, axis=0, return_index=True)
    rivals: list[TreeGroup] = [
        _Answering(problem.X[i], other)
        for i in first.tolist()
        for other in range(problem.n_classes)
        if other != answers[i]
    ]
    if not rivals:
        raise DataError("There is only one class, so no tree gives another answer. Give rows of two classes.")
    constants = [_constant(problem, label) for label in range(problem.n_classes) if (answers != label).any()]
    return _certify(problem, _Given(Fitted(answers, leaves)), rivals, change, stop, constants)


def _constant(problem: BinaryProblem, label: int) -> Fitted:
    """Return the leaf with a label."""
    return Fitted(np.full(len(problem.y), label, np.int32), 1)


def _check(problem: BinaryProblem) -> None:
    if problem.weights is not None and (problem.weights != 1).any():
        raise ParameterError({"weights": "rows with weights are not supported. Leave the weights out."})
    if problem.min_leaf > 1:
        raise ParameterError(
            {"min_leaf": f"must be 1, because fewer rows would forbid trees. It is {problem.min_leaf}."}
        )


@dataclass(frozen=True)
class _Given:
    """One tree."""

    tree: Fitted

    def best(self, rows: ChangedRows) -> Fitted:
        return self.tree


@dataclass(frozen=True)
class _Leaf:
    """The trees without a question."""

    def best(self, rows: ChangedRows) -> Fitted:
        counts = np.bincount(rows.y[rows.kept], minlength=rows.problem.n_classes)
        return _constant(rows.problem, int(counts.argmax()))


@dataclass(frozen=True, eq=False)
class _Rooted:
    """The trees with one root question; a side without rows is a leaf."""

    is_high: BoolArray

    def best(self, rows: ChangedRows) -> Fitted:
        answers = np.zeros(len(rows.y), np.int32)
        leaves = 0
        for side in (self.is_high, ~self.is_high):
            part = _solve(rows, side & rows.kept, rows.problem.depth - 1)
            answers[side] = part.answers[side]
            leaves += part.leaves
        return Fitted(answers, leaves)


@dataclass(frozen=True, eq=False)
class _Answering:
    """The trees with one answer for one row: a row with this label is so heavy that no tree errs on it."""

    row: BitArray
    label: int

    def best(self, rows: ChangedRows) -> Fitted:
        heavy = len(rows.y) + math.ceil(rows.problem.leaf_cost) + 1
        return _solve(rows, rows.kept, rows.problem.depth, (self.row, self.label, heavy))


def _solve(rows: ChangedRows, used: BoolArray, depth: int, extra: tuple[BitArray, int, int] | None = None) -> Fitted:
    """Return the best tree for the used rows, and an extra row with its label and weight; raise SearchEnded."""
    X = rows.problem.X[used]
    y = rows.y[used]
    weights = np.ones(len(y), np.int64)
    if extra is not None:
        X = np.vstack([X, extra[0]])
        y = np.append(y, extra[1]).astype(np.int32)
        weights = np.append(weights, extra[2])
    if not len(y):
        return Fitted(np.zeros(len(rows.y), np.int32), 1)
    part = replace(rows.problem, X=X, y=y, weights=weights, depth=depth)
    result = solve_binary(part, limits=SearchLimits(stop=rows.stop))
    if not result.optimal:
        raise SearchEnded
    answers = np.zeros(len(rows.y), np.int32)
    _label(result.shape, part, np.arange(len(y)), rows.problem.X, np.arange(len(rows.y)), answers)
    return Fitted(answers, result.leaves)


def _label(
    shape: LabelledShape, part: BinaryProblem, own: np.ndarray, X: BitArray, at: np.ndarray, answers: CodeArray
) -> None:
    """Set the answers of a tree for the rows `at` of X; leaves answer by the rows `own` of its problem."""
    if isinstance(shape, tuple):
        for value in (0, 1):
            side = own[part.X[own, shape[0]] == value]
            _label(shape[1 + value], part, side, X, at[X[at, shape[0]] == value], answers)
        return
    counts = np.bincount(part.y[own], part.row_weights[own], minlength=part.n_classes)
    answers[at] = counts.argmax() if shape is None else shape


class _RowGroups:
    """Groups of equal rows of the same class: it does not matter which rows of a group change, only how many."""

    def __init__(self, problem: BinaryProblem, change: Change) -> None:
        self.problem = problem
        labelled = np.column_stack([problem.X, problem.y])
        _, first, group, sizes = np.unique(labelled, axis=0, return_index=True, return_inverse=True, return_counts=True)
        self.first = first
        self.sizes = sizes
        members = np.argsort(group.reshape(-1), kind="stable")
        self.members = np.split(members, np.cumsum(sizes)[:-1])
        labels = range(problem.n_classes)
        self.edits: list[Edit] = [
            (g, label)
            for g, row in enumerate(first.tolist())
            for label in ((REMOVED,) if change == "remove" else labels)
            if label != problem.y[row]
        ]

    def rows(self, edits: Iterable[Edit]) -> Iterator[tuple[int, int]]:
        """Yield each changed row with its new label."""
        used: dict[int, int] = {}
        for group, label in edits:
            yield int(self.members[group][used.get(group, 0)]), label
            used[group] = used.get(group, 0) + 1

    def apply(self, edits: Iterable[Edit], stop: Callable[[], bool]) -> ChangedRows:
        y = self.problem.y.astype(np.int32)
        kept = np.ones(len(y), bool)
        for row, label in self.rows(edits):
            if label == REMOVED:
                kept[row] = False
            else:
                y[row] = label
        return ChangedRows(self.problem, y, kept, stop)

    def room(self, edits: Iterable[Edit]) -> np.ndarray:
        """Return the number of rows of each group that the edits do not change."""
        return self.sizes - np.bincount(np.array([g for g, _ in edits], np.int64), minlength=len(self.sizes))


class _Side:
    """The least cost of some groups of trees on changed rows, in integers: Q for an error, P for a leaf."""

    def __init__(self, groups: list[TreeGroup], leaf_cost: Fraction, all_rows: ChangedRows, enough: int = -1) -> None:
        """Find the best tree of each group; end at the first one whose cost is at most `enough`."""
        self.P = leaf_cost.numerator
        self.Q = leaf_cost.denominator
        self.trees: dict[tuple[bytes, int], Fitted] = {}
        self.groups: list[tuple[int, int, TreeGroup]] = []
        for k, group in enumerate(groups):
            self.groups.append((self.cost(self.best(group, all_rows), all_rows), k, group))
            if self.groups[-1][0] <= enough:
                break
        self.groups.sort(key=lambda item: item[:2])
        self.least: dict[tuple[Edit, ...], int] = {(): self.groups[0][0]}

    def add(self, trees: Iterable[Fitted]) -> None:
        """Store trees of the groups."""
        for tree in trees:
            self.trees.setdefault((tree.answers.tobytes(), tree.leaves), tree)

    def best_known(self, rows: ChangedRows) -> Fitted:
        """Return the cheapest known tree on changed rows."""
        return min(self.trees.values(), key=lambda tree: self.cost(tree, rows))

    def cost(self, tree: Fitted, rows: ChangedRows) -> int:
        """Return the cost of a tree on changed rows."""
        return self.Q * int(np.count_nonzero((tree.answers != rows.y) & rows.kept)) + self.P * tree.leaves

    def value(self, edits: tuple[Edit, ...], rows: ChangedRows) -> int:
        """Return the least cost on changed rows. A further change moves each cost by at most one row."""
        if edits not in self.least:
            known = max((self.least[part] for part in _without_one(edits) if part in self.least), default=0) - self.Q
            best = self.cost(self.best_known(rows), rows)
            for before, _, group in self.groups:
                if best <= max(known, before - self.Q * len(edits)):
                    break
                best = min(best, self.cost(self.best(group, rows), rows))
            self.least[edits] = best
        return self.least[edits]

    def best(self, group: TreeGroup, rows: ChangedRows) -> Fitted:
        """Return the best tree of a group and store it; raise SearchEnded."""
        if rows.stop():
            raise SearchEnded
        tree = group.best(rows)
        self.add([tree])
        return tree


def _without_one(edits: tuple[Edit, ...]) -> Iterator[tuple[Edit, ...]]:
    return (edits[:k] + edits[k + 1 :] for k in range(len(edits)))


class _Certifier:
    """The search for the fewest changes."""

    def __init__(
        self, problem: BinaryProblem, home: TreeGroup, rivals: list[TreeGroup], change: Change, stop: Callable[[], bool]
    ) -> None:
        cost = Fraction(problem.leaf_cost)
        self.groups = _RowGroups(problem, change)
        self.change: Change = change
        self.stop = stop
        all_rows = self.groups.apply((), stop)
        self.home = _Side([home], cost, all_rows)
        self.rivals = _Side(rivals, cost, all_rows, enough=self.home.least[()])
        self.step = cost.denominator * (1 if change == "remove" else 2)  # most that a change lowers the gap
        self.lower = max(0, -(-self.gap(()) // self.step))
        self.best: tuple[Edit, ...] | None = None

    def gap(self, edits: tuple[Edit, ...]) -> int:
        """Return the least cost of a rival minus that of a home tree, on changed rows."""
        if self.stop():
            raise SearchEnded
        rows = self.groups.apply(edits, self.stop)
        return self.rivals.value(edits, rows) - self.home.value(edits, rows)

    def walk(self) -> None:
        """Change row by row what speaks most against a cheap rival, until a rival is as good as the home trees."""
        edits: tuple[Edit, ...] = ()
        while self.gap(edits) > 0:
            edit = self._step_of_walk(edits)
            if edit is None:
                return
            edits = tuple(sorted((*edits, edit)))
        self.best = edits

    def _step_of_walk(self, edits: tuple[Edit, ...]) -> Edit | None:
        """Return a change for the cheapest known rival that changes can make better than the best known home tree; None if there is none."""
        rows = self.groups.apply(edits, self.stop)
        home = self.home.best_known(rows)
        at = self.groups.first
        y = self.groups.problem.y[at]
        room = self.groups.room(edits) * (home.answers[at] == y)
        for rival in sorted(self.rivals.trees.values(), key=lambda tree: self.rivals.cost(tree, rows)):
            against = room * (rival.answers[at] != y)
            if self.step * int(against.sum()) >= self.rivals.cost(rival, rows) - self.home.cost(home, rows):
                group = int(against.argmax())
                return group, REMOVED if self.change == "remove" else int(rival.answers[at[group]])
        return None

    def find_upper(self) -> None:
        """Find the fewest changes that make one of the known rivals optimal, the cheapest rivals first."""
        rows = self.groups.apply((), self.stop)
        known = sorted(self.rivals.trees.values(), key=lambda tree: self.rivals.cost(tree, rows))
        for rival in known:
            need = -(-(self.rivals.cost(rival, rows) - self.home.least[()]) // self.step)
            if self.best is not None and max(need, self.lower) >= len(self.best):
                return
            edits = self._fewest_for(rival)
            if edits is not None and (self.best is None or len(edits) < len(self.best)):
                self.best = edits

    def _fewest_for(self, rival: Fitted) -> tuple[Edit, ...] | None:
        """Return the fewest changes after which no home tree beats a rival; None if there are none, or no fewer than known."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # import here, because SciPy loads slowly

        y = self.groups.problem.y
        at = self.groups.first
        wrong = np.flatnonzero(rival.answers[at] != y[at])
        label = rival.answers[at[wrong]]
        limits = Bounds(0, self.groups.sizes[wrong])
        untouched = self.groups.apply((), self.stop)
        while True:
            # a change lowers the rival's cost by one row; how much it raises the difference depends on the home tree
            trees = list(self.home.trees.values())
            answers = np.array([tree.answers[at[wrong]] for tree in trees])
            gains = (answers == y[at[wrong]]).astype(int)
            if self.change == "relabel":
                gains += answers != label
            needs = [self.rivals.cost(rival, untouched) - self.home.cost(tree, untouched) for tree in trees]
            least = [max(0, -(-need // self.home.Q)) for need in needs]
            if not len(wrong):
                return () if not any(least) else None
            result = milp(
                np.ones(len(wrong)), constraints=LinearConstraint(gains, lb=least), bounds=limits, integrality=1
            )
            if result.x is None:
                return None
            counts = np.round(result.x).astype(int)
            if self.best is not None and counts.sum() >= len(self.best):
                return None
            new = label if self.change == "relabel" else np.full(len(wrong), REMOVED)
            edits = tuple(
                (int(g), int(c)) for g, c, times in zip(wrong, new, counts, strict=True) for _ in range(times)
            )
            rows = self.groups.apply(edits, self.stop)
            before = len(self.home.trees)
            if self.home.value(edits, rows) >= self.rivals.cost(rival, rows):
                return edits
            assert len(self.home.trees) > before

    def raise_lower(self) -> None:
        """Search sets of changes of each number in turn, until one is enough."""
        while self.best is None or self.lower < len(self.best):
            if self.best is None and self.lower > len(self.groups.problem.y):
                return
            found = () if self.lower == 0 else self._find((), self.groups.edits, self.lower)
            if found is not None:
                self.best = found
                return
            self.lower += 1

    def _find(self, edits: tuple[Edit, ...], allowed: list[Edit], rest: int) -> tuple[Edit, ...] | None:
        """Return `rest` more of the allowed changes that make a rival as good as the home trees, or fewer; None if there are none."""
        useful = []
        room = self.groups.room(edits)
        for edit in allowed:
            if room[edit[0]]:
                gap = self.gap((*edits, edit))
                if gap <= 0:
                    return (*edits, edit)
                if gap <= self.step * (rest - 1):
                    useful.append(edit)
        for k, edit in enumerate(useful):
            found = self._find((*edits, edit), useful[k:], rest - 1)
            if found is not None:
                return found
        return None


def _certify(
    problem: BinaryProblem,
    home: TreeGroup,
    rivals: list[TreeGroup],
    change: Change,
    stop: Callable[[], bool],
    constants: Iterable[Fitted] = (),
) -> Stability:
    """Return the bounds; `constants` are further rivals, for the upper bound."""
    if change not in ("remove", "relabel"):
        raise ParameterError({"change": f"must be 'remove' or 'relabel'. It is '{change}'."})
    try:
        search = _Certifier(problem, home, rivals, change, stop)
    except SearchEnded:
        return Stability(change=change, lower=0, upper=None)
    if search.gap(()) < 0:
        raise DataError(
            "The tree is not optimal for these rows, so its stability has no certificate. Train it to the end."
        )
    with contextlib.suppress(SearchEnded):
        search.rivals.add(constants)
        search.walk()
        search.find_upper()
        search.raise_lower()
    if search.best is None:
        return Stability(change=change, lower=search.lower, upper=None)
    changed = list(search.groups.rows(search.best))
    return Stability(
        change=change,
        lower=search.lower,
        upper=len(changed),
        rows=tuple(row for row, _ in changed),
        labels=() if change == "remove" else tuple(label for _, label in changed),
    )
