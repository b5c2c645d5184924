"""Counting all trees up to a cost: N(D, h, c), as exact integers.

Only costs that some good tree of the whole can still have are kept at a subproblem: its budget is what the limit leaves when the
rest of the tree costs as little as it can. The budget belongs to the way to a subproblem; a kept list says up to which it is complete.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainer.editing.space import NONE_BANNED, SearchStopped, literal
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.kernels import count as kc
from trainer.families.exact.kernels import count_node
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.column_usage import KeyUsage
from trainer.families.exact.kernels.depth3 import PairCache
from trainer.families.exact.rashomon.alike import Credit, alike_columns
from trainer.families.exact.rashomon.filters import Filters, Keys
from trainer.families.exact.search.frame import NO_FLOORS
from trainer.kernels.members import members

MOST_INT64 = 1 << 62
KEY_ROOM = 1 << 26  # keys that all kept lists may hold together, some 24 bytes each


@dataclass
class CountedTrees:
    """The trees of a subproblem by key, ascending by cost, complete up to `budget`."""

    height: int
    keys: np.ndarray
    costs: np.ndarray
    counts: np.ndarray  # int64, or Python integers where these would not hold them
    total: int
    budget: int
    # of places above two levels: key and class of the single leaf, where it is cheap enough, and the pairs below each question
    opened: Opened | None = None
    open: Callable[[], Opened] | None = None
    choices: dict[int, Any] | None = None  # filled in by those who list trees
    ranges: KeyUsage | None = None

    @property
    def leaf(self) -> tuple[int, int] | None:
        """Key and class of the single leaf, where it is cheap enough."""
        return self._parts()[0]

    @property
    def parts(self) -> list[tuple[int, CountedTrees, CountedTrees]]:
        """The pairs below each question (question, yes, no); counted when they are first asked for. Raises SearchStopped."""
        return self._parts()[1]

    def _parts(self) -> Opened:
        if self.opened is None:
            self.opened = (None, []) if self.open is None else self.open()
        return self.opened


Opened = tuple[tuple[int, int] | None, list[tuple[int, CountedTrees, CountedTrees]]]


class Counter:
    """Trees of one space by key up to a limit; `reduce`: one question for each way to separate the rows of a place.

    `base`: a count of the same trees and more, with the same filters, which knows below which questions there are some.
    """

    def __init__(
        self,
        space: ExactSpace,
        filters: Filters | None = None,
        *,
        idle: bool = True,
        reduce: bool = False,
        base: Counter | None = None,
    ) -> None:
        self.space = space
        self.filters = filters or Filters()
        self.reduce = reduce
        # one count of two levels sees which questions are alike for the rows of the upper place only
        self.counted = 1 if reduce else 2
        self.keys = Keys(space, self.filters, idle=idle, alike=reduce)
        self.credited = reduce and bool(self.filters.must)  # a question counts as any that separates the rows alike
        self.kinds = self.keys.kinds
        self.held = 0  # keys in all lists that are kept
        self.banned = self.filters.without
        self.mask = space.mask(self.banned)
        self.similar = space.min_leaf <= 1
        self.partial = 0  # trees that were accepted before the count was stopped
        self.memo: dict[tuple[int, bytes], CountedTrees] = {}
        g = space.instance
        self._costs = np.array([g.Q, g.P, space.min_leaf, self.similar, g.scale], np.int64)
        self._base = base

    def root(self, limit: int) -> CountedTrees:
        """All trees with Q errors + P leaves ≤ limit. Raises SearchStopped."""
        return self.entry(self.space.all_rows, (), self.space.depth, limit)

    def entry(self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, budget: int) -> CountedTrees:
        """The trees of a subproblem up to its budget."""
        key = (height, self._key(rows))
        known = self.memo.get(key)
        if known is not None and known.budget >= budget:
            return known
        if self.space.stopped():
            raise SearchStopped
        found = self._counted(rows, path, height, budget)
        self.memo[key] = found
        self.held += len(found.keys) - (0 if known is None else len(known.keys))
        if self.held > KEY_ROOM:
            raise SearchStopped
        return found

    def _counted(self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, budget: int) -> CountedTrees:
        if height <= self.counted and not (height and self.credited):
            return self._small(rows, height, budget)
        if height == 3 and path and self._plain:
            found = self._three(rows, path, budget)
            if found is not None:
                return found
        return self._large(rows, path, height, budget)

    @property
    def _plain(self) -> bool:
        """Whether rows are counted by class, and every question by itself."""
        return self.keys.layout.idle and not self.reduce and self.kinds.places is None

    def _three(self, rows: np.ndarray, path: tuple[int, ...], budget: int) -> CountedTrees | None:
        """A place of height three in one call; None where 64 bits might not hold its counts. Its parts are counted when they are needed."""
        keys, costs, counts, most = count_node.count_depth3(
            self.given(rows),
            self._costs,
            self._kept(path, 3),
            self._floors(path),
            self.keys.layout,
            budget,
            KEY_ROOM,
            self.space.flag,
        )
        if len(keys) > KEY_ROOM or self.space.stopped():
            raise SearchStopped
        if most >= MOST_INT64:
            return None
        found = CountedTrees(3, keys, costs, counts, int(counts.sum()), budget)
        found.open = self._opener(rows, path, budget)
        return found

    def _opener(self, rows: np.ndarray, path: tuple[int, ...], budget: int) -> Callable[[], Opened]:
        """Counts the parts of a place of height three; whoever asks holds the counter, which is not to be held by what it keeps."""
        held = weakref.ref(self)

        def opened() -> Opened:
            counter = held()
            assert counter is not None
            return counter._large(rows, path, 3, budget)._parts()

        return opened

    def _key(self, rows: np.ndarray) -> bytes:
        return members(rows, len(self.space.instance.rows)).tobytes()

    def node(self, rows: np.ndarray) -> dp_node.NodeView:
        """The node of some rows with every question that separates them, and counts by class."""
        return dp_node.prepare(self.space.instance.data, rows, self.mask, self.space.min_leaf, self.reduce, False)

    def detailed(self, rows: np.ndarray) -> dp_node.NodeView:
        """The same with counts by kind."""
        return self.kinds.node(rows, self.mask, self.space.min_leaf, self.reduce)

    def given(self, rows: np.ndarray) -> tuple[dp_node.DataRows, np.ndarray, np.ndarray, int, bool]:
        """What kernels take for some rows to be counted by kind."""
        return self.kinds.given(rows, self.mask, self.space.min_leaf, self.reduce)

    def pairs(self, node: dp_node.NodeView) -> np.ndarray:
        """Pair counts of a node, int32 (classes or kinds, p, p)."""
        m = len(node.features)
        P = np.empty((len(node.totals), m, m), np.int32)
        dp_node.pair_counts(node, P)
        return P

    def leaf(self, rows: np.ndarray) -> tuple[int, int, int]:
        """Class, cost (FAR if the filters bar it) and key of the leaf of some rows."""
        label, cost, key = kc.evaluate_leaf(self.kinds.counts(rows), self.keys.layout)
        return int(label), int(cost), int(key)

    def _small(self, rows: np.ndarray, height: int, budget: int) -> CountedTrees:
        keys, costs, counts = count_node.count_rows(self.given(rows), height, self.keys.layout, budget)
        return CountedTrees(height, keys, costs, counts, int(counts.sum()), budget)

    def _large(self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, budget: int) -> CountedTrees:
        bag = Bag(int(self.keys.layout.low))
        parts = []
        label, cost, key = self.leaf(rows)
        if cost <= budget:
            bag.put(key, cost, 1)
        credits = self._credits(rows)
        for question, lows in self._viable(rows, path, height, budget):
            yes, no = self.space.split(rows, question)
            pair = []
            try:
                for side, other, letter in ((yes, lows[1], True), (no, lows[0], False)):
                    inner = literal(path, question, letter, self.space.questions.encoded)
                    pair.append(self.entry(side, inner, height - 1, budget - other))
            except SearchStopped:
                if path == ():
                    self.partial = accepted_number(_part(bag, height, budget), self.keys, budget)
                raise
            if not len(pair[0].keys) or not len(pair[1].keys):
                continue
            parts.append((question, pair[0], pair[1]))
            credit = credits.get(question) or Credit(int(self.keys.layout.bits[question]), 0)
            bag.pairs(_shifted(pair[0], credit.places), pair[1], credit.bit, budget, self.space.flag)
            if bag.full or self.space.stopped():
                raise SearchStopped
            if not self.keys.layout.idle:
                self._without_idle(bag, yes, no, question, budget)
        keys, costs, counts, total = bag.emptied()
        leaf = (key, label) if cost <= budget else None
        return CountedTrees(height, keys, costs, counts, total, budget, (leaf, parts))

    def _credits(self, rows: np.ndarray) -> dict[int, Credit]:
        """What questions add to keys if they represent all that separate the rows alike; empty if each counts as itself."""
        if not self.credited:
            return {}
        node = dp_node.prepare(self.space.instance.data, rows, self.mask, self.space.min_leaf, False, False)
        groups = alike_columns(node, self.space.questions.columns)
        return {question: self.keys.credit(columns) for question, columns in groups.items()}

    def _without_idle(self, bag: Bag, yes: np.ndarray, no: np.ndarray, question: int, budget: int) -> None:
        a = self.leaf(yes)
        b = self.leaf(no)
        if a[0] == b[0] and a[1] + b[1] <= budget:
            bag.put((a[2] + b[2]) | int(self.keys.layout.bits[question]), a[1] + b[1], -1)

    def _viable(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, budget: int
    ) -> list[tuple[int, tuple[int, int]]]:
        """Questions below which some tree is within the budget, with the least costs of (yes, no)."""
        known = None if self._base is None else self._base.memo.get((height, self._key(rows)))
        if known is not None and known.budget >= budget and known.opened is not None:
            lows = [(q, (int(yes.costs[0]), int(no.costs[0]))) for q, yes, no in known.parts]
            return [(q, low) for q, low in lows if sum(low) <= budget]
        given = (self.space.instance.data, rows, self.mask, self.space.min_leaf, self.reduce)
        questions, lower = count_node.viable_splits(
            given, height, self._costs, self._kept(path, height), budget, self.space.flag
        )
        if self.space.stopped():
            raise SearchStopped
        found = []
        scale = self.space.instance.scale
        root = self.space.root if path == () else None
        searched = {} if root is None else root.sides()
        for question, no, yes in zip(questions.tolist(), *lower.tolist(), strict=True):
            sums, exact = searched.get(question, ((0, 0), False))
            low = [max(no, sums[0] // scale), max(yes, sums[1] // scale)]
            # rounded apart, two bounds that are above the budget together may fall short of it by one
            if sum(low) > budget or sum(sums) >= (budget + 1) * scale:
                continue
            if height > 3 and not exact:
                low = self._least(rows, path, height, question, low, budget)
            if low[0] + low[1] <= budget:
                found.append((question, (low[1], low[0])))
        return found

    def _floors(self, path: tuple[int, ...]) -> np.ndarray:
        """What the search has found of each first question at a side of the root, in its integers; of length 0 where that is nothing."""
        root = self.space.root
        return NO_FLOORS if root is None or len(path) != 1 else root.floors(path[0])

    def _kept(self, path: tuple[int, ...] | None, height: int) -> PairCache:
        """The search's table of depth-two subtrees, where it is about the same questions and reaches this place."""
        search = self.space.search(NONE_BANNED, paths=True)
        suited = not self.banned and height == 3 and path is not None and len(path) == search.depth - 3
        literals = np.array(path if suited else (), np.int64)
        return PairCache(literals, search.binomials, search.table if suited else search.no_table)

    def _least(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, question: int, low: list[int], budget: int
    ) -> list[int]:
        """Least costs of (no, yes), or lower bounds whose sum is above the budget."""
        scale = self.space.instance.scale
        yes, no = self.space.split(rows, question)
        for s, side in ((0, no), (1, yes)):
            inner = literal(path, question, s == 1, self.space.questions.encoded)
            ub = (budget - low[1 - s] + 1) * scale
            known = self.space.solve(side, inner, height - 1, NONE_BANNED, ub)  # a bound that every filter shares
            if self.space.stopped():
                raise SearchStopped
            low[s] = max(low[s], known.lower // scale)
            if low[0] + low[1] > budget:
                break
        return low


class Bag:
    """A sparse list of trees by key that is being filled; counts are Python integers once 64 bits could not hold them."""

    def __init__(self, low: int) -> None:
        self.low = low
        self.total = 0
        self.bag: Any = kc.new_bag(64)
        self.large: dict[int, list[int]] | None = None  # key: cost, count

    def put(self, key: int, cost: int, count: int) -> None:
        """`count` more trees of a key."""
        self.total += count
        if self.large is None:
            self.bag = kc.add_count(self.bag, key, cost, count)
        else:
            self.large.setdefault(key, [cost, 0])[1] += count

    @property
    def full(self) -> bool:
        """Whether it holds more keys than there is room for."""
        return (self.bag[4] if self.large is None else len(self.large)) > KEY_ROOM

    def pairs(self, a: CountedTrees, b: CountedTrees, bit: int, budget: int, flag: np.ndarray) -> None:
        """All pairs of a tree of one list and one of the other, below a question; not all where the flag is up, or where it is full."""
        most = a.total * b.total
        if self.large is None and (
            self.total + most >= MOST_INT64 or a.counts.dtype == object or b.counts.dtype == object
        ):
            keys, costs, counts = kc.sorted_entries(self.bag)
            self.large = {int(k): [int(c), int(n)] for k, c, n in zip(keys, costs, counts, strict=True)}
        if self.large is None:
            one = kc.Trees(a.keys, a.costs, a.counts)
            other = kc.Trees(b.keys, b.costs, b.counts)
            self.bag = kc.combine(self.bag, one, other, bit, self.low, budget, KEY_ROOM, flag)
            self.total += most  # at least as many as there are
            return
        for ka, ca, na in zip(a.keys.tolist(), a.costs.tolist(), a.counts.tolist(), strict=True):
            for kb, cb, nb in zip(b.keys.tolist(), b.costs.tolist(), b.counts.tolist(), strict=True):
                if ca + cb > budget:
                    break
                key = ((ka & self.low) + (kb & self.low)) | ((ka | kb) & ~self.low) | bit
                self.large.setdefault(key, [ca + cb, 0])[1] += na * nb

    def emptied(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Keys, costs, counts ascending by cost, and the sum of the counts."""
        if self.large is None:
            keys, costs, counts = kc.sorted_entries(self.bag)
            return keys, costs, counts, int(counts.sum())
        rows = sorted((c, k, n) for k, (c, n) in self.large.items() if n)
        counts = np.array([n for _, _, n in rows], object)
        keys = np.array([k for _, k, _ in rows], np.int64)
        return keys, np.array([c for c, _, _ in rows], np.int64), counts, sum(n for _, _, n in rows)


def accepted(entry: CountedTrees, keys: Keys, limit: int) -> list[tuple[int, int, int]]:
    """(cost, key, count) of the keys within the limit that pass the filters, ascending by cost."""
    costs, held, counts = _accepted(entry, keys, limit)
    return list(zip(costs.tolist(), held.tolist(), counts.tolist(), strict=True))


def accepted_number(entry: CountedTrees, keys: Keys, limit: int) -> int:
    """How many trees the keys of `accepted` have."""
    return int(_accepted(entry, keys, limit)[2].sum())


def _accepted(entry: CountedTrees, keys: Keys, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    passes = (entry.costs <= limit) & keys.admitted(entry.keys)
    return entry.costs[passes], entry.keys[passes], entry.counts[passes]


def _shifted(entry: CountedTrees, places: int) -> CountedTrees:
    """The same trees with something added to their keys."""
    return replace(entry, keys=entry.keys + places) if places else entry


def _part(bag: Bag, height: int, budget: int) -> CountedTrees:
    keys, costs, counts, total = bag.emptied()
    return CountedTrees(height, keys, costs, counts, total, budget)


def first_counts(counter: Counter, entry: CountedTrees, limit: int) -> dict[int, int]:
    """How many of the accepted trees ask each question first; the tree of one leaf asks none."""
    out: dict[int, int] = {}
    for question, yes, no in _root_parts(counter, entry, limit):
        bag = Bag(int(counter.keys.layout.low))
        bag.pairs(yes, no, int(counter.keys.layout.bits[question]), limit, counter.space.flag)
        if not counter.keys.layout.idle:
            sides = counter.space.split(counter.space.all_rows, question)
            counter._without_idle(bag, sides[0], sides[1], question, limit)
        number = accepted_number(_part(bag, entry.height, limit), counter.keys, limit)
        if number:
            out[question] = number
    return out


def _root_parts(counter: Counter, entry: CountedTrees, limit: int) -> Sequence[tuple[int, CountedTrees, CountedTrees]]:
    if entry.height > 2:
        return entry.parts
    parts = []
    rows = counter.space.all_rows
    if entry.height:
        for question in counter.node(rows).features.tolist():
            sides = counter.space.split(rows, question)
            below = [counter.entry(side, None, entry.height - 1, limit) for side in sides]
            parts.append((question, below[0], below[1]))
    return parts
