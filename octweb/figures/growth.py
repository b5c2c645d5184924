"""Draw the live chart of a heuristic: splits found, and correct training rows.

A heuristic has no bound, so the chart shows no gap.
"""

from __future__ import annotations

from typing import Any

from trainer.tree.render.palette import axis, count_axis, frame

TOP_PIXELS = 48  # pixels above a chart, for its legend and the label of the shown step
LEGEND = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.08, "yanchor": "bottom"}
NOTHING = {"text": "no question found yet", "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}


def growth_figure(
    records: list[dict[str, Any]], *, rows: int = 0, now: float = 0.0, at: int | None = None
) -> dict[str, Any]:
    """Return Plotly JSON of progress records in order: splits as steps, correct rows as a line with its own axis.

    `rows` is the number of training rows (0: unknown). The last number of splits is extended to `now` (seconds). `at`
    is the `line` of the record whose tree the page shows.
    """
    steps = [r for r in records if r.get("leaves") and r.get("t") is not None]
    layout = frame(
        height=360,
        margin={"l": 56, "r": 64, "t": TOP_PIXELS, "b": 44},
        xaxis=axis("seconds since the search began", rangemode="tozero"),
        yaxis=count_axis("questions found", max((r["leaves"] - 1 for r in steps), default=0)),
        hovermode="closest",
        uirevision="growth",
    )
    if not steps:
        layout["annotations"] = [dict(NOTHING)]
        return {"data": [], "layout": layout}
    data = [_questions(steps, max(now, steps[-1]["t"]))]
    layout["xaxis"]["range"] = until(max(now, steps[-1]["t"]))
    placed = [r for r in steps if r.get("correct") is not None]
    if placed:
        data.append(_correct_share(placed, rows))
        layout["yaxis2"] = _right_axis(placed, rows)
    layout |= {"showlegend": True, "legend": dict(LEGEND)}
    layout["shapes"], layout["annotations"] = mark_moment(steps, at)
    return {"data": data, "layout": layout}


def until(end: float) -> list[float]:
    """Return the range of an axis of seconds. Plotly's own range would include the labels beside the last values."""
    return [0.0, 1.02 * end or 1.0]


def _questions(steps: list[dict[str, Any]], end: float) -> dict[str, Any]:
    counts = [(0.0, 0), *((r["t"], r["leaves"] - 1) for r in steps)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "questions found",
        "x": [*(t for t, _ in counts), end],
        "y": [*(n for _, n in counts), counts[-1][1]],
        "line": {"color": "var(--incumbent)", "width": 2, "shape": "hv"},
        "hovertemplate": "%{y} questions after %{x:.1f} s<extra></extra>",
    }


def _correct_share(placed: list[dict[str, Any]], rows: int) -> dict[str, Any]:
    scale = 100 / rows if rows else 1.0
    unit = "\u202f%" if rows else " rows"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "training rows right",
        "yaxis": "y2",
        "x": [r["t"] for r in placed],
        "y": [scale * r["correct"] for r in placed],
        "customdata": [r.get("line") for r in placed],
        "line": {"color": "var(--bound)", "width": 2, "dash": "dash"},
        "marker": {"color": "var(--card)", "size": 9, "line": {"color": "var(--bound)", "width": 2}},
        "hovertemplate": f"%{{y:.4g}}{unit} right after %{{x:.1f}} s<extra></extra>",
    }


def _right_axis(placed: list[dict[str, Any]], rows: int) -> dict[str, Any]:
    options = {"overlaying": "y", "side": "right", "showgrid": False}
    if not rows:
        return count_axis("training rows right", max(r["correct"] for r in placed)) | options
    # explicit ticks, because an overlaid axis would copy the other axis's positions, such as 71.9
    ticks = {"range": [0, 104], "tickmode": "linear", "tick0": 0, "dtick": 20}
    return axis("training rows right, %") | options | ticks


def mark_moment(steps: list[dict[str, Any]], at: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a vertical line at the time of the shown tree, and its label.

    Both are empty if no record has line `at`.
    """
    record = next((r for r in steps if at is not None and r.get("line") == at), None)
    if record is None:
        return [], []
    t = record["t"]
    line = {
        "type": "line", "xref": "x", "x0": t, "x1": t, "yref": "paper", "y0": 0, "y1": 1,
        "line": {"color": "var(--ink-2)", "width": 1, "dash": "dot"},
    }  # fmt: skip
    words = {
        "text": f"shown: {t:.3g}\u202fs", "showarrow": False, "xref": "x", "x": t, "xanchor": "left", "yref": "paper", "y": 1,
        "yanchor": "bottom", "font": {"size": 12, "color": "var(--ink-2)"},
    }  # fmt: skip
    return [line], [words]
