"""Draw calibration, ROC curve, and precision against recall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.tree.numbers import points_text
from trainer.tree.render.names import short_names
from trainer.tree.render.palette import axis, class_styles, escape, frame

HEIGHT = 300
TITLE = 40  # letters that fit beside or below a figure of 300 px
PERCENT = {"ticksuffix": "\u202f%"}


def calibration_figure(points: Sequence[dict[str, Any]], classes: Sequence[str]) -> dict[str, Any]:
    """Return Plotly JSON of one point per leaf: its training share against its share on held-out rows, in percent.

    Bars are 95 % intervals. A point has `leaf`, `label`, `code`, `promised`, `seen`, `rows` and `interval`.
    """
    styles = class_styles(classes)
    most = max((p["rows"] for p in points), default=1)
    data: list[dict[str, Any]] = []
    least = min((p["promised"] for p in points), default=0.0)
    left, bottom = (
        10 * math.floor(10 * min(0.9, at)) for at in (least, min([least, *(p["interval"][0] for p in points)]))
    )
    data.append(_line([left, 100], [left, 100], "as expected"))
    for style in dict.fromkeys(styles):
        style_points = [p for p in points if styles[p["code"]] == style]
        if style_points:
            data.append(_leaf_points(style_points, style, most))
    layout = frame(
        height=HEIGHT,
        margin={"l": 52, "r": 22, "t": 12, "b": 44},
        xaxis=axis("expected, from the training rows", range=[left - 2, 102], **PERCENT),
        yaxis=axis("observed on new rows", range=[bottom - 2, 102], **PERCENT),
        hovermode="closest",
    )
    return {"data": data, "layout": layout}


def _leaf_points(points: Sequence[dict[str, Any]], style: Any, most: int) -> dict[str, Any]:
    seen = [100 * p["seen"] for p in points]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": escape(style.name),
        "x": [100 * p["promised"] for p in points],
        "y": seen,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [100 * p["interval"][1] - y for p, y in zip(points, seen, strict=True)],
            "arrayminus": [y - 100 * p["interval"][0] for p, y in zip(points, seen, strict=True)],
            "color": "var(--ink-2)",
            "thickness": 1.2,
            "width": 0,
        },
        "customdata": [p["leaf"] for p in points],
        "hovertext": [
            f"<b>leaf {p['leaf']}: {escape(p['label'])}</b><br>expected {points_text(p['promised'])}\u202f%<br>"
            f"observed {points_text(p['seen'])}\u202f% of {p['rows']:,} rows<br>"
            f"95\u202f% interval {points_text(p['interval'][0])} to {points_text(p['interval'][1])}"
            for p in points
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "color": style.colour,
            "symbol": style.symbol,
            "size": [7 + 13 * math.sqrt(p["rows"] / most) for p in points],
            "line": {"color": "var(--card)", "width": 1},
        },
    }


def roc_figure(
    curve: Any, positive: str, negative: str, *, own: tuple[int, int], cheapest: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Return Plotly JSON of the ROC curve, with a dot for each cut-off.

    `own` is the pair of true and false positives of the tree, `cheapest` that of the cut-off with the least cost.
    """
    x = 100 * curve.fall_out
    y = 100 * curve.recall
    hover = _cut_words(curve, positive, negative)
    one, other = short_names([positive, negative])
    layout = frame(
        height=HEIGHT,
        margin={"l": 52, "r": 22, "t": 12, "b": 44},
        xaxis=_share_axis(f"share of {other}", f"predicted {one}", range=[-2, 102]),
        yaxis=_share_axis(f"share of {one}", "found", range=[-2, 104]),
        hovermode="closest",
    )
    marks = [(own, "this tree", "at its own cut-off", "circle", 12)]
    if cheapest is not None:
        marks.append((cheapest, "cheapest cut-off", "of the shares of the leaves", "diamond-open", 18))
    points = [
        _mark_point(100 * fp / max(1, curve.negatives), 100 * tp / max(1, curve.positives), words, name, symbol, size)
        for (tp, fp), name, words, symbol, size in marks
    ]
    return {"data": [_line([0, 100], [0, 100], "chance"), _curve(x, y, hover, "ROC"), *points], "layout": layout}


def recall_figure(curve: Any, positive: str, negative: str, *, own: tuple[int, int]) -> dict[str, Any]:
    """Return Plotly JSON of precision against recall. The dashed line is the share of the class among all rows."""
    x = 100 * curve.recall[1:]
    y = 100 * curve.precision[1:]
    hover = _cut_words(curve, positive, negative)[1:]
    one, _ = short_names([positive, negative])
    share = 100 * curve.positives / max(1, curve.positives + curve.negatives)
    layout = frame(
        height=HEIGHT,
        margin={"l": 52, "r": 22, "t": 12, "b": 44},
        xaxis=_share_axis(f"share of {one}", "found", range=[-2, 102]),
        yaxis=_share_axis("right among those", f"predicted {one}", range=[-2, 104]),
        hovermode="closest",
    )
    data = [_line([0, 100], [share, share], "always"), _curve(x, y, hover, "precision")]
    tp, fp = own
    if tp + fp:
        data.append(_mark_point(100 * tp / max(1, curve.positives), 100 * tp / (tp + fp), "at its own cut-off"))
    return {"data": data, "layout": layout}


def _cut_words(curve: Any, positive: str, negative: str) -> list[str]:
    words = []
    for score, tp, fp in zip(curve.score.tolist(), curve.tp.tolist(), curve.fp.tolist(), strict=True):
        head = f"never {escape(positive)}" if math.isinf(score) else f"leaves with at least {points_text(score)}\u202f%"
        words.append(
            f"<b>{head}</b><br>{tp:,} of {curve.positives:,} rows {escape(positive)} found<br>"
            f"{fp:,} of {curve.negatives:,} rows {escape(negative)} taken for it"
        )
    return words


def _curve(x: Any, y: Any, hover: list[str], name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": np.asarray(x, float).tolist(),
        "y": np.asarray(y, float).tolist(),
        "line": {"color": "var(--ink)", "width": 1.8},
        "marker": {"color": "var(--ink)", "size": 6},
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _mark_point(
    x: float, y: float, words: str, name: str = "this tree", symbol: str = "circle", size: int = 12
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [float(x)],
        "y": [float(y)],
        "marker": {
            "color": "var(--proved)",
            "size": size,
            "symbol": symbol,
            "line": {"color": "var(--card)", "width": 1.5},
        },
        "hovertemplate": f"<b>{name}</b> {words}<br>%{{x:.1f}}\u202f%, %{{y:.1f}}\u202f%<extra></extra>",
    }


def _share_axis(first: str, second: str, **more: Any) -> dict[str, Any]:
    """Return an axis in percent. A title that is too long for one line takes two."""
    options = axis(**more, **PERCENT)
    between = " " if len(first) + len(second) < TITLE else "<br>"
    options["title"]["text"] = escape(first) + between + escape(second)
    return options


def _line(x: list[float], y: list[float], name: str) -> dict[str, Any]:
    line = {"color": "var(--line-strong)", "width": 1.2, "dash": "dash"}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": line, "hoverinfo": "skip"}
