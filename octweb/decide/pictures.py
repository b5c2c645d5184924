"""Compute the small pictures of a decision page. The template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from octweb.figures.histogram import stacked_bars
from octweb.registry.page.scene import ModelScene
from trainer.table import ColumnSchema
from trainer.tree.nodes import Node
from trainer.tree.numbers import number_text
from trainer.tree.render.palette import short, swatch
from trainer.tree.splits.base import BELOW, BETWEEN

WIDTH = 560
HEIGHT = 52
SIDE = 14
# pixels: minimum and maximum width of a bar, and gap between two bars
THIN = 3.0
WIDE = 18.0
AIR = 0.6
TICKS = 5
RANK_LETTERS = 14  # letters of a rank below a tick


def rows_picture(scene: ModelScene, node: Node, value: float) -> dict[str, Any] | None:
    """Return the training rows at a numeric split: stacked bars, thresholds, and the row's own value.

    Return None for other splits, without rows, and for a missing value.
    """
    if scene.rows is None or node.split is None:
        return None
    flat = node.split.flat(scene.tree.schema)
    if flat.test not in (BELOW, BETWEEN) or not np.isfinite(value):
        return None
    at = scene.reaching(node.id, "training")
    values = scene.rows.matrix[at, flat.feature]
    codes = scene.rows.codes[at]
    is_finite = np.isfinite(values)
    values = values[is_finite]
    codes = codes[is_finite]
    if not len(values):
        return None
    cuts = [end for end in (flat.low, flat.high) if np.isfinite(end)]
    low, high = _ends(values, [value, *cuts])
    bars = _bars(values, codes, len(scene.tree.classes), low, high, cuts)
    return {
        "width": WIDTH,
        "bars": bars,
        "cuts": [_x(c, low, high) for c in cuts],
        "mark": _x(value, low, high),
        "ticks": [
            {"x": _x(tick, low, high), "text": text}
            for tick, text in labelled_ticks(scene.tree.schema[flat.feature], low, high)
        ],
        "rows": len(at),
        "outside": int(((values < low) | (values > high)).sum()),
    }


def _ends(values: np.ndarray, marked: list[float]) -> tuple[float, float]:
    """Return the range of the central 98 % of the values, widened to include the marked ones."""
    low, high = (float(q) for q in np.quantile(values, (0.01, 0.99)))
    low = min(low, *marked)
    high = max(high, *marked)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _bars(
    values: np.ndarray, codes: np.ndarray, classes: int, low: float, high: float, cuts: Sequence[float]
) -> list[dict[str, Any]]:
    """Return rectangles for the rows from `low` to `high`, stacked by class. No rectangle crosses a threshold."""
    inside = (values >= low) & (values <= high)
    at, widths, counts = stacked_bars(values[inside], codes[inside], classes, cuts)
    most = max(1, int(counts.sum(axis=0).max(initial=1)))
    lines = [_x(c, low, high) for c in cuts]
    bars = []
    for place, width, rows in zip(at.tolist(), widths.tolist(), counts.T.tolist(), strict=True):
        left, right = _span(_x(place - width / 2, low, high), _x(place + width / 2, low, high), lines)
        bottom = float(HEIGHT)
        for k, n in enumerate(rows):
            if n:
                tall = HEIGHT * n / most
                bottom -= tall
                bars.append({"x": left, "y": bottom, "w": right - left, "h": tall, "look": swatch(k, classes)})
    return bars


def _span(left: float, right: float, lines: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a bar in pixels. The width is limited, and the bar does not cross a line."""
    middle = (left + right) / 2
    half = min((right - left - AIR) / 2, WIDE / 2)
    left = middle - half
    right = middle + half
    below = max((x for x in lines if x <= middle), default=-np.inf)
    above = min((x for x in lines if x > middle), default=np.inf)
    right = float(min(max(right, left + THIN), above))
    return float(max(min(left, right - THIN), below)), right


def _x(value: float, low: float, high: float) -> float:
    return SIDE + (value - low) / (high - low) * (WIDTH - 2 * SIDE)


def labelled_ticks(column: ColumnSchema, low: float, high: float) -> list[tuple[float, str]]:
    """Return ticks between the ends with their texts: words of ranks, or round numbers."""
    if not column.ranks:
        return [(tick, number_text(tick, 4)) for tick in _ticks(low, high)]
    first = max(1, int(np.ceil(low)))
    last = min(len(column.ranks), int(np.floor(high)))
    step = max(1, -(-(last - first + 1) // TICKS))
    return [(float(k), short(column.ranks[k - 1], RANK_LETTERS)) for k in range(first, last + 1, step)]


def _ticks(low: float, high: float) -> list[float]:
    """Return up to ten round numbers between the ends."""
    raw = (high - low) / TICKS
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    ticks = [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]
    return [0.0 if abs(t) < step * 1e-9 else float(f"{t:.12g}") for t in ticks][: 2 * TICKS]


def share_picture(training: dict[str, Any], unseen: dict[str, Any] | None) -> dict[str, Any]:
    """Return the positions of the accuracies on an axis, and of an interval.

    The interval is that of unseen rows, or of training rows if there are none.
    """
    shares = [training["share"], *(unseen["interval"] if unseen else training["interval"])]
    low = 0.5 if min(shares) >= 0.5 else 0.0

    def x(share: float) -> float:
        return 10 + (share - low) / (1 - low) * 400

    steps = np.linspace(low, 1.0, 6)
    return {
        "ticks": [{"x": x(float(s)), "text": f"{100 * s:.0f}"} for s in steps],
        "training": x(training["share"]),
        "unseen": None if unseen is None else x(unseen["share"]),
        "from": x(shares[1]),
        "to": x(shares[2]),
    }
