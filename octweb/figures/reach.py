"""Draw the Pareto front of sensitivity and specificity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.training.sensitivity_frontier import open_bound_text
from trainer.tree.numbers import points_text
from trainer.tree.render.palette import axis, frame


def reach_figure(
    points: Sequence[dict[str, Any]],
    chosen: int | None = None,
    *,
    bounds: Sequence[dict[str, float]] = (),
    finished: bool = False,
) -> dict[str, Any]:
    """Return Plotly JSON of the front.

    `points` ascend by sensitivity, and `chosen` is the index of the highlighted one. A point has `sensitivity`,
    `specificity`, `bound` (0 to 1) and `proved`. Its customdata is its index. `bounds` come from `frontier_bounds`. A
    required sensitivity between two points gets the specificity of the next.
    """
    x = [100 * p["sensitivity"] for p in points]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"best specificity {'' if finished else 'found '}for a required sensitivity",
            "x": [0.0, *x],
            "y": [100 * p["specificity"] for p in [*points[:1], *points]],
            "line": {"color": "var(--incumbent)", "width": 2, "shape": "vh"},
            "hoverinfo": "skip",
        }
    ]
    if bounds:
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "no tree is above",
                "x": [0.0, *(100 * b["sensitivity"] for b in bounds)],
                "y": [100 * b["bound"] for b in [*bounds[:1], *bounds]],
                "line": {"color": "var(--bound)", "width": 2, "shape": "vh", "dash": "dash"},
                "hoverinfo": "skip",
            }
        )
    data.append(_trees(points, chosen))
    low = min(x, default=0.0)
    return {
        "data": data,
        "layout": frame(
            height=360,
            margin={"l": 56, "r": 24, "t": 24, "b": 48},
            xaxis=axis("sensitivity, %", range=[max(0.0, low - 3), 101.5]),
            yaxis=axis("specificity, %", range=[-3, 103]),
            hovermode="closest",
            showlegend=len(data) > 2,
            legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        ),
    }


def _trees(points: Sequence[dict[str, Any]], chosen: int | None) -> dict[str, Any]:
    """Return one marker per tree."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "trees",
        "x": [100 * p["sensitivity"] for p in points],
        "y": [100 * p["specificity"] for p in points],
        "customdata": list(range(len(points))),
        "hovertext": [describe_point(p) for p in points],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "color": "var(--ink)",
            "size": [marker_size(len(points), i == chosen) for i in range(len(points))],
            "symbol": ["square" if p["proved"] else "circle-dot" for p in points],
        },
    }


def marker_size(points: int, is_chosen: bool) -> int:
    """Return the size in pixels. With many points, markers are smaller, so that neighbours stay apart."""
    if is_chosen:
        return 13
    return 9 if points <= 40 else 6


def describe_point(point: dict[str, Any]) -> str:
    """Describe a point in words for its tooltip."""
    proof = "proved" if point["proved"] else f"not proved: {open_bound_text(point)}"
    return (
        f"sensitivity {points_text(point['sensitivity'])} %, specificity {points_text(point['specificity'])} %, {proof}"
    )
