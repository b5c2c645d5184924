"""Draw histograms stacked by class, with the thresholds of a split.

Counts cover all rows. Bins are closed on the right, like the test "≤".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from trainer.dtypes import CodeArray, FloatArray
from trainer.tree.render.names import named_styles
from trainer.tree.render.palette import LEGEND, axis, class_styles, count_axis, escape, frame

BINS = 32
MAX_FLOAT64 = float(np.finfo(np.float64).max)
THINNEST = 1000  # a bar is at least as wide as the plot divided by this
FEW = 12  # up to this many distinct values, each has its own bar


def histogram_figure(
    values: FloatArray,
    codes: CodeArray,
    classes: Sequence[str],
    *,
    title: str,
    cuts: Sequence[float] = (),
    heads: tuple[str, str] | None = None,
    empty_left: bool | None = None,
    ranks: Sequence[str] = (),
) -> dict[str, Any]:
    """Return Plotly JSON of the finite `values` (n,) by class code `codes` (n,), with lines at `cuts`.

    `heads` are the headings of the left and right side. `empty_left` adds a bar of the empty cells at the left (True)
    or right end (False); None adds none. `ranks` are the words of the values 1, 2, 3.
    """
    empty = codes[np.isnan(values)] if empty_left is not None else codes[:0]
    finite = np.isfinite(values)
    values = values[finite]
    codes = codes[finite]
    lines = [float(c) for c in cuts if np.isfinite(c)]
    at, widths, counts = stacked_bars(values, codes, len(classes), lines)
    if len(empty):
        at, widths, counts = _with_empty(at, widths, counts, empty, left=bool(empty_left))
    # a bar of up to 33 ranks has at most one of them, and its centre rounds to it
    words = [escape(ranks[min(max(round(x), 1), len(ranks)) - 1]) for x in at.tolist()] if ranks else []
    if words and len(empty):
        words[0 if empty_left else -1] = "empty"
    near = "%{customdata}" if words else "%{x:.4~g}"
    traces: list[dict[str, Any]] = []
    for style, group, name in named_styles(class_styles(classes)):
        rows = counts[group].sum(axis=0)
        if rows.any():
            traces.append(
                {
                    "type": "bar",
                    "name": name,
                    "x": at.tolist(),
                    "y": rows.tolist(),
                    "width": widths.tolist(),
                    "marker": style.bar,
                    "hovertemplate": f"%{{y:,}} rows near {near}<extra>{escape(style.name)}</extra>",
                }
                | ({"customdata": words} if words else {})
            )
    layout = frame(
        height=300,
        barmode="stack",
        bargap=0,
        margin={"l": 48, "r": 12, "t": 56 if lines else 32, "b": 44},
        xaxis=axis(title, showgrid=False),
        yaxis=count_axis("rows", counts.sum(axis=0).max(initial=0)),
        showlegend=True,
        legend=LEGEND | {"y": 1.08 if lines else 1.02},
        shapes=[cut_line(x) for x in lines],
    )
    if lines:
        layout["xaxis"]["range"] = _span(at, widths, lines)
    if heads and lines:
        layout["annotations"] = side_words(heads, one_cut=len(lines) == 1)
    if len(empty):
        place = 0 if empty_left else -1
        layout["annotations"] = [*layout.get("annotations", []), _empty_word(float(at[place]), len(empty))]
    return {"data": traces, "layout": layout}


def _with_empty(
    at: FloatArray, widths: FloatArray, counts: np.ndarray, codes: CodeArray, *, left: bool
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Add a separate bar for empty cells with the class codes `codes`."""
    low = float(at[0] - widths[0] / 2) if len(at) else 0.0
    high = float(at[-1] + widths[-1] / 2) if len(at) else 0.0
    width = 0.05 * (high - low) or 1.0
    place = low - 1.5 * width if left else high + 1.5 * width
    bar = np.bincount(codes, minlength=len(counts)).reshape(-1, 1)

    def order(own: np.ndarray, others: np.ndarray) -> list[np.ndarray]:
        return [own, others] if left else [others, own]

    return (
        np.concatenate(order(np.array([place]), at)),
        np.concatenate(order(np.array([width]), widths)),
        np.concatenate(order(bar, counts), axis=1),
    )


def _empty_word(x: float, rows: int) -> dict[str, Any]:
    """Return the label above the bar of empty cells."""
    font = {"size": 11, "color": "var(--ink-2)"}
    return {"text": "empty", "x": x, "y": rows, "yanchor": "bottom", "showarrow": False, "font": font}


