"""What each answer costs in each row: a matrix of true classes and answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.errors import ParameterError
from trainer.table import Table

MOST_COPIES = 1 << 28  # total weight of the copies: what the counts of all searches can hold
MOST_COST = 1 << 61  # a sum of costs, in steps
FINEST_STEP = -18  # as a power of ten
COARSEST_STEP = 30
EACH_ROW = "rows"  # the text of the parameter `costs` where an array gives the costs of each row


@dataclass(frozen=True, kw_only=True)
class CostTerm:
    """The cost of one answer for one true class: a number, or a column of the table times it."""

    factor: Fraction
    column: str | None = None

    def __str__(self) -> str:
        number = _decimal(self.factor)
        return number if self.column is None else f"{number}*{self.column}"


@dataclass(frozen=True, kw_only=True)
class CostTable:
    """Costs by true class and answer, both in the order of the classes, in a unit such as EUR.

    `terms` is empty if each row has costs of its own.
    """

    classes: tuple[str, ...]
    terms: tuple[tuple[CostTerm, ...], ...]
    unit: str = ""

    @property
    def each_row(self) -> bool:
        """Whether each row has costs of its own."""
        return not self.terms

    def to_json(self) -> dict[str, dict[str, str]]:
        """Return each cost as text, first by true class, then by answer."""
        return {
            true: {answer: str(term) for answer, term in zip(self.classes, row, strict=True)}
            for true, row in zip(self.classes, self.terms, strict=not self.each_row)
        }


class CostBlock(NamedTuple):
    """The costs of one answer in some rows: `levels[place]`, exact, in the unit."""

    rows: CountArray
    answer: int
    levels: list[Fraction]
    place: CountArray


@dataclass(frozen=True, kw_only=True)
class RowCosts:
    """What each answer costs in each row of a table, as integers.

    Parameters
    ----------
    values : int64 array of shape (n_rows, n_classes)
        Costs in multiples of `step`, without the weight of the row.
    weights : int64 array of shape (n_rows,)
        Weights of the rows.
    step : Fraction
        One unit of `values`, in the unit of the costs.
    error : float
        The total cost of any tree changes by at most this much through rounding, in the unit of the costs.
    matrix : CostTable
        The costs as they were given.
    given : float64 array of shape (n_rows, n_classes), optional
        The costs of each row as they were given, where each row has its own.
    even : bool
        Whether the copies of each row weigh the same together, so that the weight of a leaf counts its rows.
    """

    values: CountArray
    weights: CountArray
    step: Fraction
    error: float
    matrix: CostTable
    given: FloatArray | None = None
    even: bool = False

    @property
    def weighted(self) -> CountArray:
        """The costs times the weights of the rows, int64 (rows, classes)."""
        found: CountArray = self.values * self.weights[:, None]
        return found

    @property
    def copies(self) -> CountArray:
        """The weight of the copy of each row and answer, int64 (rows, classes): what the answer saves against the dearest one.

        The weights have no common divisor. Where they are `even`, savings are multiplied by the number of answers, and each copy of a row
        weighs as much more as makes the copies of all rows weigh the same.
        """
        return self._undivided // self.divisor

    @property
    def _undivided(self) -> CountArray:
        savings = _savings(self.values)
        if self.even:
            savings = self.scale * savings + self._padding_by_row[:, None]
        found: CountArray = savings * self.weights[:, None]
        return found

    @property
    def _padding_by_row(self) -> CountArray:
        saved = _savings(self.values).sum(axis=1)
        found: CountArray = saved.max(initial=0) - saved
        return found

    @property
    def divisor(self) -> int:
        """The common divisor by which the weights of the copies are divided."""
        return max(1, int(np.gcd.reduce(self._undivided, axis=None)))

    @property
    def scale(self) -> int:
        """What savings are multiplied by in the weights of the copies."""
        return self.values.shape[1] if self.even else 1

    @property
    def padding(self) -> int:
        """What the right copies of any tree weigh beyond its savings, before the division."""
        return int((self._padding_by_row * self.weights).sum()) if self.even else 0

    def leaf_size(self, rows: int) -> int:
        """Return the weight of copies that counts as so many rows in a leaf, where copies are even."""
        one = int(_savings(self.values).sum(axis=1).max()) * self.scale
        return -(-rows * one // self.divisor)

    @property
    def dearest(self) -> int:
        """The largest sum of what the answers of a row save, in steps: what the copies of each row weigh together where they are even."""
        return int(_savings(self.values).sum(axis=1).max(initial=0))

    def gain(self, cost: int) -> int:
        """Return the weight of the right copies of a tree whose answers cost `cost` steps."""
        return (self.scale * (self.most - cost) + self.padding) // self.divisor

    def cost_of(self, share: Fraction) -> Fraction:
        """Return the cost in steps of a tree whose right copies have this share of the weight of all copies."""
        weight = int(self._undivided.sum())
        return self.most - (share * weight - self.padding) / self.scale

    def price_of(self, share: Fraction) -> Fraction:
        """Return the price of a leaf in steps that is this share of the weight of all copies."""
        return share * int(self._undivided.sum()) / self.scale

    @property
    def floor(self) -> int:
        """What no answer avoids, in steps: the cost of the cheapest answer of each row."""
        return int(self.weighted.min(axis=1).sum())

    @property
    def most(self) -> int:
        """The cost of the dearest answer of each row, in steps."""
        return int(self.weighted.max(axis=1).sum())

    @property
    def constants(self) -> list[int]:
        """The cost of giving each answer to all rows, in steps."""
        return [int(total) for total in self.weighted.sum(axis=0)]

    @property
    def best_constant(self) -> int:
        """The answer that costs least if all rows get it, the first one among equals."""
        return self.constants.index(min(self.constants))

    def total(self, answers: CodeArray) -> int:
        """Return the cost of answers int32 (rows,), in steps."""
        return int(self.weighted[np.arange(len(answers)), answers].sum())

    def by_class(self, codes: CodeArray, answers: CodeArray) -> CountArray:
        """Return the cost of answers by true class and answer, in steps, int64 (classes, classes)."""
        found = np.zeros((self.values.shape[1],) * 2, np.int64)
        np.add.at(found, (codes, answers), self.weighted[np.arange(len(answers)), answers])
        return found

    def in_unit(self, steps: Fraction | int) -> float:
        """Return a cost in steps in the unit of the costs."""
        return float(steps * self.step)

    def leaf_share(self, penalty: Fraction) -> Fraction:
        """Return the price of a leaf as a share of the copies' weight; `penalty` is a share of the best constant answer's cost."""
        weight = int(self.copies.sum())
        share = penalty * min(self.constants) * self.scale / self.divisor / weight
        if share >= 1:
            most = penalty / share
            raise ParameterError(
                {"leaf_penalty": f"a leaf would cost more than any tree can save. Give less than {float(most):.4g}."}
            )
        return share


def _savings(weighted: CountArray) -> CountArray:
    found: CountArray = weighted.max(axis=1, keepdims=True) - weighted
    return found


def row_costs(
    matrix: CostTable,
    table: Table,
    codes: CodeArray,
    weights: CountArray | None = None,
    given: FloatArray | None = None,
    *,
    even: bool = False,
) -> RowCosts:
    """Return the costs of each row; `given`, float64 (rows, classes), if each row has costs of its own; `even` as in `RowCosts`.

    Decimals become integers over a common denominator. Where their sum is too large, costs are rounded to the finest power of ten that
    fits, and `error` says by how much this may change a total.

    Raises
    ------
    ParameterError
        If a column of costs is empty or negative in a row, if costs are too large to count with, or if costs of each row are missing.
    """
    counted = np.ones(len(codes), np.int64) if weights is None else weights.astype(np.int64)
    if matrix.each_row and given is None:
        raise ParameterError(
            {
                "costs": f"'{EACH_ROW}' stands for an array, which only fit(X, y, costs=...) takes. Write costs as text or JSON."
            }
        )
    blocks = list(_blocks(matrix, table, codes) if given is None else _given_blocks(given))
    largest = max((max(block.levels) for block in blocks if len(block.rows)), default=Fraction(0))
    most = MOST_COST / (largest * int(counted.sum()) * len(matrix.classes) ** (3 if even else 1) or 1)
    for step in _steps(blocks):
        if most * step < 1:
            continue
        found = _in_steps(matrix, blocks, counted, step, even)
        if int(found.copies.sum()) <= MOST_COPIES:
            return replace(found, given=given, error=_rounding_error(found, blocks))
    raise ParameterError({"costs": "the costs add up to more than can be counted. Give them in a larger unit."})


def _blocks(matrix: CostTable, table: Table, codes: CodeArray) -> Iterator[CostBlock]:
    columns = {column.schema.name: column for column in table.columns}
    for k, terms in enumerate(matrix.terms):
        rows = np.flatnonzero(codes == k)
        for answer, term in enumerate(terms):
            if term.column is None:
                yield CostBlock(rows, answer, [term.factor], np.zeros(len(rows), np.int64))
                continue
            column = columns[term.column]
            cells = column.values[rows]
            _check_cells(term.column, cells)
            values, place = np.unique(cells + 0.0, return_inverse=True)
            levels = [term.factor * Fraction(repr(float(value))) for value in values]
            yield CostBlock(rows, answer, levels, place.reshape(-1).astype(np.int64))


def _given_blocks(given: FloatArray) -> Iterator[CostBlock]:
    rows = np.arange(len(given))
    for answer, cells in enumerate(given.T):
        values, place = np.unique(cells + 0.0, return_inverse=True)
        yield CostBlock(rows, answer, [Fraction(repr(float(value))) for value in values], place.reshape(-1))


def _check_cells(name: str, cells: np.ndarray) -> None:
    empty = int(np.isnan(cells).sum())
    if empty:
        raise ParameterError(
            {
                "costs": f"'{name}' is empty in {empty} {'row' if empty == 1 else 'rows'} whose cost it gives. "
                f"Fill these cells, or leave the rows out with --missing '{name}=drop'."
            }
        )
    if len(cells) and cells.min() < 0:
        raise ParameterError({"costs": f"'{name}' is negative ({cells.min():g}) in a row whose cost it gives."})


def _steps(blocks: list[CostBlock]) -> Iterator[Fraction]:
    """Yield the step in which all costs are integers, then coarser powers of ten."""
    common = 1
    for block in blocks:
        for level in block.levels if len(block.rows) else ():
            common = math.lcm(common, level.denominator)
            if common > MOST_COST:
                break
    if common <= MOST_COST:
        yield Fraction(1, common)
    for exponent in range(FINEST_STEP, COARSEST_STEP):
        step = Fraction(10) ** exponent
        if step * common > 1:
            yield step


def _in_steps(matrix: CostTable, blocks: list[CostBlock], weights: CountArray, step: Fraction, even: bool) -> RowCosts:
    """Return the costs as multiples of a step, without the error of rounding."""
    values = np.zeros((len(weights), len(matrix.classes)), np.int64)
    for block in blocks:
        rounded = [_nearest(level, step) for level in block.levels]
        values[block.rows, block.answer] = np.array(rounded, np.int64)[block.place]
    return RowCosts(values=values, weights=weights, step=step, error=0.0, matrix=matrix, even=even)


def _nearest(level: Fraction, step: Fraction) -> int:
    """Return the multiple of a step nearest to a level, the even one of two; faster than `round` of their ratio."""
    divisor = level.denominator * step.numerator
    number, rest = divmod(level.numerator * step.denominator, divisor)
    return number + (2 * rest > divisor or (2 * rest == divisor and number % 2 == 1))


def _rounding_error(costs: RowCosts, blocks: list[CostBlock]) -> float:
    """Return by how much rounding may change the total cost of a tree."""
    errors = np.zeros(costs.values.shape)
    for block in blocks:
        off = [abs(float(level - _nearest(level, costs.step) * costs.step)) for level in block.levels]
        errors[block.rows, block.answer] = np.array(off)[block.place]
    return float((errors.max(axis=1) * costs.weights).sum()) * (1 + 1e-12)


def _decimal(number: Fraction) -> str:
    """Return a decimal as people write it."""
    text = f"{float(number):.15g}"
    return text if Fraction(text) == number else str(number)
