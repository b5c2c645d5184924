"""Histograms stacked by class with the cut of a split; counts are of all rows, bins close on the right as the test does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from octweb.figures.palette import LEGEND, axis, class_styles, drawn, escape, frame, short
from trainer.dtypes import CodeArray, FloatArray

BINS = 32
FEW = 12  # up to so many different values each has a bar of its own


def histogram_figure(
    values: FloatArray,
    codes: CodeArray,
    classes: Sequence[str],
    *,
    title: str,
    cuts: Sequence[float] = (),
    head: str = "",
) -> dict[str, Any]:
    """Plotly JSON of the finite `values` (n,) by class `codes` (n,); ink lines at `cuts`, `head` in words above them."""
    finite = np.isfinite(values)
    values, codes = values[finite], codes[finite]
    lines = [float(c) for c in cuts if np.isfinite(c)]
    at, widths, counts = _bars(values, codes, len(classes), lines)
    traces: list[dict[str, Any]] = []
    for style, group in drawn(class_styles(classes)):
        rows = counts[group].sum(axis=0)
        if rows.any():
            traces.append(
                {
                    "type": "bar",
                    "name": escape(short(style.name)),
                    "x": at.tolist(),
                    "y": rows.tolist(),
                    "width": widths.tolist(),
                    "marker": style.bar,
                    "hovertemplate": "%{y:,} rows near %{x:.4~g}<extra>" + escape(style.name) + "</extra>",
                }
            )
    layout = frame(
        height=320,
        barmode="stack",
        bargap=0,
        margin={"l": 48, "r": 12, "t": 56 if lines else 32, "b": 44},
        xaxis=axis(title, showgrid=False),
        yaxis=axis("rows", rangemode="tozero"),
        showlegend=True,
        legend=LEGEND | {"y": 1.08 if lines else 1.02},
        shapes=[cut_line(x) for x in lines],
    )
    if lines:
        layout["xaxis"]["range"] = _span(at, widths, lines)
    if head and lines:
        layout["annotations"] = [cut_head(head, sum(lines) / len(lines), layout["xaxis"]["range"])]
    return {"data": traces, "layout": layout}


def cut_line(x: float) -> dict[str, Any]:
    """The ink line at a cut, over the full height."""
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": "var(--cut)", "width": 2},
    }


def cut_head(text: str, x: float, span: Sequence[float]) -> dict[str, Any]:
    """Words above a cut, kept inside the picture when the cut lies near an end."""
    place = (x - span[0]) / (span[1] - span[0])
    anchor = "left" if place < 0.3 else "right" if place > 0.7 else "center"
    return {
        "text": text,
        "x": x,
        "y": 1,
        "yref": "paper",
        "xanchor": anchor,
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": "var(--ink)"},
    }


def _bars(
    values: FloatArray, codes: CodeArray, classes: int, cuts: Sequence[float]
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Centres, widths (bars,) and counts int64 (classes, bars); the first cut is an edge, so that no bar lies on both sides."""
    if not len(values):
        return np.zeros(0), np.zeros(0), np.zeros((classes, 0), np.int64)
    distinct = np.unique(values)
    if len(distinct) <= FEW:
        gap = float(np.diff(distinct).min()) if len(distinct) > 1 else max(1.0, abs(float(distinct[0])) / 10)
        place, at, widths = np.searchsorted(distinct, values), distinct, np.full(len(distinct), 0.8 * gap)
    else:
        low, high = float(distinct[0]), float(distinct[-1])
        step = (high - low) / BINS
        if not np.isfinite(step) or step <= 0:
            step = max(abs(high), 1.0)
        anchor = cuts[0] if cuts and low <= cuts[0] <= high else low
        before = int(np.ceil((anchor - low) / step)) + 1
        edges = anchor + step * np.arange(-before, BINS + 3 - before + 1)
        if cuts:
            edges[before] = anchor
        place = np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
        at, widths = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
    counts = np.zeros((classes, len(at)), np.int64)
    np.add.at(counts, (codes, place), 1)
    used = np.flatnonzero(counts.any(axis=0))
    keep = slice(int(used[0]), int(used[-1]) + 1)
    return at[keep], widths[keep], counts[:, keep]


def _span(at: FloatArray, widths: FloatArray, cuts: Sequence[float]) -> list[float]:
    """The x-range: all bars and all cuts with a little air."""
    ends = [*cuts]
    if len(at):
        ends += [float(at[0] - widths[0] / 2), float(at[-1] + widths[-1] / 2)]
    low, high = min(ends), max(ends)
    air = 0.02 * (high - low) or 1.0
    return [low - air, high + air]
