"""Enumerate counted trees, sample them, and count their different predictions.

The enumeration follows the counts from the root. Each tree of a key belongs to the leaf or to one pair of children below a split.
So no branch of the enumeration is empty, and sampling is uniform.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import numpy as np

from trainer.editing.space import SearchStopped
from trainer.families.exact.kernels import count as kc
from trainer.families.exact.kernels.count_node import options_of_rows
from trainer.families.exact.rashomon.count import CountedTrees, Counter
from trainer.tree.shapes import Shape

Options = dict[int, tuple[int, list[Shape]]]  # of a child, by key: the cost and the trees

WORD = (1 << 64) - 1


class ListTooLong(Exception):
    """The list is longer than allowed."""


@dataclass(frozen=True)
class SidePair:
    """Trees (question, yes, no) whose children have these keys; children of `flat` pairs are listed as shapes."""

    weight: int
    question: int
    yes: tuple[CountedTrees, int] | tuple[Shape, ...]
    no: tuple[CountedTrees, int] | tuple[Shape, ...]
    flat: bool
    idle: bool = True  # whether both sides may be leaves

    @property
    def entries(self) -> tuple[tuple[CountedTrees, int], tuple[CountedTrees, int]]:
        """Entries and keys of yes and no, for pairs that are not flat."""
        return cast("tuple[tuple[CountedTrees, int], tuple[CountedTrees, int]]", (self.yes, self.no))

    @property
    def shapes(self) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
        """Subtrees of yes and no, for flat pairs."""
        return cast("tuple[tuple[Shape, ...], tuple[Shape, ...]]", (self.yes, self.no))


class Lister:
    """Lists the trees of a counter by key, as (question, yes, no) with None for a leaf."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.space = counter.space
        self.low = int(counter.keys.layout.low)

    # -- the choices of a subproblem -----------------------------------------------------------------------------------

    def choices(self, entry: CountedTrees, rows: np.ndarray) -> dict[int, list[SidePair | None]]:
        """Return the choices at the root by key: None for a leaf, or pairs below a split. Raises SearchStopped."""
        if entry.choices is None:
            entry.choices = {}
            try:
                if entry.height <= 2:
                    self._expand_small(entry, rows)
                else:
                    self._expand(entry, rows)
            except SearchStopped:
                entry.choices = None
                raise
        return entry.choices

    def _join_keys(self, a: int, b: int, question: int) -> int:
        bit = int(self.counter.keys.layout.bits[question])
        return ((a & self.low) + (b & self.low)) | ((a | b) & ~self.low) | bit

    def _add(self, entry: CountedTrees, key: int, choice: SidePair | None) -> None:
        assert entry.choices is not None
        entry.choices.setdefault(key, []).append(choice)

    def _expand(self, entry: CountedTrees, rows: np.ndarray) -> None:
        if entry.leaf is not None:
            self._add(entry, entry.leaf[0], None)
        keys = set(entry.keys.tolist())
        for question, yes, no in entry.parts:
            mixed = self._leaf_pair(rows, question)
            ys = list(zip(yes.keys.tolist(), yes.costs.tolist(), yes.counts.tolist(), strict=True))
            ns = list(zip(no.keys.tolist(), no.costs.tolist(), no.counts.tolist(), strict=True))
            for ky, cy, ny in ys:
                if self.space.stopped():
                    raise SearchStopped
                for kn, cn, nn in ns:
                    if cy + cn > entry.budget:
                        break
                    key = self._join_keys(ky, kn, question)
                    idle = mixed is None or (ky, kn) != mixed
                    weight = ny * nn - (not idle)
                    if key in keys and weight:
                        self._add(entry, key, SidePair(weight, question, (yes, ky), (no, kn), False, idle))

    def _leaf_pair(self, rows: np.ndarray, question: int) -> tuple[int, int] | None:
        """Return the keys of both leaves below a split if they predict alike and idle splits are excluded."""
        if self.counter.keys.layout.idle:
            return None
        yes, no = (self.counter.leaf(side) for side in self.space.split(rows, question))
        return (yes[2], no[2]) if yes[0] == no[0] and max(yes[1], no[1]) < kc.INFINITE_COST else None

    def _expand_small(self, entry: CountedTrees, rows: np.ndarray) -> None:
        _, cost, key = self.counter.leaf(rows)
        if cost <= entry.budget:
            self._add(entry, key, None)
        keys = set(entry.keys.tolist())
        for question, sides in self.options(entry, rows).items():
            mixed = self._leaf_pair(rows, question)
            for ky, (cy, yes) in sides[1].items():
                for kn, (cn, no) in sides[0].items():
                    key = self._join_keys(ky, kn, question)
                    if cy + cn > entry.budget or key not in keys:
                        continue
                    idle = mixed is None or None not in yes or None not in no
                    weight = len(yes) * len(no) - (not idle)
                    if weight:
                        self._add(entry, key, SidePair(weight, question, tuple(yes), tuple(no), True, idle))

    def options(self, entry: CountedTrees, rows: np.ndarray) -> dict[int, tuple[Options, Options]]:
        """Return by split the subtrees of its children (no, yes) by key, with their cost; for a height of at most two."""
        if not entry.height:
            return {}
        rows_of_options, features = options_of_rows(
            self.counter.subproblem(rows), entry.height, self.counter.keys.layout, entry.budget
        )
        names = features.tolist()
        m = len(features)
        out: dict[int, tuple[Options, Options]] = {}
        for f, s, g, key, cost in rows_of_options.tolist():
            sides = out.setdefault(names[f], ({}, {}))
            part: Shape = None if g == m else (names[g], None, None)
            sides[s].setdefault(key, (cost, []))[1].append(part)
        return out

    # -- enumeration ---------------------------------------------------------------------------------------------------

    def trees(self, entry: CountedTrees, rows: np.ndarray, key: int) -> Iterator[Shape]:
        """Yield every tree of a key."""
        for choice in self.choices(entry, rows).get(key, ()):
            if choice is None:
                yield None
                continue
            yes_rows, no_rows = self.space.split(rows, choice.question)
            for yes in self._side(choice.yes, yes_rows, choice.flat):
                for no in self._side(choice.no, no_rows, choice.flat):
                    if choice.idle or yes is not None or no is not None:
                        yield choice.question, yes, no

    def _side(self, side: tuple[Any, ...], rows: np.ndarray, flat: bool) -> Iterator[Shape]:
        return iter(side) if flat else self.trees(side[0], rows, side[1])

    # -- sampling ------------------------------------------------------------------------------------------------------

    def draw(self, entry: CountedTrees, rows: np.ndarray, key: int, random: Random) -> Shape:
        """Draw a tree of a key uniformly."""
        choices = self.choices(entry, rows)[key]
        ends = list(itertools.accumulate(1 if c is None else c.weight for c in choices))
        choice = choices[bisect.bisect_right(ends, random.randrange(ends[-1]))]
        if choice is None:
            return None
        yes_rows, no_rows = self.space.split(rows, choice.question)
        while True:
            yes = self._draw_side(choice.yes, yes_rows, choice.flat, random)
            no = self._draw_side(choice.no, no_rows, choice.flat, random)
            if choice.idle or yes is not None or no is not None:
                return choice.question, yes, no

    def _draw_side(self, side: tuple[Any, ...], rows: np.ndarray, flat: bool, random: Random) -> Shape:
        return side[random.randrange(len(side))] if flat else self.draw(side[0], rows, side[1], random)


