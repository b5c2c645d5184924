"""Represent costs of answers: by class and answer, or by row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.errors import ParameterError
from trainer.table import RowWeights, Table

MOST_COPIES = 1 << 28  # limit on the total weight of the copies, set by the counters of the searches
MOST_COST = 1 << 61  # limit on a sum of costs, in steps
FINEST_STEP = -18  # exponent of a power of ten
COARSEST_STEP = 30
LEAST_LEVELS = 16  # steps of costs that remain for each unit of weight if copies are even
EACH_ROW = "rows"  # value of the parameter `costs` if an array gives the costs of each row


@dataclass(frozen=True, kw_only=True)
class CostTerm:
    """The cost of one answer for one true class: a number, or a number times a column of the table."""

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
    """Costs of each answer in each row of a table, as integers.

    Parameters
    ----------
    values : int64 array of shape (n_rows, n_classes)
        Costs in multiples of `step`: without the weight of the row if `weight_step` is 1, else times the weight.
    weights : int64 array of shape (n_rows,)
        Weights of the rows, in multiples of `weight_step`.
    step : Fraction
        One unit of `values`, in the unit of the costs.
    error : float
        Rounding changes the total cost of any tree by at most this much, in the unit of the costs.
    matrix : CostTable
        The costs as stated by the user.
    given : float64 array of shape (n_rows, n_classes), optional
        The unrounded costs of each row, if each row has its own.
    even : bool
        Whether the copies of all rows have the same total weight, so that the weight of a leaf counts its rows.
    neutral : bool
        Whether rows whose answers all cost the same have copies, too, of the least weight. Such rows cannot change a cost,
        but a split needs a row on each side.
    weight_step : Fraction
        One unit of `weights`. Decimal weights have another step than 1.
    """

    values: CountArray
    weights: CountArray
    step: Fraction
    error: float
    matrix: CostTable
    given: FloatArray | None = None
    even: bool = False
    neutral: bool = False
    weight_step: Fraction = Fraction(1)

    @property
    def factors(self) -> CountArray:
        """The factor by which `values` become costs times weights, int64 (rows,): 1 if they are, else the weights."""
        return self.weights if self.weight_step == 1 else np.ones_like(self.weights)

    @property
    def _units(self) -> CountArray:
        """The part of the weights that is in `values`, int64 (rows,)."""
        return np.ones_like(self.weights) if self.weight_step == 1 else self.weights

    @property
    def true_weights(self) -> FloatArray:
        """The weights of the rows, not in steps, float64 (rows,)."""
        weights: FloatArray = self.weights.astype(np.float64) * float(self.weight_step)
        return weights

    @property
    def weighted(self) -> CountArray:
        """The costs times the weights of the rows, int64 (rows, classes)."""
        products: CountArray = self.values * self.factors[:, None]
        return products

    @property
    def copies(self) -> CountArray:
        """The weight of the copy for each row and answer, int64 (rows, classes): its saving against the dearest answer.

        The weights have no common divisor. If `even`, savings are multiplied by the number of answers. Each copy of a
        row then gets the same extra weight, so that the copies of all rows have the same total weight per unit of row weight.
        """
        return self._undivided // self.divisor

    @property
    def _undivided(self) -> CountArray:
        padded = self.scale * _savings(self.values) + self._padding_by_row[:, None]
        copies: CountArray = padded * self.factors[:, None]
        return copies

    @property
    def _padding_by_row(self) -> CountArray:
        """The extra weight of each copy of a row, without the factor of the row, int64 (rows,)."""
        savings = _savings(self.values)
        totals = savings.sum(axis=1)
        if self.even:
            padding: CountArray = self.dearest * self._units - totals
        else:
            padding = np.where(totals == 0, np.gcd.reduce(savings, axis=None), 0) * self.neutral
        return padding

    @property
    def divisor(self) -> int:
        """The common divisor by which the weights of the copies are divided."""
        return max(1, int(np.gcd.reduce(self._undivided, axis=None)))

    @property
    def scale(self) -> int:
        """The factor of savings in the weights of the copies."""
        return self.values.shape[1] if self.even else 1

    @property
    def padding(self) -> int:
        """The extra weight of the correct copies of any tree beyond its savings, before the division."""
        return int((self._padding_by_row * self.factors).sum())

    def leaf_size(self, rows: int) -> int:
        """Return the weight of the copies of this number of rows, if copies are even."""
        return -(-rows * self.dearest * self.scale // self.divisor)

    @property
    def dearest(self) -> int:
        """The largest sum of savings of a row per unit of `weights`, in steps, rounded up.

        If `even`, it is the weight of the copies of each row per unit of `weights`, before scaling.
        """
        return int((-(-_savings(self.values).sum(axis=1) // self._units)).max(initial=0))

    def gain(self, cost: int) -> int:
        """Return the weight of the correct copies of a tree whose answers cost `cost` steps."""
        return (self.scale * (self.most - cost) + self.padding) // self.divisor

    def cost_of(self, share: Fraction) -> Fraction:
        """Return the cost in steps of a tree whose correct copies have this share of the weight of all copies."""
        weight = int(self._undivided.sum())
        return self.most - (share * weight - self.padding) / self.scale

    def price_of(self, share: Fraction) -> Fraction:
        """Convert the price of a leaf from a share of the weight of all copies to steps."""
        return share * int(self._undivided.sum()) / self.scale

    @property
    def floor(self) -> int:
        """The unavoidable cost in steps: the sum of the cheapest answer of each row."""
        return int(self.weighted.min(axis=1).sum())

    @property
    def most(self) -> int:
        """The sum of the dearest answer of each row, in steps."""
        return int(self.weighted.max(axis=1).sum())

    @property
    def constants(self) -> list[int]:
        """The cost of giving each answer to all rows, in steps."""
        return [int(total) for total in self.weighted.sum(axis=0)]

    @property
    def best_constant(self) -> int:
        """The cheapest answer for all rows; the first one among equals."""
        return self.constants.index(min(self.constants))

    def total(self, answers: CodeArray) -> int:
        """Return the cost of answers int32 (rows,), in steps."""
        return int(self.weighted[np.arange(len(answers)), answers].sum())

    def by_class(self, codes: CodeArray, answers: CodeArray) -> CountArray:
        """Return the cost of answers by true class and answer, in steps, int64 (classes, classes)."""
        totals = np.zeros((self.values.shape[1],) * 2, np.int64)
        np.add.at(totals, (codes, answers), self.weighted[np.arange(len(answers)), answers])
        return totals

    def in_unit(self, steps: Fraction | int) -> float:
        """Convert a cost from steps to the unit of the costs."""
        return float(steps * self.step)

    def per_row(self, steps: Fraction | int) -> float:
        """Convert a cost of all rows from steps to the unit of the costs per unit of row weight."""
        return self.in_unit(steps / (self.weight_step * int(self.weights.sum())))

    def record(self, *, cost: int, price: Fraction, least: Fraction | None) -> dict[str, Any]:
        """Return the record for a certificate, in the unit, of a tree whose answers cost `cost` steps.

        `price` is that of a leaf. `least` is the proved lower bound of the cost of any tree in scope, with its leaves.
        """
        best = self.best_constant
        return {
            "unit": self.matrix.unit,
            "costs": self.matrix.to_json(),
            "step": str(self.step),
            "rounding_error": self.error,
            "cost": self.in_unit(cost),
            "cost_per_row": self.per_row(cost),
            "floor": self.in_unit(self.floor),
            "leaf_price": self.in_unit(price),
            "best_constant": {"answer": self.matrix.classes[best], "cost": self.in_unit(self.constants[best])},
            "least": None if least is None else self.in_unit(least),
        }

    def leaf_share(self, penalty: Fraction) -> Fraction:
        """Convert a leaf penalty from a share of the best constant answer's cost to a share of the weight of all copies."""
        weight = int(self.copies.sum())
        share = penalty * min(self.constants) * self.scale / self.divisor / weight
        if share >= 1:
            most = penalty / share
            raise ParameterError(
                {"leaf_penalty": f"a leaf would cost more than any tree can save. Use less than {float(most):.4g}."}
            )
        return share


