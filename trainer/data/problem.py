"""Problem: the rows, labels and objective that a method optimises over."""

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
from trainer.tree.empty import filled_schema, settle_empty
from trainer.tree.nodes import Draft, Tree, grow
from trainer.tree.shorten import shorten


@dataclass(frozen=True, kw_only=True)
class SettingNames:
    """What settings can name, known without the rows: the columns that may be asked, and the classes.

    `texts` are those of the columns that hold categories.
    """

    columns: tuple[str, ...]
    classes: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def column(self, name: str, parameter: str) -> str:
        """The name itself; raises ParameterError if no column is called so."""
        if name not in self.columns:
            raise ParameterError(
                {parameter: f"{_unknown(name, 'column', self.columns)} Columns: {list_names(self.columns)}."}
            )
        return name

    def number_column(self, name: str, parameter: str) -> str:
        """Return the name itself; raises ParameterError if no column of numbers is called so."""
        if name in self.texts:
            raise ParameterError({parameter: f"'{name}' holds no numbers. Name a column of numbers."})
        return self.column(name, parameter)

    def label(self, name: str, parameter: str) -> str:
        """The name itself; raises ParameterError if no class is called so."""
        if name not in self.classes:
            raise ParameterError(
                {parameter: f"{_unknown(name, 'class', self.classes)} Classes: {list_names(self.classes)}."}
            )
        return name


def setting_names(table: Table, labels: Labels) -> SettingNames:
    """Return what settings can name in a table with its labels."""
    texts = tuple(column.name for column in table.columns if column.kind is ColumnKind.CATEGORICAL)
    return SettingNames(columns=table.names, classes=labels.classes, texts=texts)


def _unknown(name: str, what: str, names: tuple[str, ...]) -> str:
    return f"'{name[:80]}' is not a {what}.{closest(name, names)}"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A table, its labels, integer row weights and the objective's leaf penalty; only columns that learn have empty cells.

    The objective is `correct / n - leaf_penalty * leaves`, maximised, less
    `coefficient_penalty` for every coefficient of its splits; `n` is the total weight. `warm_start` is a tree over the
    same columns that is known already; methods that declare `warm_start` begin with it. `quantile_weights` replaces
    `weights` in the binary encoding, where classes are weighted and questions are not to depend on it. `follow_unseen` says whether
    a split of a column without empty training cells answers empty cells at all.
    `extra_thresholds` join the quantiles of the binary encoding, by the place of their column.

    With `costs`, the objective is the weight of correct copies over the weight of all copies, less the penalties: every row has a copy
    for each answer, which weighs what the answer saves against the dearest one. Methods search `searched`, the problem of these copies.
    The copies take their features from the rows, `source`.

    `column_prices` says what a row pays, once, if its path asks a column, by the place of the column: in the unit of the costs, or in
    errors without costs. In `searched` it is per unit of weight, in weight.
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
        if any(c.missing.any() for c in self.table.columns if c.schema.missing is not MissingPolicy.LEARN):
            raise DataError(
                "Only columns with the policy 'learn' may have empty cells; apply the missing policy first."
            )
        if not 0 <= self.leaf_penalty < 1:
            raise DataError(f"The leaf penalty must lie in [0, 1); it is {self.leaf_penalty}.")

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
        """int64 of shape (rows,)."""
        return np.ones(len(self.table), np.int64) if self.weights is None else self.weights.astype(np.int64)

    @cached_property
    def matrix(self) -> FloatArray:
        """The table as the prediction kernel reads it."""
        return self.table.matrix()

    @property
    def y(self) -> np.ndarray:
        """Class codes, int32 of shape (rows,)."""
        return self.labels.codes

    @property
    def names(self) -> SettingNames:
        """The columns and classes by name."""
        return setting_names(self.table, self.labels)

    @property
    def n_classes(self) -> int:
        return len(self.labels.classes)

    @cached_property
    def searched(self) -> Problem:
        """The problem that methods search: of the weighted copies if answers have costs, else the problem itself."""
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
            column_prices={j: price / self.costs.step / self.costs.dearest for j, price in self.column_prices.items()},
            source=self,
        )

    @cached_property
    def numeric(self) -> Encoding:
        """Numeric columns as they are, one 0/1 feature per category."""
        if self.source is not None:
            return self.source.numeric
        return encode_numeric(self.table)

    @cached_property
    def has_empty(self) -> bool:
        """Whether a cell of the table is empty."""
        return any(column.missing.any() for column in self.table.columns)

    @property
    def counting_weights(self) -> CountArray | None:
        """The row weights of quantiles and medians."""
        return self.weights if self.quantile_weights is None else self.quantile_weights

    @cached_property
    def filled(self) -> Encoding:
        """The features of sums over many columns: empty cells filled with the median, and a feature that says where they were."""
        if self.source is not None:
            return self.source.filled
        return encode_filled(self.table, self.counting_weights)

    @cached_property
    def binary(self) -> Encoding:
        """The binary encoding that `scheme` and `bins` ask for."""
        if self.source is not None:
            return self.source.binary
        return encode_binary(self.table, self.scheme, self.bins, self.counting_weights, self.extra_thresholds)

    @property
    def question_settings(self) -> dict[str, Any]:
        """The parameters that give this binary encoding again, without a choice that depends on the rows."""
        text = extra_thresholds_text(self.table.names, self.extra_thresholds)
        return {"binarise": str(self.scheme), "bins": self.bins, "extra_thresholds": text}

    def tree(self, draft: Draft, rows: CountArray | None = None) -> Tree:
        """The tree of a draft, counted over all rows, or over `rows`, int64 (m,), of the table."""
        take = slice(None) if rows is None else rows
        return grow(
            draft,
            self.matrix[take],
            self.y[take],
            schema=self.table.schema,
            classes=self.labels.classes,
            weights=None if self.weights is None else self.weights[take],
            costs=None if self.costs is None else self.costs.weighted[take],
        )

    def stored(self, tree: Tree) -> Tree:
        """The tree in the shortest decimals that send every training row the same way: as it is kept and shown."""
        return self.settled(self.tree(shorten(tree, self.matrix)))

    def settled(self, tree: Tree, rows: CountArray | None = None) -> Tree:
        """Return the tree, which counts the rows, int64 (m,), with a side or a fill value for the empty cells that none of them has."""
        if not any(column.missing is MissingPolicy.LEARN for column in self.table.schema):
            return tree
        take = slice(None) if rows is None else rows
        filling = any(v.split is not None and v.split.missing is EmptySide.FILL for v in tree.branches)
        fills = self.fills if filling else {}
        settled = settle_empty(tree, self.matrix[take], fills=fills, follow=self.follow_unseen)
        return replace(settled, schema=filled_schema(settled, self.matrix))

    @cached_property
    def fills(self) -> dict[int, float]:
        """The median of each column that learns from empty cells, by its place; sums of many columns read it in place of an empty cell."""
        if self.source is not None:
            return self.source.fills
        medians = {
            j: median_of(column, self.counting_weights)
            for j, column in enumerate(self.table.columns)
            if column.schema.missing is MissingPolicy.LEARN
        }
        return {j: median for j, median in medians.items() if median is not None}

    def correct(self, tree: Tree) -> int:
        """Weight of the rows that `tree` classifies correctly."""
        return int(self.row_weights[tree.predict(self.matrix) == self.y].sum())

    def gain(self, tree: Tree) -> int:
        """Return the weight that the objective counts as correct: of the rows, or of their copies where answers have costs."""
        if self.costs is None:
            return self.correct(tree)
        return self.costs.gain(self.costs.total(tree.predict(self.matrix)))

    def paid_weights(self, tree: Tree) -> dict[int, int]:
        """Return the weight of the rows whose path asks each priced column, by the place of the column."""
        if not self.column_prices:
            return {}
        asked = tree.asked_columns()[tree.apply(self.matrix)]
        return {j: int(self.row_weights[asked[:, j]].sum()) for j in self.column_prices}

    def column_cost(self, tree: Tree) -> Fraction:
        """Return what the rows pay for the columns on their paths: in the unit of the costs, or in errors without costs."""
        paid = self.paid_weights(tree)
        return sum((self.column_prices[j] * weight for j, weight in paid.items()), Fraction(0))

    def column_share(self, tree: Tree) -> Fraction:
        """Return what the objective loses through the prices of columns."""
        cost = self.column_cost(tree)
        if self.costs is not None:
            cost = cost / self.costs.step * self.costs.scale / self.costs.divisor
        return cost / self.searched.n

    def objective(self, tree: Tree) -> float:
        """The objective of `tree` on these rows, from one exact fraction."""
        paid = self.leaf_penalty * tree.n_leaves + self.column_share(tree)
        if self.coefficient_penalty:
            paid += self.coefficient_penalty * tree.n_coefficients
        return float(Fraction(self.gain(tree), self.searched.n) - paid)


