"""A tree in words: the rule of a split, the whole tree as nested text, and the way of one row.

Numbers are rounded to three significant digits but never coarser than one; `full=True` gives every digit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from trainer.dtypes import FloatArray
from trainer.errors import DataError
from trainer.table import ColumnSchema, Kind
from trainer.tree.nodes import Node, Tree
from trainer.tree.splits import Interval, Linear, Split, Subset, Threshold

MINUS, TIMES, THIN = "−", "×", "\u202f"
DIGITS = 3
MAX_DIGITS = 17  # enough to tell any two doubles apart
TENS = 1e15  # from here on powers of ten are shorter than digits


def number_text(value: float, digits: int = DIGITS, *, full: bool = False) -> str:
    """`value` with thousands commas, a minus sign and at least `digits` significant digits: 7314.2 is "7,314", 0.01234 "0.0123"."""
    if math.isnan(value):
        return "missing"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    sign, size = (MINUS if value < 0 else ""), abs(value)
    if full:
        return sign + _plain(Decimal(repr(float(size))))
    exponent = math.floor(math.log10(size))
    if size >= TENS or exponent < -6:
        mantissa, power = f"{size:.{digits - 1}e}".split("e")
        return f"{sign}{_trim(mantissa)}{THIN}{TIMES}{THIN}10^{int(power)}".replace("10^-", f"10^{MINUS}")
    return sign + _trim(f"{size:,.{max(0, digits - 1 - exponent)}f}")


def split_text(split: Split, schema: Sequence[ColumnSchema], *, full: bool = False, digits: int = DIGITS) -> str:
    """The test of a split in words; "yes" goes left.

    A linear rule is divided by its first coefficient, so that both sides are in the unit of its first column; with `full` the
    coefficients are those of the model file, with every digit.
    """
    if isinstance(split, Threshold):
        return _threshold_text(split, schema[split.feature], full=full, digits=digits)
    if isinstance(split, Interval):
        return _interval_text(split, schema[split.feature], full=full, digits=digits)
    if isinstance(split, Subset):
        return _subset_text(split, schema[split.feature])
    terms, relation, threshold = _scaled(split, full=full)
    text = _sum_text(split, terms, schema, full=full, digits=digits)
    unit = "" if full else _unit(schema[split.features[0]]) if split.features else ""
    return f"{text} {relation} {number_text(threshold, digits, full=full)}{unit}"


def value_text(split: Split, schema: Sequence[ColumnSchema], row: FloatArray, *, digits: int = DIGITS) -> str:
    """What the row (columns,) has where the split looks: a number, a sum as the rule writes it, or a category."""
    if isinstance(split, Subset):
        return category_text(schema[split.feature], float(row[split.feature]))
    if isinstance(split, Linear):
        terms, _, _ = _scaled(split, full=False)
        total = sum(
            a * (float(row[f]) if level < 0 else float(row[f] == level))
            for a, f, level in zip(terms, split.features, split.levels, strict=True)
        )
        return number_text(total, digits)
    return number_text(float(row[split.feature]), digits)


def category_text(column: ColumnSchema, code: float) -> str:
    """The category of a code; "missing" for NaN, "unknown" for a code that the schema does not have."""
    if math.isnan(code):
        return "missing"
    return _label(column.categories[int(code)]) if 0 <= code < len(column.categories) else "unknown"


def rules_text(tree: Tree, *, full: bool = False) -> str:
    """The tree as nested lines, two spaces a level: a question, then "yes:" and "no:" with what follows."""
    lines: list[str] = []
    stack = [(0, 0, "")]
    while stack:
        node, level, prefix = stack.pop()
        v = tree.nodes[node]
        indent = "  " * level + prefix
        if v.split is None:
            lines.append(f"{indent}{leaf_text(tree, v)}")
            continue
        lines.append(f"{indent}{split_text(v.split, tree.schema, full=full)}?")
        stack.append((v.right, level + 1, "no: "))
        stack.append((v.left, level + 1, "yes: "))
    return "\n".join(lines) + "\n"


def leaf_text(tree: Tree, leaf: Node) -> str:
    """The prediction of a leaf with its share of the training rows: "benign (349 of 367 rows)"."""
    rows = "1 row" if leaf.rows == 1 else f"{leaf.rows:,} rows"
    return f"{tree.classes[leaf.label]} ({leaf.counts[leaf.label]:,} of {rows})"


def path_in_words(tree: Tree, leaf: int, row: FloatArray) -> list[str]:
    """One sentence for each question on the way of `row` (columns,) to `leaf`, and one for the prediction.

    Raises DataError where the row does not reach this leaf.
    """
    row = np.asarray(row, np.float64).reshape(-1)
    if not 0 <= leaf < len(tree.nodes) or not tree.nodes[leaf].is_leaf:
        raise DataError(f"Node {leaf} is no leaf of this tree.")
    reached = int(tree.apply(row.reshape(1, -1))[0])
    if reached != leaf:
        raise DataError(f"The row reaches leaf {reached}, not leaf {leaf}.")
    path = tree.path_to(leaf)
    sentences = []
    for node, following in itertools.pairwise(path):
        v = tree.nodes[node]
        if v.split is None:
            continue
        yes = following == v.left
        digits = _telling_digits(v.split, tree.schema, row)
        rule = split_text(v.split, tree.schema, digits=digits)
        here = value_text(v.split, tree.schema, row, digits=digits)
        sentences.append(f"{rule}? Here {here}: {'yes' if yes else 'no'}")
    return [*sentences, f"So it is {leaf_text(tree, tree.nodes[leaf])}"]


def _threshold_text(split: Threshold, column: ColumnSchema, *, full: bool, digits: int) -> str:
    if column.kind is Kind.BINARY and 0 <= split.threshold < 1 and not full:
        return f"{_label(column.name)} is 0"
    return f"{_label(column.name)} ≤ {number_text(split.threshold, digits, full=full)}{_unit(column)}"


def _interval_text(split: Interval, column: ColumnSchema, *, full: bool, digits: int) -> str:
    low, high = number_text(split.low, digits, full=full), number_text(split.high, digits, full=full)
    name, unit = _label(column.name), _unit(column)
    if math.isinf(split.low) and math.isinf(split.high):
        return f"{name} is a finite number"
    if math.isinf(split.low):
        return f"{name} ≤ {high}{unit}"
    if math.isinf(split.high):
        return f"{name} > {low}{unit}"
    return f"{low} < {name} ≤ {high}{unit}"


def _subset_text(split: Subset, column: ColumnSchema) -> str:
    names = [_label(column.categories[code]) for code in split.codes]
    if not names:
        return f"{_label(column.name)} is none of its categories"
    if len(names) == 1:
        return f"{_label(column.name)} is {names[0]}"
    return f"{_label(column.name)} is one of {', '.join(names)}"


def _sum_text(split: Linear, terms: Sequence[float], schema: Sequence[ColumnSchema], *, full: bool, digits: int) -> str:
    parts: list[str] = []
    for a, feature, level in zip(terms, split.features, split.levels, strict=True):
        column = schema[feature]
        name = _label(column.name) if level < 0 else f"[{_label(column.name)} is {_label(column.categories[level])}]"
        number = number_text(abs(a), digits, full=full)
        size = name if abs(a) == 1 or number == "1" else f"{number} {TIMES} {name}"
        if parts:
            parts.append(f"{MINUS if a < 0 else '+'} {size}")
        else:
            parts.append(f"{MINUS}{size}" if a < 0 else size)
    return " ".join(parts) or "0"


def _scaled(split: Linear, *, full: bool) -> tuple[list[float], str, float]:
    """Coefficients, relation and threshold as they are written."""
    first = split.coefficients[0] if split.coefficients else 1.0
    scaled = [a / first for a in split.coefficients] if first else []
    threshold = split.threshold / first if first else 0.0
    if full or not first or not all(math.isfinite(a) for a in [*scaled, threshold]):
        return list(split.coefficients), "≤", split.threshold
    return scaled, "≤" if first > 0 else "≥", threshold


def _telling_digits(split: Split, schema: Sequence[ColumnSchema], row: FloatArray) -> int:
    """The fewest digits with which the value of the row and the thresholds do not look equal unless they are."""
    if isinstance(split, Subset):
        return DIGITS
    if isinstance(split, Linear):
        terms, _, threshold = _scaled(split, full=False)
        value = sum(
            a * (float(row[f]) if level < 0 else float(row[f] == level))
            for a, f, level in zip(terms, split.features, split.levels, strict=True)
        )
        ends = [threshold]
    else:
        value = float(row[split.feature])
        ends = [split.threshold] if isinstance(split, Threshold) else [split.low, split.high]
    for digits in range(DIGITS, MAX_DIGITS):
        if all(value == end or number_text(value, digits) != number_text(end, digits) for end in ends):
            return digits
    return MAX_DIGITS


def _label(name: str) -> str:
    """A name on one line; quoted where it is empty or has blanks at its ends, so that it can be seen."""
    shown = " ".join(name.split()) if any(c in name for c in "\r\n\t\v\f\u2028\u2029\x85") else name
    return f'"{shown}"' if not shown or shown != shown.strip() else shown


def _unit(column: ColumnSchema) -> str:
    return f"{THIN}{column.unit}" if column.unit else ""


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain(value: Decimal) -> str:
    text = f"{value:,f}" if -20 < value.adjusted() < 21 else f"{value}"
    return _trim(text) if "E" not in text else text
