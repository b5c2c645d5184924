"""Reachable pairs of sensitivity and specificity, each with its proof; a chosen one stands out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from octweb.figures.palette import axis, frame


def reach_figure(points: Sequence[dict[str, Any]], chosen: int | None = None) -> dict[str, Any]:
    """Plotly JSON; a point has `sensitivity`, `specificity`, `bound` (0 to 1) and `proved`, by rising sensitivity.

    A point's customdata is its position. Between two points a required sensitivity costs as much as at the next one.
    """
    x = [100 * p["sensitivity"] for p in points]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "best specificity for a required sensitivity",
            "x": [0.0, *x],
            "y": [100 * p["specificity"] for p in [*points[:1], *points]],
            "line": {"color": "var(--incumbent)", "width": 2, "shape": "vh"},
            "hoverinfo": "skip",
        }
    ]
    if not all(p["proved"] for p in points):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "no tree is above",
                "x": [0.0, *x],
                "y": [100 * p["bound"] for p in [*points[:1], *points]],
                "line": {"color": "var(--bound)", "width": 2, "shape": "vh", "dash": "dash"},
                "hoverinfo": "skip",
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "trees",
            "x": x,
            "y": [100 * p["specificity"] for p in points],
            "customdata": list(range(len(points))),
            "hovertext": [words(p) for p in points],
            "hovertemplate": "%{hovertext}<extra></extra>",
            "marker": {
                "color": "var(--ink)",
                "size": [marker_size(len(points), i == chosen) for i in range(len(points))],
                "symbol": ["square" if p["proved"] else "circle-dot" for p in points],
            },
        }
    )
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


def marker_size(points: int, is_chosen: bool) -> int:
    """Pixels; many points are drawn small, so that neighbours stay apart."""
    return 13 if is_chosen else 9 if points <= 40 else 6


def words(point: dict[str, Any]) -> str:
    """A point in words."""
    proof = "proved" if point["proved"] else f"not proved: at most {100 * point['bound']:.1f} %"
    return f"sensitivity {100 * point['sensitivity']:.1f} %, specificity {100 * point['specificity']:.1f} %, {proof}"
