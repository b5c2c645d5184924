"""Count all trees up to a cost, N(D, h, c), as exact integers.

The budget of a subproblem is the limit less the least cost of the rest of the tree; trees above it are not counted. The budget depends
on the path to a subproblem. A cached list states the budget up to which it is complete.
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
MAX_CACHED_KEYS = 1 << 26  # limit on the keys of all cached lists together, about 24 bytes each


@dataclass
class CountedTrees:
    """The trees of a subproblem by key, ascending by cost, complete up to `budget`."""

    height: int
    keys: np.ndarray
    costs: np.ndarray
    counts: np.ndarray  # int64, or Python integers if they need more than 64 bits
    total: int
    budget: int
    # set above two levels: key and class of a single leaf that is cheap enough, and the pairs below each split
    opened: PlaceParts | None = None
    open: Callable[[], PlaceParts] | None = None
    choices: dict[int, Any] | None = None  # filled by `Lister`
    ranges: KeyUsage | None = None

    @property
    def leaf(self) -> tuple[int, int] | None:
        """Key and class of the single leaf, if it is cheap enough."""
        return self._parts()[0]

    @property
    def parts(self) -> list[tuple[int, CountedTrees, CountedTrees]]:
        """The pairs below each split (question, yes, no), counted at the first access. Raises SearchStopped."""
        return self._parts()[1]

    def _parts(self) -> PlaceParts:
        if self.opened is None:
            self.opened = (None, []) if self.open is None else self.open()
        return self.opened


PlaceParts = tuple[tuple[int, int] | None, list[tuple[int, CountedTrees, CountedTrees]]]


class Counter:
    """Counts the trees of a space by key up to a limit.

    `reduce`: count splits that separate the rows of a subproblem alike once. `base`: a count of a superset with the same filters, whose
    entries show the splits that have trees.
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
        # the kernel for two levels merges alike splits only at the upper node, so with `reduce` it counts a single
        # level
        self.counted = 1 if reduce else 2
        self.keys = Keys(space, self.filters, idle=idle, alike=reduce)
        # a split counts for all columns whose splits separate the rows alike
        self.credited = reduce and bool(self.filters.must)
        self.kinds = self.keys.kinds
        self.held_keys = 0  # number of keys in all cached lists
        self.banned = self.filters.without
        self.mask = space.mask(self.banned)
        self.similar = space.min_leaf <= 1
        self.partial = 0  # number of accepted trees when the count was stopped
        self.memo: dict[tuple[int, bytes], CountedTrees] = {}
        g = space.instance
        self._costs = np.array([g.Q, g.P, space.min_leaf, self.similar, g.scale], np.int64)
        self._base = base

    def root(self, limit: int) -> CountedTrees:
        """Count all trees with Q errors + P leaves ≤ limit. Raises SearchStopped."""
        return self.entry(self.space.all_rows, (), self.space.depth, limit)

    def entry(self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, budget: int) -> CountedTrees:
        """Return the trees of a subproblem up to its budget."""
        key = (height, self._key(rows))
        cached = self.memo.get(key)
        if cached is not None and cached.budget >= budget:
            return cached
        if self.space.stopped():
            raise SearchStopped
        entry = self._count(rows, path, height, budget)
        self.memo[key] = entry
        self.held_keys += len(entry.keys) - (0 if cached is None else len(cached.keys))
        if self.held_keys > MAX_CACHED_KEYS:
            raise SearchStopped
        return entry

    def _count(self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, budget: int) -> CountedTrees:
        if height <= self.counted and not (height and self.credited):
            return self._small(rows, height, budget)
        if height == 3 and path and self._plain:
            entry = self._count_height3(rows, path, budget)
            if entry is not None:
                return entry
        return self._large(rows, path, height, budget)

    @property
    def _plain(self) -> bool:
        """Whether rows are counted by class, and every split by itself."""
        return self.keys.layout.idle and not self.reduce and self.kinds.places is None

    def _count_height3(self, rows: np.ndarray, path: tuple[int, ...], budget: int) -> CountedTrees | None:
        """Count height three in one kernel call, its pairs at their first access; return None if counts may exceed 64 bits."""
        keys, costs, counts, most = count_node.count_depth3(
            self.subproblem(rows),
            self._costs,
            self._pair_cache(path, 3),
            self._floors(path),
            self.keys.layout,
            budget,
            MAX_CACHED_KEYS,
            self.space.flag,
        )
        if len(keys) > MAX_CACHED_KEYS or self.space.stopped():
            raise SearchStopped
        if most >= MOST_INT64:
            return None
        entry = CountedTrees(3, keys, costs, counts, int(counts.sum()), budget)
        entry.open = self._opener(rows, path, budget)
        return entry

    def _opener(self, rows: np.ndarray, path: tuple[int, ...], budget: int) -> Callable[[], PlaceParts]:
        """Return a function that counts the pairs of a subproblem of height three; a weak reference avoids a cycle."""
        reference = weakref.ref(self)

        def count_parts() -> PlaceParts:
            counter = reference()
            assert counter is not None
            return counter._large(rows, path, 3, budget)._parts()

        return count_parts

    def _key(self, rows: np.ndarray) -> bytes:
        return members(rows, len(self.space.instance.rows)).tobytes()

    def node(self, rows: np.ndarray) -> dp_node.NodeView:
        """Return the node of some rows with every split that separates them, and counts by class."""
        return dp_node.prepare(self.space.instance.data, rows, self.mask, self.space.min_leaf, self.reduce, False)

    def kinds_node(self, rows: np.ndarray) -> dp_node.NodeView:
        """Return the same node with counts by kind."""
        return self.kinds.node(rows, self.mask, self.space.min_leaf, self.reduce)

    def subproblem(self, rows: np.ndarray) -> tuple[dp_node.DataRows, np.ndarray, np.ndarray, int, bool]:
        """Return the arguments of kernels that count some rows by kind."""
        return self.kinds.subproblem(rows, self.mask, self.space.min_leaf, self.reduce)

    def pairs(self, node: dp_node.NodeView) -> np.ndarray:
        """Return the pair counts of a node, int32 (classes or kinds, p, p)."""
        m = len(node.features)
        P = np.empty((len(node.totals), m, m), np.int32)
        dp_node.pair_counts(node, P)
        return P

    def leaf(self, rows: np.ndarray) -> tuple[int, int, int]:
        """Return the predicted class, the cost and the key of a leaf that holds `rows`.

        The cost is INFINITE_COST if the filters exclude the leaf.
        """
        label, cost, key = kc.evaluate_leaf(self.kinds.counts(rows), self.keys.layout)
        return int(label), int(cost), int(key)

    def _small(self, rows: np.ndarray, height: int, budget: int) -> CountedTrees:
        keys, costs, counts = count_node.count_rows(self.subproblem(rows), height, self.keys.layout, budget)
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
                    self.partial = accepted_number(entry_of_bag(bag, height, budget), self.keys, budget)
                raise
            if not len(pair[0].keys) or not len(pair[1].keys):
                continue
            parts.append((question, pair[0], pair[1]))
            credit = credits.get(question) or Credit(int(self.keys.layout.bits[question]), 0)
            bag.pairs(_shift_keys(pair[0], credit.places), pair[1], credit.bit, budget, self.space.flag)
            if bag.full or self.space.stopped():
                raise SearchStopped
            if not self.keys.layout.idle:
                self._without_idle(bag, yes, no, question, budget)
        keys, costs, counts, total = bag.sorted_entries()
        leaf = (key, label) if cost <= budget else None
        return CountedTrees(height, keys, costs, counts, total, budget, (leaf, parts))

    def _credits(self, rows: np.ndarray) -> dict[int, Credit]:
        """Return the parts in keys of splits that represent all that separate the rows alike; empty if each counts by itself."""
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
        """Return the splits with some tree within the budget, each with the least costs of (yes, no)."""
        base_entry = None if self._base is None else self._base.memo.get((height, self._key(rows)))
        if base_entry is not None and base_entry.budget >= budget and base_entry.opened is not None:
            lows = [(q, (int(yes.costs[0]), int(no.costs[0]))) for q, yes, no in base_entry.parts]
            return [(q, low) for q, low in lows if sum(low) <= budget]
        subproblem = (self.space.instance.data, rows, self.mask, self.space.min_leaf, self.reduce)
        questions, lower = count_node.viable_splits(
            subproblem, height, self._costs, self._pair_cache(path, height), budget, self.space.flag
        )
        if self.space.stopped():
            raise SearchStopped
        splits = []
        scale = self.space.instance.scale
        root = self.space.root if path == () else None
        root_bounds = {} if root is None else root.sides()
        for question, no, yes in zip(questions.tolist(), *lower.tolist(), strict=True):
            sums, exact = root_bounds.get(question, ((0, 0), False))
            low = [max(no, sums[0] // scale), max(yes, sums[1] // scale)]
            # rounding each bound may lower their sum by one, so test the exact sum, too
            if sum(low) > budget or sum(sums) >= (budget + 1) * scale:
                continue
            if height > 3 and not exact:
                low = self._least(rows, path, height, question, low, budget)
            if low[0] + low[1] <= budget:
                splits.append((question, (low[1], low[0])))
        return splits

    def _floors(self, path: tuple[int, ...]) -> np.ndarray:
        """Return the search's lower bounds for a child of the root by root split, in its integers; of length 0 if there are none."""
        root = self.space.root
        return NO_FLOORS if root is None or len(path) != 1 else root.floors(path[0])

    def _pair_cache(self, path: tuple[int, ...] | None, height: int) -> PairCache:
        """Return the search's cache of depth-two subtrees if it has the same splits and this depth, else an empty one."""
        search = self.space.search(NONE_BANNED, paths=True)
        suited = not self.banned and height == 3 and path is not None and len(path) == search.depth - 3
        literals = np.array(path if suited else (), np.int64)
        return PairCache(literals, search.binomials, search.table if suited else search.no_table)

    def _least(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, question: int, low: list[int], budget: int
    ) -> list[int]:
        """Return the least costs of (no, yes), or lower bounds whose sum is above the budget."""
        scale = self.space.instance.scale
        yes, no = self.space.split(rows, question)
        for s, side in ((0, no), (1, yes)):
            inner = literal(path, question, s == 1, self.space.questions.encoded)
            ub = (budget - low[1 - s] + 1) * scale
            # this search ignores the filters, so its bound holds for every set of filters
            bound = self.space.solve(side, inner, height - 1, NONE_BANNED, ub)
            if self.space.stopped():
                raise SearchStopped
            low[s] = max(low[s], bound.lower // scale)
            if low[0] + low[1] > budget:
                break
        return low


class Bag:
    """A growing sparse list of trees by key; counts become Python integers once they may exceed 64 bits."""

    def __init__(self, low: int) -> None:
        self.low = low
        self.total = 0
        self.bag: Any = kc.new_bag(64)
        self.large: dict[int, list[int]] | None = None  # maps a key to its cost and count

    def put(self, key: int, cost: int, count: int) -> None:
        """Add `count` trees of a key."""
        self.total += count
        if self.large is None:
            self.bag = kc.add_count(self.bag, key, cost, count)
        else:
            self.large.setdefault(key, [cost, 0])[1] += count

    @property
    def full(self) -> bool:
        """Whether it has more than MAX_CACHED_KEYS keys."""
        return (self.bag[4] if self.large is None else len(self.large)) > MAX_CACHED_KEYS

    def pairs(self, a: CountedTrees, b: CountedTrees, bit: int, budget: int, flag: np.ndarray) -> None:
        """Add all pairs of a tree of `a` and a tree of `b` below a split; stop early if the flag is set or the bag is full."""
        products = a.total * b.total
        if self.large is None and (
            self.total + products >= MOST_INT64 or a.counts.dtype == object or b.counts.dtype == object
        ):
            keys, costs, counts = kc.sorted_entries(self.bag)
            self.large = {int(k): [int(c), int(n)] for k, c, n in zip(keys, costs, counts, strict=True)}
        if self.large is None:
            one = kc.Trees(a.keys, a.costs, a.counts)
            other = kc.Trees(b.keys, b.costs, b.counts)
            self.bag = kc.combine(self.bag, one, other, bit, self.low, budget, MAX_CACHED_KEYS, flag)
            self.total += products  # an upper bound, since pairs above the budget are not added
            return
        for ka, ca, na in zip(a.keys.tolist(), a.costs.tolist(), a.counts.tolist(), strict=True):
            for kb, cb, nb in zip(b.keys.tolist(), b.costs.tolist(), b.counts.tolist(), strict=True):
                if ca + cb > budget:
                    break
                key = ((ka & self.low) + (kb & self.low)) | ((ka | kb) & ~self.low) | bit
                self.large.setdefault(key, [ca + cb, 0])[1] += na * nb

    def sorted_entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return keys, costs, counts ascending by cost, and the sum of the counts."""
        if self.large is None:
            keys, costs, counts = kc.sorted_entries(self.bag)
            return keys, costs, counts, int(counts.sum())
        rows = sorted((c, k, n) for k, (c, n) in self.large.items() if n)
        counts = np.array([n for _, _, n in rows], object)
        keys = np.array([k for _, k, _ in rows], np.int64)
        return keys, np.array([c for c, _, _ in rows], np.int64), counts, sum(n for _, _, n in rows)


def accepted_levels(entry: CountedTrees, keys: Keys, limit: int) -> list[tuple[int, int, int]]:
    """Return (cost, key, count) of the keys within the limit that pass the filters, ascending by cost."""
    costs, accepted_keys, counts = _accepted_entries(entry, keys, limit)
    return list(zip(costs.tolist(), accepted_keys.tolist(), counts.tolist(), strict=True))


def accepted_number(entry: CountedTrees, keys: Keys, limit: int) -> int:
    """Return the number of trees of `accepted_levels`."""
    return int(_accepted_entries(entry, keys, limit)[2].sum())


def _accepted_entries(entry: CountedTrees, keys: Keys, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    passes = (entry.costs <= limit) & keys.passes(entry.keys)
    return entry.costs[passes], entry.keys[passes], entry.counts[passes]


def _shift_keys(entry: CountedTrees, places: int) -> CountedTrees:
    """Return the trees with `places` added to their keys."""
    return replace(entry, keys=entry.keys + places) if places else entry


def entry_of_bag(bag: Bag, height: int, budget: int) -> CountedTrees:
    keys, costs, counts, total = bag.sorted_entries()
    return CountedTrees(height, keys, costs, counts, total, budget)


def first_counts(counter: Counter, entry: CountedTrees, limit: int) -> dict[int, int]:
    """Count the accepted trees by root split; the tree of one leaf has none."""
    out: dict[int, int] = {}
    for question, yes, no in root_parts(counter, entry, limit):
        bag = Bag(int(counter.keys.layout.low))
        bag.pairs(yes, no, int(counter.keys.layout.bits[question]), limit, counter.space.flag)
        if not counter.keys.layout.idle:
            sides = counter.space.split(counter.space.all_rows, question)
            counter._without_idle(bag, sides[0], sides[1], question, limit)
        number = accepted_number(entry_of_bag(bag, entry.height, limit), counter.keys, limit)
        if number:
            out[question] = number
    return out


def root_parts(counter: Counter, entry: CountedTrees, limit: int) -> Sequence[tuple[int, CountedTrees, CountedTrees]]:
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