def class_weighted(settings: Mapping[str, Any], labels: Labels, weights: CountArray | None) -> CountArray | None:
    """Row weights, int64 (rows,), with the classes weighted as the parameters ask; None for rows that all count one.

    Raises ParameterError if the weights would be too large to count with, or leaves are counted in them.
    """
    if settings.get("class_weight") != "balanced":
        return weights
    if int(settings.get("min_leaf") or 1) > 1:
        raise ParameterError({"min_leaf": "leaves are counted in weights, so it must be 1 with balanced classes."})
    return balanced_weights(labels, weights)


def extra_thresholds_text(names: Sequence[str], thresholds: Mapping[int, Sequence[float]]) -> str:
    """Return thresholds as the parameter `extra_thresholds` takes them: JSON lists by the name of their column."""
    listed = {names[j]: list(cuts) for j, cuts in thresholds.items() if cuts}
    return json.dumps(listed, ensure_ascii=False) if listed else ""


def read_extra_thresholds(text: str, names: SettingNames) -> dict[int, tuple[float, ...]]:
    """Return the thresholds of a text by the place of their column; raises ParameterError if it cannot be read."""
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


MOST_BALANCED = 1 << 28  # as much as the counts of the searches can hold


def balanced_weights(labels: Labels, weights: CountArray | None) -> CountArray:
    """Integer weights, int64 (rows,), in the proportion of `weights` within a class, that add up to the same in every class.

    Raises ParameterError if the smallest such integers are too large to count with.
    """
    own = np.ones(len(labels.codes), np.int64) if weights is None else weights.astype(np.int64)
    sizes = [int(own[labels.codes == k].sum()) for k in range(len(labels.classes))]
    whole = math.lcm(*(size for size in sizes if size))
    if whole * sum(size > 0 for size in sizes) > MOST_BALANCED:
        raise ParameterError(
            {
                "class_weight": f"classes of {', '.join(map(str, sizes))} rows have no small common weight: balanced weights "
                f"would add up to more than {MOST_BALANCED}. Leave some rows out, or give row weights."
            }
        )
    factors = np.array([whole // size if size else 0 for size in sizes], np.int64)
    weighted = own * factors[labels.codes]
    return weighted // np.gcd.reduce(weighted[weighted > 0])