def cut_line(x: float) -> dict[str, Any]:
    """Return the vertical line at a threshold, over the full height."""
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": "var(--cut)", "width": 2},
    }


def side_words(heads: tuple[str, str], *, one_cut: bool) -> list[dict[str, Any]]:
    """Return the headings above the figure: at both ends for one threshold, where they never overlap, otherwise centred."""
    if one_cut:
        return [_word(heads[0], 0, "left"), _word(heads[1], 1, "right")]
    return [_word(" | ".join(heads), 0.5, "center")]


def _word(text: str, x: float, anchor: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": anchor,
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 11, "color": "var(--ink)"},
    }


def stacked_bars(
    values: FloatArray, codes: CodeArray, classes: int, cuts: Sequence[float]
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Return centres and widths (bars,) and counts int64 (classes, bars). No bar crosses a cut."""
    if not len(values):
        return np.zeros(0), np.zeros(0), np.zeros((classes, 0), np.int64)
    distinct = np.unique(values)
    if len(distinct) <= FEW and _far_apart(distinct):
        place = np.searchsorted(distinct, values)
        starts, ends = _own_bars(distinct, cuts)
    else:
        edges = _edges(float(distinct[0]), float(distinct[-1]), cuts)
        place = np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
        starts = edges[:-1]
        ends = edges[1:]
    counts = np.zeros((classes, len(starts)), np.int64)
    np.add.at(counts, (codes, place), 1)
    used = np.flatnonzero(counts.any(axis=0))
    keep = slice(int(used[0]), int(used[-1]) + 1)
    return (starts / 2 + ends / 2)[keep], (ends - starts)[keep], counts[:, keep]


def _far_apart(distinct: FloatArray) -> bool:
    """Return whether each value can have its own visible bar.

    No gap may be near the rounding error, or tiny compared with the range.
    """
    gaps = np.diff(distinct / 2)
    return bool((gaps > np.maximum(4 * np.spacing(np.abs(distinct[1:])), gaps.sum() / THINNEST)).all())


def _own_bars(distinct: FloatArray, cuts: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return starts and ends of one bar around each value. Bars end at cuts instead of crossing them."""
    half = (
        0.8 * float(np.diff(distinct / 2).min()) if len(distinct) > 1 else 0.4 * max(1.0, abs(float(distinct[0])) / 10)
    )
    with np.errstate(over="ignore"):
        starts = np.maximum(distinct - half, -MAX_FLOAT64)
        ends = np.minimum(distinct + half, MAX_FLOAT64)
    for cut in cuts:  # a value at the cut belongs to the left side
        ends = np.where((distinct <= cut) & (ends > cut), cut, ends)
        starts = np.where((distinct > cut) & (starts < cut), cut, starts)
    return starts, ends


def _edges(low: float, high: float, cuts: Sequence[float]) -> FloatArray:
    """Return edges of about BINS bars of nearly equal width from `low` to `high`. Cuts within the range are edges."""
    step = high / BINS - low / BINS  # `high - low` could overflow
    if step <= 0:
        step = max(abs(high) / BINS, float(np.spacing(abs(high))))
    first = max(-MAX_FLOAT64, low - max(step, float(np.spacing(abs(low))))) if low in cuts else low
    stops = [first, *sorted({c for c in cuts if low <= c < high}), high]
    parts = [_stretch(a, b, max(1, round(b / step - a / step))) for a, b in pairwise(stops)]
    return np.unique(np.append(np.concatenate(parts), high))  # edges between neighbouring doubles can be equal


def _stretch(a: float, b: float, count: int) -> FloatArray:
    """Return `count` equally spaced edges from `a` on. `b` is excluded."""
    if np.isfinite(b - a):
        return np.linspace(a, b, count, endpoint=False)
    return 4 * np.linspace(a / 4, b / 4, count, endpoint=False)


def _span(at: FloatArray, widths: FloatArray, cuts: Sequence[float]) -> list[float]:
    """Return the x-range: all bars and all cuts, with a small margin."""
    ends = [*cuts]
    if len(at):
        ends += [float(at[0] - widths[0] / 2), float(at[-1] + widths[-1] / 2)]
    low = min(ends)
    high = max(ends)
    air = 0.02 * high - 0.02 * low or 1.0
    return [max(low - air, -MAX_FLOAT64), min(high + air, MAX_FLOAT64)]
