"""Define a training problem: rows, labels and objective."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from trainer.data.costs import RowCosts
from trainer.data.encoding import Encoding, Scheme, encode_binary, encode_filled, encode_numeric, median_of
from trainer.dtypes import CountArray, FloatArray
from trainer.errors import DataError, ParameterError, closest, list_names
from trainer.table import ColumnKind, EmptySide, Labels, MissingPolicy, Table
from trainer.tree.describe import counted_words
from trainer.tree.empty import filled_schema, settle_empty
from trainer.tree.nodes import Draft, Tree, grow
from trainer.tree.shorten import shorten


@dataclass(frozen=True, kw_only=True)
class SettingNames:
    """Names that settings may refer to."""

    columns: tuple[str, ...]
    classes: tuple[str, ...]
    texts: tuple[str, ...] = ()  # names of the categorical columns

    def column(self, name: str, parameter: str) -> str:
        """Return the name; raise ParameterError if no column has it."""
        if name not in self.columns:
            raise ParameterError(
                {parameter: f"{_unknown_name(name, 'column', self.columns)} Columns: {list_names(self.columns)}."}
            )
        return name

    def number_column(self, name: str, parameter: str) -> str:
        """Return the name; raise ParameterError if no numeric column has it."""
        if name in self.texts:
            raise ParameterError({parameter: f"'{name}' holds no numbers. Name a column of numbers."})
        return self.column(name, parameter)

    def label(self, name: str, parameter: str) -> str:
        """Return the name; raise ParameterError if no class has it."""
        if name not in self.classes:
            raise ParameterError(
                {parameter: f"{_unknown_name(name, 'class', self.classes)} Classes: {list_names(self.classes)}."}
            )
        return name


def setting_names(table: Table, labels: Labels) -> SettingNames:
    """Return the names of a table and its labels."""
    texts = tuple(column.name for column in table.columns if column.kind is ColumnKind.CATEGORICAL)
    return SettingNames(columns=table.names, classes=labels.classes, texts=texts)


def _unknown_name(name: str, what: str, names: tuple[str, ...]) -> str:
    return f"'{name[:80]}' is not a {what}.{closest(name, names)}"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A table, its labels and the objective of a training.

    Methods maximise `correct / n - leaf_penalty * leaves - coefficient_penalty * coefficients`, where `n` is the total weight.
    Only columns with the policy 'learn' have empty cells.

    With `costs`, the objective is the weight of correct copies over the weight of all copies, less the penalties. Every row
    has a copy for each answer, whose weight is the saving of this answer against the dearest one. Methods search `searched`,
    the problem of these copies; their features come from the rows, `source`.

    Parameters
    ----------
    table : Table
    labels : Labels
    leaf_penalty : Fraction
        Price of a leaf, as a share of the total weight.
    coefficient_penalty : Fraction
        Price of a coefficient of a split.
    weights : int64 array of shape (n_rows,), optional
        Row weights.
    scheme, bins
        Rule of the binary encoding, and its number of quantiles.
    extra_thresholds : mapping
        Thresholds in addition to the quantiles, by column index.
    warm_start : Draft, optional
        A known tree over the same columns, from which methods with `warm_start` begin.
    quantile_weights : int64 array of shape (n_rows,), optional
        Row weights of the encoding, if it must not depend on class weights.
    follow_unseen : bool
        Whether a split of a column without empty training cells answers empty cells.
    costs : RowCosts, optional
        Costs of answers.
    column_prices : mapping
        Price that a row pays once if its path uses a column, by column index: in the unit of the costs, or in errors. In
        `searched`, it is per unit of weight.
    source : Problem, optional
        The problem of the rows, for a problem of their copies.
    """

    table: Table
    labels: Labels
    leaf_penalty: Fraction = Fraction(0)
    coefficient_penalty: Fraction = Fraction(0)
    weights: CountArray | None = None
    scheme: Scheme = Scheme.QUANTILE_THRESHOLDS
    bins: int = 5
    extra_thresholds: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    warm_start: Draft | None = None
    quantile_weights: CountArray | None = None
    follow_unseen: bool = True
    costs: RowCosts | None = None
    column_prices: Mapping[int, Fraction] = field(default_factory=dict)
    source: Problem | None = None

    def __post_init__(self) -> None:
        if len(self.table) == 0:
            raise DataError("There is no row to train on. Check the missing policy: it may drop every row.")
        if any(c.has_missing for c in self.table.columns if c.schema.missing is not MissingPolicy.LEARN):
            raise DataError(
                "Only columns with the policy 'learn' may have empty cells; apply the missing policy first."
            )
        if not 0 <= self.leaf_penalty < 1:
            raise DataError(f"The leaf penalty must be at least 0 and below 1. It is {self.leaf_penalty}.")

    @property
    def n(self) -> int:
        """Total weight of the rows."""
        return int(self.row_weights.sum())

    @cached_property
    def kappa(self) -> Fraction:
        """The price of a leaf in rows: κ = leaf penalty × n, exact."""
        return self.leaf_penalty * self.n

    @cached_property
    def row_weights(self) -> CountArray:
        """Row weights, int64 of shape (rows,); 1 without weights."""
        return np.ones(len(self.table), np.int64) if self.weights is None else self.weights.astype(np.int64)

    @cached_property
    def matrix(self) -> FloatArray:
        """The table as the matrix of the prediction kernel, uint8 if all columns are stored in bytes."""
        return self.table.stored_matrix()

    @property
    def y(self) -> np.ndarray:
        """Class codes, int32 of shape (rows,)."""
        return self.labels.codes

    @property
    def names(self) -> SettingNames:
        """The names of columns and classes."""
        return setting_names(self.table, self.labels)

    @property
    def n_classes(self) -> int:
        return len(self.labels.classes)

    @cached_property
    def searched(self) -> Problem:
        """The problem that methods search: the one of the weighted copies if answers have costs, else this one."""
        if self.costs is None:
            return self
        copies = self.costs.copies
        rows, answers = np.nonzero(copies)
        return replace(
            self,
            table=self.table.take(rows),
            labels=replace(self.labels, codes=answers.astype(np.int32)),
            weights=copies[rows, answers],
            costs=None,
            column_prices={
                j: price * self.costs.weight_step / self.costs.step / self.costs.dearest
                for j, price in self.column_prices.items()
            },
            source=self,
        )

    @cached_property
    def numeric(self) -> Encoding:
        """The numeric encoding: numbers unchanged, one 0/1 feature per category."""
        if self.source is not None:
            return self.source.numeric
        return encode_numeric(self.table)

    @cached_property
    def has_empty(self) -> bool:
        """Whether any cell of the table is empty."""
        return any(column.has_missing for column in self.table.columns)

    @cached_property
    def count_unit(self) -> str:
        """The unit of the weights of the rows, see `counted_words`."""
        if self.source is not None:
            return self.source.count_unit
        own = None if self.table.weights is None else {"step": str(self.table.weights.step)}
        is_balanced = self.quantile_weights is not None and not np.array_equal(self.quantile_weights, self.row_weights)
        return counted_words({"weights": own, "class_weights": is_balanced})

    @property
    def counting_weights(self) -> CountArray | None:
        """The row weights of quantiles and medians."""
        return self.weights if self.quantile_weights is None else self.quantile_weights

    @cached_property
    def filled(self) -> Encoding:
        """The encoding of linear splits: empty cells filled with the median, and a feature that marks them."""
        if self.source is not None:
            return self.source.filled
        return encode_filled(self.table, self.counting_weights)

    @cached_property
    def binary(self) -> Encoding:
        """The binary encoding by `scheme` and `bins`."""
        if self.source is not None:
            return self.source.binary
        return encode_binary(self.table, self.scheme, self.bins, self.counting_weights, self.extra_thresholds)

    @property
    def question_settings(self) -> dict[str, Any]:
        """The parameters that reproduce this binary encoding, without 'auto'."""
        text = extra_thresholds_text(self.table.names, self.extra_thresholds)
        return {"binarise": str(self.scheme), "bins": self.bins, "extra_thresholds": text}

    def tree(self, draft: Draft, rows: CountArray | None = None) -> Tree:
        """Build the tree of a draft, with counts over all rows, or over the row indices `rows`, int64 (m,)."""
        take = slice(None) if rows is None else rows
        tree = grow(
            draft,
            self.matrix[take],
            self.y[take],
            schema=self.table.schema,
            classes=self.labels.classes,
            weights=None if self.weights is None else self.weights[take],
            costs=None if self.costs is None else self.costs.weighted[take],
        )
        return replace(tree, count_unit=self.count_unit)

    def finish(self, tree: Tree) -> Tree:
        """Build the final tree: the shortest decimals that route every training row the same way, and sides of empty cells."""
        return self.settle(self.tree(shorten(tree, self.matrix)))

    def settle(self, tree: Tree, rows: CountArray | None = None) -> Tree:
        """Add sides or fill values for empty cells that no counted row has; `rows`, int64 (m,), are the counted rows."""
        if not any(column.missing is MissingPolicy.LEARN for column in self.table.schema):
            return tree
        take = slice(None) if rows is None else rows
        filling = any(v.split is not None and v.split.missing is EmptySide.FILL for v in tree.branches)
        fills = self.fills if filling else {}
        settled = settle_empty(tree, self.matrix[take], fills=fills, follow=self.follow_unseen)
        return replace(settled, schema=filled_schema(settled, self.matrix))

    @cached_property
    def fills(self) -> dict[int, float]:
        """The fill value of each column that learns from empty cells, by column index: its median. Linear splits use it."""
        if self.source is not None:
            return self.source.fills
        medians = {
            j: median_of(column, self.counting_weights)
            for j, column in enumerate(self.table.columns)
            if column.schema.missing is MissingPolicy.LEARN
        }
        return {j: median for j, median in medians.items() if median is not None}

    def correct(self, tree: Tree) -> int:
        """Return the weight of the rows that `tree` classifies correctly."""
        return int(self.row_weights[tree.predict(self.matrix) == self.y].sum())

    def gain(self, tree: Tree) -> int:
        """Return the correct weight in the objective: of the rows, or of their copies if answers have costs."""
        if self.costs is None:
            return self.correct(tree)
        return self.costs.gain(self.costs.total(tree.predict(self.matrix)))

    def paid_weights(self, tree: Tree) -> dict[int, int]:
        """Return the weight of the rows whose path uses each priced column, by column index."""
        if not self.column_prices:
            return {}
        uses_column = tree.asked_columns()[tree.apply(self.matrix)]
        return {j: int(self.row_weights[uses_column[:, j]].sum()) for j in self.column_prices}

    def column_cost(self, tree: Tree) -> Fraction:
        """Return the total price of the columns on the rows' paths, in the unit of the costs, or in errors without costs."""
        weight_step = Fraction(1) if self.costs is None else self.costs.weight_step
        paid = self.paid_weights(tree)
        return weight_step * sum((self.column_prices[j] * weight for j, weight in paid.items()), Fraction(0))

    def column_share(self, tree: Tree) -> Fraction:
        """Return the amount that column prices subtract from the objective."""
        cost = self.column_cost(tree)
        if self.costs is not None:
            cost = cost / self.costs.step * self.costs.scale / self.costs.divisor
        return cost / self.searched.n

    def objective(self, tree: Tree) -> float:
        """Return the objective of `tree` on these rows, rounded once from an exact fraction."""
        paid = self.leaf_penalty * tree.n_leaves + self.column_share(tree)
        if self.coefficient_penalty:
            paid += self.coefficient_penalty * tree.n_coefficients
        return float(Fraction(self.gain(tree), self.searched.n) - paid)