def _savings(weighted: CountArray) -> CountArray:
    savings: CountArray = weighted.max(axis=1, keepdims=True) - weighted
    return savings


def row_costs(
    matrix: CostTable,
    table: Table,
    codes: CodeArray,
    weights: CountArray | None = None,
    given: FloatArray | None = None,
    *,
    even: bool = False,
    neutral: bool = False,
    decimals: RowWeights | None = None,
) -> RowCosts:
    """Return the costs of each row as integers.

    Decimals become integers over a common denominator. If their sum is too large, costs are rounded to the finest power of
    ten that fits, and `error` bounds the change of a total. With decimal weights, costs times weights are rounded.

    Parameters
    ----------
    matrix : CostTable
        Costs by true class and answer.
    table : Table
        The rows.
    codes : int32 array of shape (n_rows,)
        True classes.
    weights : int64 array of shape (n_rows,), optional
        Row weights.
    given : float64 array of shape (n_rows, n_classes), optional
        Costs of each row, if each row has its own.
    even, neutral : bool
        As in `RowCosts`.
    decimals : RowWeights, optional
        Weights of the rows in place of `weights`, if they are not integers.

    Raises
    ------
    ParameterError
        If a column of costs is empty or negative in a row, if costs are too large, or if `given` is needed and missing.
    """
    if decimals is not None:
        weights = decimals.values
    row_weights = np.ones(len(codes), np.int64) if weights is None else weights.astype(np.int64)
    weight_step = Fraction(1) if decimals is None else decimals.step
    if matrix.each_row and given is None:
        raise ParameterError(
            {
                "costs": f"'{EACH_ROW}' needs an array, which only fit(X, y, costs=...) accepts. Write costs as text or JSON."
            }
        )
    blocks = list(_blocks(matrix, table, codes) if given is None else _given_blocks(given))
    largest = max((max(block.levels) for block in blocks if len(block.rows)), default=Fraction(0))
    most = MOST_COST / (largest * weight_step * int(row_weights.sum()) * len(matrix.classes) ** (3 if even else 1) or 1)
    weight_error = 0.0
    if decimals is not None and weight_step != 1:
        if even and int(row_weights.sum()) * len(matrix.classes) * LEAST_LEVELS > MOST_COPIES:
            words = f"{decimals.words} have too many digits for prices of columns and good trees beside costs. Round them to fewer digits."
            raise ParameterError({"weight": words})
        weight_error = _weight_error(blocks, decimals)
        blocks = [_times_weights(block, row_weights, weight_step) for block in blocks]
    for step in _steps(blocks):
        if most * step < 1:
            continue
        rounded = _in_steps(matrix, blocks, row_weights, step)
        candidate = replace(rounded, even=even, neutral=neutral, weight_step=weight_step)
        if int(candidate.copies.sum()) <= MOST_COPIES:
            return replace(candidate, given=given, error=_rounding_error(candidate, blocks) + weight_error)
    raise ParameterError({"costs": "the sum of the costs is too large. Use a larger unit."})