class AnswerVectors:
    """Counts different prediction vectors by hashes: sums of random numbers, 128 bits for each row and class."""

    def __init__(self, lister: Lister, *, most: int) -> None:
        self.lister = lister
        self.counter = lister.counter
        self.space = lister.space
        g = self.space.instance
        draws = np.random.default_rng(20230711).integers(0, 1 << 64, (2, len(g.rows), g.n_classes), np.uint64)
        self.high, self.low = draws
        self.left = most
        self.memo: dict[int, dict[int, set[int]]] = {}

    def of(self, entry: CountedTrees, rows: np.ndarray) -> dict[int, set[int]]:
        """Return the hashes of the trees' predictions by key. Raises ListTooLong."""
        if id(entry) not in self.memo:
            self.memo[id(entry)] = self._small(entry, rows) if entry.height <= 2 else self._large(entry, rows)
        return self.memo[id(entry)]

    def _leaf(self, rows: np.ndarray) -> int:
        k = int(self.space.counts(rows).argmax())
        return int(self.high[rows, k].sum(dtype=np.uint64)) << 64 | int(self.low[rows, k].sum(dtype=np.uint64))

    def _large(self, entry: CountedTrees, rows: np.ndarray) -> dict[int, set[int]]:
        out: dict[int, set[int]] = {key: set() for key in entry.keys.tolist()}
        if entry.leaf is not None:
            out[entry.leaf[0]].add(self._leaf(rows))
        for question, yes, no in entry.parts:
            sides = self.space.split(rows, question)
            ys = self.of(yes, sides[0])
            ns = self.of(no, sides[1])
            self._join(out, question, ys, ns)
        return out

    def _join(self, out: dict[int, set[int]], question: int, ys: dict[int, set[int]], ns: dict[int, set[int]]) -> None:
        for ky, a in ys.items():
            for kn, b in ns.items():
                key = self.lister._join_keys(ky, kn, question)
                if key in out:
                    self.left -= len(a) * len(b)
                    if self.left < 0 or self.space.stopped():
                        raise ListTooLong
                    out[key].update(_sum(x, y) for x in a for y in b)

    def _small(self, entry: CountedTrees, rows: np.ndarray) -> dict[int, set[int]]:
        out: dict[int, set[int]] = {key: set() for key in entry.keys.tolist()}
        _, cost, key = self.counter.leaf(rows)
        if cost <= entry.budget and key in out:
            out[key].add(self._leaf(rows))
        for question, sides in self.lister.options(entry, rows).items():
            yes, no = self.space.split(rows, question)
            ys = {k: self._parts(parts, yes) for k, (_, parts) in sides[1].items()}
            ns = {k: self._parts(parts, no) for k, (_, parts) in sides[0].items()}
            self._join(out, question, ys, ns)
        return out

    def _parts(self, parts: list[Shape], rows: np.ndarray) -> set[int]:
        out = set()
        for part in parts:
            if part is None:
                out.add(self._leaf(rows))
            else:
                yes, no = self.space.split(rows, part[0])
                out.add(_sum(self._leaf(yes), self._leaf(no)))
        return out


def _sum(a: int, b: int) -> int:
    return ((a >> 64) + (b >> 64) & WORD) << 64 | (a + b & WORD)
