"""Define filters of good trees, and the keys that they read.

A key is a number with one digit for each amount, summed over the leaves. The amounts are leaves, errors (of each class, if recalls
are filtered), and for each group the rows with the favoured prediction. Columns that a tree must test have higher bits, which are
joined by "or" instead of added.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from trainer.editing.space import NONE_BANNED
from trainer.errors import ParameterError
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.kernels import count as kc
from trainer.families.exact.rashomon.alike import Credit, required_sets
from trainer.families.exact.rashomon.kinds import ANY, answers_of, kinds_of

KEY_BITS = 62


@dataclass(frozen=True, kw_only=True)
class RateFilter:
    """Between groups, the shares of rows with the prediction `favoured` differ by at most `most`.

    `groups`: of each row of the table, from 0. `among`: whether only rows of the class `favoured` count (equal opportunity); else all
    rows do (statistical parity). Groups without such rows are not compared.
    """

    groups: np.ndarray
    favoured: int
    among: bool
    most: Fraction


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of good trees: required and excluded columns, most leaves, minimum recalls by class code, rates.

    `answers`: (row of the table, class) pairs that a tree must predict.
    """

    must: tuple[int, ...] = ()
    without: frozenset[int] = NONE_BANNED
    max_leaves: int | None = None
    recalls: tuple[tuple[int, Fraction], ...] = ()
    rates: RateFilter | None = None
    answers: tuple[tuple[int, int], ...] = ()


class Keys:
    """The layout of the keys that some filters need.

    alike: whether one split represents all that separate the rows of a subproblem alike (see `rashomon.alike`).
    """

    def __init__(self, space: ExactSpace, filters: Filters, *, idle: bool, alike: bool = False) -> None:
        self.space = space
        self.filters = filters
        self.required = required_sets(len(filters.must)) if alike else []
        g = space.instance
        rates = filters.rates
        groups = None if rates is None else np.asarray(rates.groups)[space.origin]
        answers = answers_of(space.problem, space.origin, dict(filters.answers)) if filters.answers else None
        self.kinds = kinds_of(g, groups, answers)
        self.totals = [int(v) for v in space.counts(space.all_rows)]
        limited = filters.max_leaves is not None or bool(filters.recalls) or rates is not None
        self.detailed = limited or bool(self.required)
        self.sizes = self._sizes() if self.detailed else []
        self.digits = [math.prod(self.sizes[:t]) for t in range(len(self.sizes))]
        bits = len(filters.must)
        room = math.prod(self.sizes) if self.detailed else 1 << (KEY_BITS - bits)
        if room.bit_length() + bits > KEY_BITS + 1:
            words = "there are too many classes, groups, rows and columns for these filters together. Leave out recalls, groups or columns."
            raise ParameterError({"filters": words})
        shift = KEY_BITS - bits
        marks = {column: 1 << (shift + j) for j, column in enumerate(filters.must)}
        encoded = space.questions.columns[: space.questions.encoded]
        self.wanted = sum(marks.values())
        kinds = self.kinds
        self.layout = kc.KeyLayout(
            unit=g.Q,
            leaf=g.P,
            ends=np.searchsorted(kinds.classes, np.arange(g.n_classes), side="right").astype(np.int64),
            row_keys=self._row_keys(),
            barred=self._barred_kinds(),
            leaf_key=1 if self.detailed else g.P,
            low=(1 << shift) - 1,
            bits=np.array([marks.get(c, 0) for c in encoded], np.int64).reshape(-1),
            idle=idle,
        )

    # -- digits --------------------------------------------------------------------------------------------------------

    def _sizes(self) -> list[int]:
        """Return the number of values of each amount: leaves, errors (of each class with recalls), favoured rows by group."""
        errors = self.totals if self.filters.recalls else [sum(self.totals)]
        amounts = [(1 << self.space.depth) + 1, *(total + 1 for total in errors), *(n + 1 for n in self.group_sizes)]
        return amounts + [1 << self.space.depth] * len(self.required)

    def credit(self, columns: set[int]) -> Credit:
        """Return the bits and digits of a key that say which required columns a split on these columns covers."""
        positions = {j for j, column in enumerate(self.filters.must) if column in columns}
        bit = sum(1 << (KEY_BITS - len(self.filters.must) + j) for j in positions)
        digits = self.digits[len(self.sizes) - len(self.required) :]
        return Credit(bit, sum(digit for digit, some in zip(digits, self.required, strict=True) if some & positions))

    @cached_property
    def group_sizes(self) -> list[int]:
        """The weight of the compared rows of each group."""
        rates = self.filters.rates
        if rates is None:
            return []
        totals = self.kinds.counts(self.space.all_rows)
        is_compared = self.kinds.classes == rates.favoured if rates.among else np.ones(len(totals), bool)
        number = int(np.max(rates.groups)) + 1
        return [int(totals[is_compared & (self.kinds.groups == group)].sum()) for group in range(number)]

    def _row_keys(self) -> np.ndarray:
        """Return the key of one row of each kind in a leaf of each class, int64 (classes, kinds)."""
        g = self.space.instance
        kinds = self.kinds
        rates = self.filters.rates
        out = np.zeros((g.n_classes, len(kinds.classes)), np.int64)
        for k in range(g.n_classes):
            for v, actual in enumerate(kinds.classes.tolist()):
                if actual != k:
                    out[k, v] += self._error_key(actual)
                if rates is not None and k == rates.favoured and (not rates.among or actual == k):
                    out[k, v] += self.digits[self._first_group + int(kinds.groups[v])]
        return out

    def _error_key(self, actual: int) -> int:
        if not self.detailed:
            return int(self.space.instance.Q)
        return self.digits[1 + actual if self.filters.recalls else 1]

    @property
    def _first_group(self) -> int:
        return 1 + (len(self.totals) if self.filters.recalls else 1)

    def _barred_kinds(self) -> np.ndarray:
        answers = self.kinds.answers
        wrong = (answers != ANY) & (answers != np.arange(self.space.instance.n_classes)[:, None])
        return np.ascontiguousarray(wrong.astype(np.uint8))

    # -- filtering -----------------------------------------------------------------------------------------------------

    def amounts(self, keys: np.ndarray) -> list[np.ndarray]:
        """Return leaves, errors, favoured rows and places of required columns of detailed keys, int64 each."""
        digits = keys & np.int64(self.layout.low)
        out = []
        for size in self.sizes:
            digits, amount = np.divmod(digits, np.int64(size))
            out.append(amount)
        return out

    def passes(self, keys: np.ndarray) -> np.ndarray:
        """Return whether the trees of each key pass the filters, bool; there may be millions of keys."""
        is_accepted = keys & np.int64(self.wanted) == self.wanted
        if not self.detailed:
            return is_accepted
        f = self.filters
        amounts = self.amounts(keys)
        if f.max_leaves is not None:
            is_accepted &= amounts[0] <= f.max_leaves
        for k, share in f.recalls:
            is_accepted &= amounts[1 + k] <= self.totals[k] - math.ceil(share * self.totals[k])
        for place, some in enumerate(self.required, start=len(self.sizes) - len(self.required)):
            is_accepted &= amounts[place] >= len(some)
        if f.rates is not None:
            sizes = [(place, n) for place, n in enumerate(self.group_sizes, start=self._first_group) if n]
            for (a, m), (b, n) in itertools.permutations(sizes, 2):
                # this is a/m - b/n ≤ most, multiplied by both denominators to stay in integers
                is_accepted &= amounts[a] * n - amounts[b] * m <= math.floor(f.rates.most * m * n)
        return is_accepted