def class_weighted(settings: Mapping[str, Any], labels: Labels, weights: CountArray | None) -> CountArray | None:
    """Return row weights, int64 (rows,), with the class weights of the settings; None if all rows count once.

    Raise ParameterError if the weights would be too large, or if min_leaf, which counts rows, is more than 1.
    """
    if settings.get("class_weight") != "balanced":
        return weights
    if int(settings.get("min_leaf") or 1) > 1:
        raise ParameterError({"min_leaf": "must be 1 when class_weight is 'balanced'."})
    return balanced_weights(labels, weights)


def extra_thresholds_text(names: Sequence[str], thresholds: Mapping[int, Sequence[float]]) -> str:
    """Format thresholds for the parameter `extra_thresholds`: JSON lists by column name."""
    listed = {names[j]: list(cuts) for j, cuts in thresholds.items() if cuts}
    return json.dumps(listed, ensure_ascii=False) if listed else ""


def read_extra_thresholds(text: str, names: SettingNames) -> dict[int, tuple[float, ...]]:
    """Parse thresholds by column index; raise ParameterError if the text cannot be read."""
    if not text.strip():
        return {}
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    if not isinstance(listed, dict) or not all(map(_are_numbers, listed.values())):
        raise ParameterError(
            {
                "extra_thresholds": f"'{text[:80]}' does not list numbers by column. Write, for example, {{\"age\": [31.5, 40]}}."
            }
        )
    places = {name: names.columns.index(names.number_column(name, "extra_thresholds")) for name in listed}
    return {places[name]: tuple(float(cut) for cut in cuts) for name, cuts in listed.items()}