def _times_weights(block: CostBlock, weights: CountArray, weight_step: Fraction) -> CostBlock:
    """Return the block of the costs times the weights of the rows."""
    pairs, place = np.unique(np.column_stack([block.place, weights[block.rows]]), axis=0, return_inverse=True)
    levels = [block.levels[level] * weight * weight_step for level, weight in pairs.tolist()]
    return CostBlock(block.rows, block.answer, levels, place.reshape(-1).astype(np.int64))


def _weight_error(blocks: list[CostBlock], weights: RowWeights) -> float:
    """Return an upper bound of the change of a tree's total cost by the rounding of the weights."""
    dearest = np.zeros(len(weights.values))
    for block in blocks:
        levels = np.array([float(level) for level in block.levels])
        dearest[block.rows] = np.maximum(dearest[block.rows], levels[block.place])
    return float(dearest @ weights.deviations)


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


def _given_blocks(costs: FloatArray) -> Iterator[CostBlock]:
    rows = np.arange(len(costs))
    for answer, cells in enumerate(costs.T):
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
        raise ParameterError(
            {
                "costs": f"'{name}' is negative ({cells.min():g}) in a row whose cost it gives. Costs must be 0 or more: correct the cell."
            }
        )


def _steps(blocks: list[CostBlock]) -> Iterator[Fraction]:
    """Yield the greatest common divisor of all costs, then coarser powers of ten."""
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


def _in_steps(matrix: CostTable, blocks: list[CostBlock], weights: CountArray, step: Fraction) -> RowCosts:
    """Round the costs to multiples of a step; `error` is set to 0."""
    values = np.zeros((len(weights), len(matrix.classes)), np.int64)
    for block in blocks:
        rounded = [_nearest(level, step) for level in block.levels]
        values[block.rows, block.answer] = np.array(rounded, np.int64)[block.place]
    return RowCosts(values=values, weights=weights, step=step, error=0.0, matrix=matrix)


def _nearest(level: Fraction, step: Fraction) -> int:
    """Round a level to a number of steps, ties to even; faster than `round` of the ratio."""
    divisor = level.denominator * step.numerator
    number, remainder = divmod(level.numerator * step.denominator, divisor)
    return number + (2 * remainder > divisor or (2 * remainder == divisor and number % 2 == 1))


def _rounding_error(costs: RowCosts, blocks: list[CostBlock]) -> float:
    """Return an upper bound of the change of a tree's total cost by rounding."""
    errors = np.zeros(costs.values.shape)
    for block in blocks:
        deviations = [abs(float(level - _nearest(level, costs.step) * costs.step)) for level in block.levels]
        errors[block.rows, block.answer] = np.array(deviations)[block.place]
    return float((errors.max(axis=1) * costs.factors).sum()) * (1 + 1e-12)


def _decimal(number: Fraction) -> str:
    """Write a number as a decimal, or as a fraction if it has no short one."""
    text = f"{float(number):.15g}"
    return text if Fraction(text) == number else str(number)
