"""Draw accuracy against size of several models, with their Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.tree.numbers import points_text
from trainer.tree.render.palette import axis, count_axis, escape, frame, short, text_width

# estimated size of the plot in pixels, used to keep names from overlapping
WIDE = 900
HIGH = 280
FONT = 12
SYMBOLS = {"proved": "square", "gap": "circle-dot", "heuristic": "circle-open"}


def frontier_figure(
    points: Sequence[dict[str, Any]], *, rows: str = "unseen rows", size: str = "leaves"
) -> dict[str, Any]:
    """Return Plotly JSON of one marker per model, and the Pareto front.

    A point has `name`, `leaves`, `accuracy` (0 to 1 or None), and may have `sd`, `id` and `claim`. `claim` is "proved",
    "gap" or "heuristic", and sets the marker. Points without accuracy are not drawn. `rows` names the rows on which
    accuracy was measured. `size` is the key of the x-axis: "leaves" or "coefficients".
    """
    known = sorted((p for p in points if p.get("accuracy") is not None), key=lambda p: (p[size], -p["accuracy"]))
    data: list[dict[str, Any]] = []
    front = _frontier(known)
    if len(front) > 1:
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "frontier",
                "x": [p[size] for p in front],
                "y": [100 * p["accuracy"] for p in front],
                "line": {"color": "var(--line-strong)", "width": 1.5, "shape": "hv", "dash": "dot"},
                "hoverinfo": "skip",
            }
        )
    if known:
        data.append(_points(known, size))
    largest = max((p[size] for p in known), default=1)
    layout = frame(
        height=380,
        margin={"l": 56, "r": 24, "t": 24, "b": 48},
        xaxis=count_axis(size, largest, range=[0, 1.08 * largest]),
        yaxis=axis(f"accuracy on {rows}, %"),
        hovermode="closest",
    )
    if not known:
        layout["annotations"] = [
            {
                "text": f"no model has been evaluated on {rows}",
                "showarrow": False,
                "x": 0.5,
                "y": 0.5,
                "xref": "paper",
                "yref": "paper",
            }
        ]
    return {"data": data, "layout": layout}


def _points(known: Sequence[dict[str, Any]], size: str) -> dict[str, Any]:
    largest = max(p[size] for p in known)
    spread = [100 * (p.get("sd") or 0.0) for p in known]
    bars = {"type": "data", "array": spread, "color": "var(--ink-3)", "thickness": 1.25, "width": 4}
    words = _label_positions(known, size, largest)
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": "models",
        "x": [p[size] for p in known],
        "y": [100 * p["accuracy"] for p in known],
        # standard deviation over the folds
        **({"error_y": bars} if any(p.get("sd") is not None for p in known) else {}),
        "text": [text for text, _ in words],
        "textposition": [place for _, place in words],
        "textfont": {"color": "var(--ink)", "size": FONT},
        "cliponaxis": False,
        "customdata": [p.get("id") for p in known],
        "hovertext": [_hover(p) for p in known],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "color": "var(--ink)",
            "size": 11,
            "symbol": [SYMBOLS.get(str(p.get("claim")), "circle") for p in known],
            "line": {"color": "var(--ink)", "width": 1.5},
        },
    }


def _label_positions(known: Sequence[dict[str, Any]], size: str, largest: int) -> list[tuple[str, str]]:
    """Return the label of each point and its position. A label is "" where it would overlap another.

    The tooltip and the table still show the name.
    """
    shares = [p["accuracy"] + side * (p.get("sd") or 0.0) for p in known for side in (-1, 1)]
    low = min(shares)
    high = max(shares)
    boxes: list[tuple[float, float, float, float]] = []
    positions = []
    for p in known:
        name = short(str(p["name"]), 28)
        x = WIDE * p[size] / (1.08 * largest)
        y = HIGH * (high - p["accuracy"]) / max(high - low, 0.01)
        sides = ("left", "right") if 3 * p[size] > 2 * largest else ("right", "left")
        for place in [f"{row} {side}" for side in sides for row in ("top", "bottom")]:
            left = x + 8 if place.endswith("right") else x - 8 - text_width(name, FONT)
            top = y - 20 if place.startswith("top") else y + 4
            box = (left, top, left + text_width(name, FONT), top + 16)
            if left >= 0 and not any(_overlap(box, other) for other in boxes):
                boxes.append(box)
                positions.append((escape(name), place))
                break
        else:
            positions.append(("", f"top {sides[0]}"))
    return positions


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    """Return whether two boxes (left, top, right, bottom) overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _hover(p: dict[str, Any]) -> str:
    spread = f" ± {100 * p['sd']:.1f}" if p.get("sd") is not None else ""
    leaves = "1 leaf" if p["leaves"] == 1 else f"{p['leaves']:,} leaves"
    return f"<b>{escape(str(p['name']))}</b><br>{points_text(p['accuracy'])}\u202f%{spread}<br>{leaves}"


def _frontier(known: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points that are more accurate than all smaller ones.

    `known` is sorted by ascending size, then by descending accuracy.
    """
    front: list[dict[str, Any]] = []
    for p in known:
        if not front or p["accuracy"] > front[-1]["accuracy"]:
            front.append(p)
    return front
