"""Equivalent-point inequalities: similar rows share a leaf unless split.

Keegan, Forbes, Corry & Abolghasemi, (13)-(22). A set J of rows agrees on F', holds at least two classes, and F* = F \\ F' is its
split set. Its mediator beta[J] in [0, 1] is forced to 0 if no node on the common path of J branches on a feature of F*; then J
ends in one leaf and only one class of it can be correct.

Legend     sp(v) = sum of b[v,f] over F*;  lt(v), rt(v) = sum of b[v,f] over F' with x_f = 0, x_f = 1 (x the common values)
Forms      basic (16), chain (18) / disaggregated (19), recursive (20) / disaggregated (21); scores (17) or group selection (22)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from trainer.dtypes import CountArray, FloatArray
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import Instance
from trainer.milo import Expression, IntegerProgram, Variables, total, weighted

PAIRS_PER_BLOCK = 1 << 22  # limit on the pairs of rows that are compared at a time

Form = Literal["basic", "chain", "recursive"]


@dataclass(frozen=True, kw_only=True, eq=False)
class EquivalentSet:
    """Rows (indices) that agree outside the split set; `loss` is the misclassified weight if they share a leaf."""

    rows: CountArray
    split: tuple[int, ...]
    loss: int


def find_equivalent_sets(
    instance: Instance, *, split_size: int, limit: int, halted: Halted = never_halt
) -> list[EquivalentSet]:
    """Return up to `limit` maximal sets for split sets of at most `split_size` features, the largest loss first.

    Rows are grouped by a hash of their values outside the split set; relevant groups are compared cell by cell. After a halt, the sets so
    far are returned, since each is valid by itself.
    """
    sets: list[EquivalentSet] = []
    random: Any = np.random.default_rng(0).integers(1, 2**63, instance.X.shape[1], dtype=np.uint64)
    hashes: Any = np.add.reduce(instance.X * random, axis=1)
    for size in range(split_size + 1):
        for split in _possible_splits(instance, size, halted):
            if halted():
                return sets
            masked = hashes - (instance.X[:, list(split)] * random[list(split)]).sum(axis=1, dtype=np.uint64)
            # split sets are visited in order, so the first one wins a tie
            least = sets[-1].loss if sets and len(sets) == limit else 0
            sets += _find_sets(instance, masked, split, least)
            sets.sort(key=lambda s: (-s.loss, len(s.split), s.split))
            del sets[limit:]
    return sets


def _possible_splits(instance: Instance, size: int, halted: Halted) -> Iterable[tuple[int, ...]]:
    """Return the split sets of a size that can occur.

    For up to two features, these are the sets for which two rows differ in exactly these features. For three features that is not
    necessary, so all sets are returned.
    """
    if size == 0 or size > 2:
        return itertools.combinations(instance.F, size)
    X = instance.X.astype(np.float32)  # float32 holds counts up to 2^24 exactly
    ones = X.sum(axis=1)
    codes: set[int] = set()
    step = max(1, PAIRS_PER_BLOCK // max(1, len(X)))
    for first in range(0, len(X), step):
        if halted():
            break
        block = slice(first, first + step)
        distance = ones[block, None] + ones[None, :] - 2 * (X[block] @ X.T)
        i, h = np.nonzero(distance == size)
        later = h > i + first
        differ = np.nonzero(instance.X[i[later] + first] != instance.X[h[later]])[1].reshape(-1, size)
        codes.update(np.unique(differ[:, 0] * len(instance.F) + differ[:, -1]).tolist())
    pairs = (divmod(code, len(instance.F)) for code in sorted(codes))
    return [(f,) if size == 1 else (f, g) for f, g in pairs]


def _find_sets(instance: Instance, masked: np.ndarray, split: tuple[int, ...], least: int) -> Iterator[EquivalentSet]:
    """Yield the sets of one split set that lose more than `least`; `masked` (n,) is the hash outside of it."""
    order = np.lexsort((instance.y, masked))
    starts = np.flatnonzero(np.r_[True, np.diff(masked[order]) != 0])
    ends = np.append(starts[1:], len(order))
    loss = _losses(instance, order, starts)
    relevant = np.flatnonzero(loss > least)
    if not len(relevant):
        return
    in_relevant = np.repeat(np.isin(np.arange(len(starts)), relevant), ends - starts)
    X = instance.X[order[in_relevant]]
    first = np.cumsum((ends - starts)[relevant]) - (ends - starts)[relevant]
    differs = np.minimum.reduceat(X, first) != np.maximum.reduceat(X, first)
    # a set that is constant on part of its split set belongs to a smaller split set, where it is found
    good = differs[:, list(split)].all(axis=1) & (differs.sum(axis=1) == len(split))
    for g in relevant[good].tolist():
        yield EquivalentSet(rows=np.sort(order[starts[g] : ends[g]]), split=split, loss=int(loss[g]))


def _losses(instance: Instance, order: CountArray, starts: CountArray) -> CountArray:
    """Return the weight of each group minus that of its heaviest class, int64.

    `order` is by group and class; groups begin at `starts`.
    """
    begins = np.zeros(len(order), bool)
    begins[starts] = True
    runs = np.flatnonzero(begins | np.r_[True, np.diff(instance.y[order]) != 0])
    weights = np.add.reduceat(instance.weight[order], runs)
    groups = np.searchsorted(runs, starts)
    return np.asarray(np.add.reduceat(weights, groups) - np.maximum.reduceat(weights, groups))


@dataclass(frozen=True, kw_only=True, eq=False)
class Auxiliary:
    """A variable whose value is the minimum of some expressions and 1; rounded down if `is_integer`."""

    column: int
    limits: tuple[Expression, ...]
    is_integer: bool = False

    def fill(self, values: FloatArray) -> None:
        """Write the largest value that the variables of `limits` allow."""
        least = min([1.0, *(e.constant + sum(c * values[j] for j, c in e.terms.items()) for e in self.limits)])
        values[self.column] = np.floor(least + 1e-9) if self.is_integer else least


@dataclass(frozen=True, kw_only=True, eq=False)
class EquivalentPoints:
    """The inequalities of equivalent sets in one master problem."""

    instance: Instance
    model: IntegerProgram
    b: Variables
    theta: Variables
    form: Form = "recursive"
    disaggregated: bool = True
    group_selection: bool = True
    auxiliaries: list[Auxiliary] = field(default_factory=list)

    def fill(self, values: FloatArray) -> None:
        """Write the values of the variables of all sets; branchings and scores must be set."""
        for auxiliary in self.auxiliaries:
            auxiliary.fill(values)

    def _define(self, variables: Variables, key: object, *limits: Expression, is_integer: bool = False) -> None:
        self.auxiliaries.append(Auxiliary(column=variables.column(key), limits=limits, is_integer=is_integer))

    def add(self, sets: list[EquivalentSet]) -> None:
        """Add (14) and (15) for every set."""
        basic: dict[tuple[int, ...], Expression | float] = {}
        for number, J in enumerate(sets):
            beta: Expression | float
            if not J.split:
                beta = 0.0
            elif self.form == "basic":
                if J.split not in basic:
                    basic[J.split] = self._basic(J, number)
                beta = basic[J.split]
            elif self.form == "chain":
                beta = self._chain(J, number)
            else:
                beta = self._recursive(J, number)
            self._scores(J, number, beta)

    def _part(self, v: int, features: np.ndarray | list[int]) -> Expression:
        columns = self.b.columns[v - 1, features]
        return weighted(columns, np.ones(len(columns)))

    def _sums(self, J: EquivalentSet, v: int) -> tuple[Expression, Expression, Expression]:
        """Return sp(v), lt(v), rt(v)."""
        x = self.instance.X[J.rows[0]].astype(bool)
        outside = np.ones(len(x), bool)
        outside[list(J.split)] = False
        return (
            self._part(v, list(J.split)),
            self._part(v, np.flatnonzero(outside & ~x)),
            self._part(v, np.flatnonzero(outside & x)),
        )

    def _basic(self, J: EquivalentSet, number: int) -> Expression:
        beta = self.model.continuous(f"beta{number}", ("",))
        splits = total(self._part(v, list(J.split)) for v in self.instance.tree.branch_nodes)
        self.model.add(beta[""] <= splits, "E16")
        self._define(beta, "", splits)
        return beta[""]

    def _chain(self, J: EquivalentSet, number: int) -> Expression:
        tree = self.instance.tree
        model = self.model
        make = model.continuous if self.disaggregated else model.binary
        at = make(f"beta{number}", tree.branch_nodes)
        sums = {v: self._sums(J, v) for v in tree.branch_nodes}
        for v in tree.branch_nodes:
            way = [sums[u][2 if side else 1] for u, side in tree.turns(v)]
            if self.disaggregated:
                for part in (sums[v][0], *way):
                    model.add(at[v] <= part, "E19")
                self._define(at, v, sums[v][0], *way)
            else:
                mean = total([sums[v][0], *way]) / (1 + len(way))
                model.add(at[v] <= mean, "E18")
                self._define(at, v, mean, is_integer=True)
        beta = model.continuous(f"beta{number}", ("",))
        model.add(beta[""] <= total(at.values()), "E18")
        self._define(beta, "", total(at.values()))
        return beta[""]

    def _recursive(self, J: EquivalentSet, number: int) -> Expression:
        """Add (20) or (21); at nodes with terminal children, beta[v] = sp(v) is substituted."""
        tree = self.instance.tree
        model = self.model
        upper = [v for v in tree.branch_nodes if tree.height(v) > 1]
        sums = {v: self._sums(J, v) for v in tree.branch_nodes}
        if not upper:
            beta = model.continuous(f"beta{number}", ("",))
            model.add(beta[""] <= sums[1][0], "E21")
            self._define(beta, "", sums[1][0])
            return beta[""]
        beta_at = model.continuous(f"beta{number}", upper)
        make = model.continuous if self.disaggregated else model.binary
        side = make(f"side{number}", upper, (0, 1))
        for v in reversed(upper):
            sp, *ways = sums[v]
            for s in (0, 1):
                child = 2 * v + s
                below = beta_at[child] if tree.height(child) > 1 else sums[child][0]
                if self.disaggregated:
                    model.add(side[v, s] <= ways[s], "E21")
                    model.add(side[v, s] <= below, "E21")
                    self._define(side, (v, s), ways[s], below)
                else:
                    mean = (ways[s] + below) / 2
                    model.add(side[v, s] <= mean, "E20")
                    self._define(side, (v, s), mean, is_integer=True)
            model.add(beta_at[v] <= sp + side[v, 0] + side[v, 1], "E21")
            self._define(beta_at, v, sp + side[v, 0] + side[v, 1])
        return beta_at[1]

    def _scores(self, J: EquivalentSet, number: int, beta: Expression | float) -> None:
        """Add (17), or (22) with one selector per class."""
        inst = self.instance
        theta = self.theta
        model = self.model
        classes = [J.rows[inst.y[J.rows] == k] for k in np.unique(inst.y[J.rows])]
        if not self.group_selection:
            weight = inst.weight[J.rows]
            right = weighted(theta.columns[J.rows], weight)
            model.add(right - J.loss * (beta + Expression()) <= int(weight.sum()) - J.loss, "E17")
            return
        picks = model.continuous(f"group{number}", range(len(classes)))
        for g, rows in enumerate(classes):
            weights = inst.weight[rows]
            mean = weighted(theta.columns[rows], weights / weights.sum())
            model.add(mean <= picks[g], "E22")
            self._define(picks, g, mean)
        model.add(total(picks.values()) <= 1 + (len(classes) - 1) * (beta + Expression()), "E22")
