"""Search for the tree of best F1 or MCC by weighted searches.

A tree makes ``fn`` errors in positive rows and ``fp`` errors in negative rows. A search with the costs (a, b) finds the
least ``a fn + b fp`` of all trees. So all pairs of error counts lie beyond a line. In the remaining region F1 and MCC
are largest at a corner, because both are quasi-convex and decrease in both counts. Searches exclude the corners that
are better than the incumbent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.certificate import Evidence, Status
from trainer.data.costs import MOST_COPIES, CostTable, CostTerm, RowCosts
from trainer.data.problem import Problem
from trainer.goal import Goal, count_goal
from trainer.methods.base import Method, ProofSteps, Settings, Solution
from trainer.methods.monitor import Monitor, StoppedMonitor
from trainer.solver_common.problem_setup import searched_settings
from trainer.table import Labels
from trainer.tree.nodes import Draft, DraftLeaf, simplify, to_draft
from trainer.version import VERSION

STEEPNESS = (8, 128)  # limits on the costs in the first searches; small costs are searched faster than the exact ones
WEIGHTS_EXHAUSTED = "Weights beyond 2^28 would be needed to decide between the last pairs of error counts."


class ErrorPair(NamedTuple):
    """Numbers of errors in positive rows, `fn`, and in negative rows, `fp`."""

    fn: Fraction
    fp: Fraction


class Line(NamedTuple):
    """The half-plane ``a fn + b fp >= least``."""

    a: int
    b: int
    least: int

    def excess(self, pair: ErrorPair) -> Fraction:
        """Return the excess of a pair over `least`; negative outside of the half-plane."""
        return self.a * pair.fn + self.b * pair.fp - self.least


@dataclass(frozen=True, kw_only=True)
class Incumbent:
    """The best tree so far, and its value minus the price of its leaves."""

    draft: Draft
    net: Fraction


class _SearchMonitor(Monitor):
    """Monitor of one of many searches: it stops with the outer one and reports nothing to it."""

    def __init__(self, outer: Monitor) -> None:
        self.outer = outer
        super().__init__(outer.limits)
        self.flag = outer.flag

    @property
    def reason(self) -> Status | None:
        return self.outer.reason

    @reason.setter
    def reason(self, value: Status | None) -> None:
        """Ignore the value: the outer monitor has the reason."""

    def stopped(self) -> bool:
        return self.outer.stopped()


def positive_class(labels: Labels, weights: np.ndarray, settings: Settings) -> str:
    """Return the class of the setting `positive`, else the class of least weight. Ties are broken by the last class."""
    positive = str(settings.get("positive") or "").strip()
    if positive:
        return positive
    sizes = [int(weights[labels.codes == k].sum()) for k in range(len(labels.classes))]
    rarer = min(range(len(sizes)), key=lambda k: (sizes[k], -k))
    return labels.classes[rarer]


def with_positive(labels: Labels, weights: np.ndarray | None, settings: Settings) -> Settings:
    """Return the settings with the positive class if the goal is F1 or MCC, so that all folds use the same class."""
    if not count_goal(settings):
        return settings
    row_weights = np.ones(len(labels.codes), np.int64) if weights is None else weights
    return Settings(settings.to_json() | {"positive": positive_class(labels, row_weights, settings)})


def goal_method(method: Method, problem: Problem, settings: Settings) -> Method:
    """Return the method with a search for F1 or MCC if the settings have this goal, else the method itself."""
    if not count_goal(settings):
        return method

    def solve(searched: Problem, search_settings: Settings, monitor: Monitor) -> Solution:
        return GoalSearch(method, problem, settings, monitor).run()

    # `complete` skips the shortcut for rows of one class, which states accuracy instead of this goal
    return replace(method, solve=solve, complete=True)


class GoalSearch:
    """The searches for one goal; `settings` are those of the method.

    Parameters
    ----------
    method : Method
        It must be exact for weighted rows. With a leaf penalty it must support `max_leaves`.
    problem : Problem
        Rows of two classes, without costs.
    """

    def __init__(self, method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> None:
        self.method = method
        self.problem = problem
        self.settings = settings
        self.monitor = monitor
        positive = positive_class(problem.labels, problem.row_weights, settings)
        self.goal = Goal(positive=positive, maximise=count_goal(settings))  # type: ignore[arg-type]
        self.k = problem.labels.classes.index(positive)
        is_positive = problem.y == self.k
        self.is_positive = is_positive
        self.positives = int(problem.row_weights[is_positive].sum())
        self.negatives = int(problem.row_weights[~is_positive].sum())
        self.known: list[tuple[ErrorPair, int]] = []  # error pairs of known trees, with their leaves
        # number of leaves (0: any), and a line that holds for the error pairs of all trees with at most this many
        self.lines: list[tuple[int, Line]] = []
        self.nodes = 0
        self.encoded: int | None = None
        self.exhausted = False  # whether finer weights are impossible
        constants = [self._constant(k) for k in range(problem.n_classes)]
        self.incumbent = max(constants, key=lambda one: one.net)

    def run(self) -> Solution:
        """Return the best tree and a bound on all trees."""
        self.monitor.report(phase="search", incumbent=float(self.incumbent.net), draft=self.incumbent.draft)
        upper = self.incumbent.net
        if self.positives and self.negatives:
            upper = self._search_sizes()
        finished = upper <= self.incumbent.net
        bound = float(upper) if finished else math.nextafter(float(upper), math.inf)
        return Solution(
            draft=self.incumbent.draft,
            bound=bound,
            finished=finished,
            nodes=self.nodes,
            encoded_features=self.encoded,
            solver="octweb",
            solver_version=VERSION,
            evidence=({"kind": Evidence.GOAL_SEARCH, "lines": [[most, *line] for most, line in self.lines]},),
            goal=self.goal,
            note=WEIGHTS_EXHAUSTED if self.exhausted and not finished else "",
            proof=self.build_proof,
        )

    def build_proof(self, stop: Callable[[], bool]) -> ProofSteps | None:
        """Search each line again and return the proofs of all of them; None if stopped, or if one is too large.

        Raises NotProved if the method proves no line.
        """
        steps: list[dict[str, Any]] = []
        records: list[dict[str, int]] = []
        for k, (leaves, line) in enumerate(self.lines):
            limited = Settings(self.settings.to_json() | {"max_leaves": leaves}) if leaves else self.settings
            solution = self._solve_priced(self._priced((line.a, line.b)), limited, StoppedMonitor(stop))
            proof = None if solution.proof is None else solution.proof(stop)
            if proof is None:
                return None
            # steps name earlier ones by the number of their line in the file
            first = len(steps)
            steps += [{"line": k} | step | ({"of": step["of"] + first} if "of" in step else {}) for step in proof.steps]
            records.append({"leaves": leaves, "a": line.a, "b": line.b, "scale": proof.scale, "goal": proof.goal})
        return ProofSteps(scale=1, goal=0, steps=steps, lines=records)

    def _search_sizes(self) -> Fraction:
        """Search with at most L leaves, from the most down to two; return an upper bound on the net value of all trees.

        Without a leaf penalty, one search without this limit suffices.
        """
        region = [
            ErrorPair(Fraction(fn), Fraction(fp))
            for fn, fp in ((0, 0), (self.positives, 0), (self.positives, self.negatives), (0, self.negatives))
        ]
        price = self.problem.leaf_penalty
        if not price:
            region = self._exclude(region, self.settings, 0)
            return max(self.incumbent.net, self._upper(region))
        most = 1 << int(self.settings["depth"])
        most = min(most, self.settings.get("max_leaves") or most, math.floor((1 - self.incumbent.net) / price))
        for leaves in range(most, 1, -1):
            limited = Settings(self.settings.to_json() | {"max_leaves": leaves})
            region = self._exclude(region, limited, leaves)
            if self._upper(region) - price * leaves > self.incumbent.net:
                return self._upper(region) - price * 2  # the search was stopped, so smaller trees are not excluded
        return self.incumbent.net

    def _exclude(self, region: list[ErrorPair], settings: Settings, leaves: int) -> list[ErrorPair]:
        """Shrink the region until no tree of `leaves` leaves in it beats the incumbent; return it. 0 leaves: any number.

        Returns early if it is stopped or no finer weights are possible.
        """
        paid = self.problem.leaf_penalty * leaves
        tried: set[tuple[int, int]] = set()
        while True:
            corner = max(region, key=self._value)
            if self._value(corner) - paid <= self.incumbent.net or self.monitor.stopped():
                return region
            direction = self._direction(corner, leaves, tried)
            if direction is None:
                self.exhausted = True
                return region
            tried.add(direction)
            line = self._search(direction, settings)
            if line is not None:
                region = clip(region, line)
                self.lines.append((leaves, line))
            self.monitor.report(
                bound=float(max(self.incumbent.net, self._upper(region) - min(paid, 2 * self.problem.leaf_penalty))),
                nodes=self.nodes,
            )

    def _direction(self, corner: ErrorPair, leaves: int, tried: set[tuple[int, int]]) -> tuple[int, int] | None:
        """Return the costs of errors in positive and negative rows that separate a corner from the known pairs.

        Small costs near the exact ones come first. Returns None if all were tried or are too large.
        """
        chain = lower_chain([pair for pair, tree_leaves in self.known if not leaves or tree_leaves <= leaves])
        edges = [
            Line(int(x.fp - z.fp), int(z.fn - x.fn), int((x.fp - z.fp) * x.fn + (z.fn - x.fn) * x.fp))
            for x, z in itertools.pairwise(chain)
        ]
        edge = min(edges, key=lambda tree_leaves: tree_leaves.excess(corner) / (tree_leaves.a + tree_leaves.b))
        for direction in (*(_near(edge, most) for most in STEEPNESS), Fraction(edge.a, edge.b).as_integer_ratio()):
            if direction not in tried and self._fits(direction):
                return direction
        return None

    def _fits(self, direction: tuple[int, int]) -> bool:
        weight = direction[0] * self.positives + direction[1] * self.negatives
        rows = 4 * max(direction) * self.problem.n if self._counts_rows else 0
        return max(weight, rows) <= MOST_COPIES

    @property
    def _counts_rows(self) -> bool:
        return int(self.settings.get("min_leaf") or 1) > 1

    def _search(self, direction: tuple[int, int], settings: Settings) -> Line | None:
        """Find the least weighted errors and store the tree; return the line that it proves, None without a bound."""
        priced = self._priced(direction)
        solution = self._solve_priced(priced, settings, _SearchMonitor(self.monitor))
        self.nodes += solution.nodes
        self.encoded = solution.encoded_features
        tree = priced.tree(simplify(priced.tree(solution.draft)))
        pair = self._keep(to_draft(tree))
        if solution.bound is None:
            return None
        # costs are integers, so a bound may be rounded up
        assert priced.costs is not None
        least = math.ceil(priced.costs.cost_of(Fraction(solution.bound)) - Fraction(1, 1000))
        return Line(*direction, min(least, int(direction[0] * pair.fn + direction[1] * pair.fp)))

    def _priced(self, direction: tuple[int, int]) -> Problem:
        """Return the problem in which errors in positive and negative rows have these costs."""
        return replace(self.problem, costs=self._costs(*direction), leaf_penalty=Fraction(0), warm_start=None)

    def _solve_priced(self, priced: Problem, settings: Settings, monitor: Monitor) -> Solution:
        # set the source, so that features are encoded only once
        searched = replace(priced.searched, source=self.problem)
        return self.method.solve(searched, searched_settings(priced, settings), monitor)

    def _costs(self, a: int, b: int) -> RowCosts:
        values = np.zeros((len(self.problem.y), 2), np.int64)
        values[self.is_positive, 1 - self.k] = a
        values[~self.is_positive, self.k] = b
        none = CostTerm(factor=Fraction(0))
        return RowCosts(
            values=values,
            weights=self.problem.row_weights,
            step=Fraction(1),
            error=0.0,
            matrix=CostTable(classes=self.problem.labels.classes, terms=((none, none), (none, none))),
            even=self._counts_rows,
        )

    def _keep(self, draft: Draft) -> ErrorPair:
        """Store and return the errors of a tree, which becomes the incumbent if it is better."""
        tree = self.problem.tree(draft)
        wrong = tree.predict(self.problem.matrix) != self.problem.y
        weights = self.problem.row_weights
        pair = ErrorPair(
            Fraction(int(weights[wrong & self.is_positive].sum())),
            Fraction(int(weights[wrong & ~self.is_positive].sum())),
        )
        self.known.append((pair, tree.n_leaves))
        net = self._plain_value(pair) - self.problem.leaf_penalty * tree.n_leaves
        if net > self.incumbent.net:
            self.incumbent = Incumbent(draft=draft, net=net)
            self.monitor.report(incumbent=float(net), leaves=tree.n_leaves, draft=draft)
        return pair

    def _constant(self, k: int) -> Incumbent:
        fn = Fraction(0 if k == self.k else self.positives)
        pair = ErrorPair(fn, Fraction(self.negatives if k == self.k else 0))
        self.known.append((pair, 1))
        return Incumbent(draft=DraftLeaf(label=k), net=self._plain_value(pair) - self.problem.leaf_penalty)

    def _plain_value(self, pair: ErrorPair) -> Fraction:
        return self.goal.value(self.positives - pair.fn, self.positives, self.negatives - pair.fp, self.negatives)

    def _value(self, pair: ErrorPair) -> Fraction:
        return max(Fraction(0), self._plain_value(pair))  # a constant tree has at least the value 0

    def _upper(self, region: Sequence[ErrorPair]) -> Fraction:
        return max(map(self._value, region))


def _near(edge: Line, most: int) -> tuple[int, int]:
    """Return costs of at most `most` with about the ratio of those of an edge."""
    ratio = Fraction(min(edge.a, edge.b), max(edge.a, edge.b)).limit_denominator(most) or Fraction(1, most)
    small, large = ratio.as_integer_ratio()
    return (small, large) if edge.a < edge.b else (large, small)


def clip(region: Sequence[ErrorPair], line: Line) -> list[ErrorPair]:
    """Return the corners of the part of a convex region inside a half-plane."""
    corners: list[ErrorPair] = []
    for x, z in zip(region, [*region[1:], region[0]], strict=True):
        excess = line.excess(x)
        next_excess = line.excess(z)
        if excess >= 0:
            corners.append(x)
        if excess * next_excess < 0:
            part = excess / (excess - next_excess)
            corners.append(ErrorPair(x.fn + part * (z.fn - x.fn), x.fp + part * (z.fp - x.fp)))
    return corners


def lower_chain(pairs: Sequence[ErrorPair]) -> list[ErrorPair]:
    """Return the corners of the lower left convex hull of pairs, by increasing `fn`."""
    chain: list[ErrorPair] = []
    for pair in sorted(set(pairs)):
        if chain and pair.fp >= chain[-1].fp:
            continue
        while len(chain) > 1 and _turns_right(chain[-2], chain[-1], pair):
            chain.pop()
        chain.append(pair)
    return chain


def _turns_right(x: ErrorPair, y: ErrorPair, z: ErrorPair) -> bool:
    return (y.fn - x.fn) * (z.fp - x.fp) <= (z.fn - x.fn) * (y.fp - x.fp)