def _are_numbers(cuts: Any) -> bool:
    return isinstance(cuts, list) and all(type(cut) in (int, float) and math.isfinite(cut) for cut in cuts)


MOST_BALANCED = 1 << 28  # limit on the total of balanced weights, set by the counters of the searches


def balanced_weights(labels: Labels, weights: CountArray | None) -> CountArray:
    """Return integer row weights, int64 (rows,), with the same sum in every class, proportional to `weights` within a class.

    If the smallest such integers add up to more than MOST_BALANCED, each row gets the nearest positive integer to its share of it, and
    the sums differ slightly, see `balance_error`. Raise ParameterError if a class has too many rows even for that.
    """
    row_weights = np.ones(len(labels.codes), np.int64) if weights is None else weights.astype(np.int64)
    sizes = np.array([int(row_weights[labels.codes == k].sum()) for k in range(len(labels.classes))])
    present = sizes[sizes > 0].tolist()
    total = math.lcm(*present)
    if total * len(present) > MOST_BALANCED:
        total = (MOST_BALANCED - int(np.count_nonzero(row_weights))) // len(present)  # rounding adds at most 1 to a row
        largest = int(np.bincount(labels.codes[row_weights > 0]).max())
        if largest > total:
            raise ParameterError(
                {
                    "class_weight": f"a class of {largest:,} rows is too large beside {len(present) - 1} others: balanced weights add up "
                    f"to at most {MOST_BALANCED:,}. Take a sample of the rows."
                }
            )
    size = np.maximum(sizes, 1)[labels.codes]
    weighted = np.maximum((2 * total * row_weights + size) // (2 * size), row_weights > 0)
    return weighted // np.gcd.reduce(weighted[weighted > 0])


def balance_error(labels: Labels, plain: CountArray, weighted: CountArray) -> float:
    """Return how much rounded class weights change a mean of recalls at most.

    With W the sum of `weighted`, S the sum of `plain` in a class and K classes, this is ½ Σ|weighted/W − plain/(KS)| over the rows,
    since these differences add up to 0.
    """
    classes = [np.flatnonzero(labels.codes == k) for k in range(len(labels.classes))]
    sizes = [(rows, int(plain[rows].sum())) for rows in classes if plain[rows].any()]
    total = int(weighted.sum())
    error = Fraction(0)
    for rows, size in sizes:
        share = len(sizes) * size
        pairs = zip(weighted[rows].tolist(), plain[rows].tolist(), strict=True)
        error += Fraction(sum(abs(own * share - given * total) for own, given in pairs), total * share)
    return float(error / 2)
