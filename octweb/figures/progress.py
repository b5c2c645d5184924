"""Draw the live chart of incumbent, bound and gap. Steps are never smoothed."""

from __future__ import annotations

from typing import Any

from octweb.figures.growth import LEGEND, TOP_PIXELS, mark_moment, until

OBJECTIVE = "objective (0 to 1, higher is better)"  # title of the axis where no plainer words are true


def progress_figure(
    records: list[dict[str, Any]], *, now: float = 0.0, at: int | None = None, measure: str = OBJECTIVE
) -> dict[str, Any]:
    """Return Plotly JSON of progress records in order. Colours are CSS variables that the page resolves.

    Lines are labelled at their ends, so the legend lists only the dots: a phone has little space for it. An unknown
    bound or incumbent has no line. The y-axis starts near the first incumbent. The last values are extended to `now`
    (seconds), because a search without progress writes no record. A bracket at the end shows the gap. `at` is the `line` of
    the record whose tree the page shows.
    """
    steps = [r for r in records if r.get("t") is not None]
    incumbent = [(r["t"], r["incumbent"]) for r in steps if r.get("incumbent") is not None]
    bound = [(r["t"], r["bound"]) for r in steps if r.get("bound") is not None]
    if steps:
        end = max(steps[-1]["t"], now)
        incumbent = _until(incumbent, end)
        bound = _until(bound, end)
    data: list[dict[str, Any]] = []
    if bound and incumbent:
        # before the first incumbent there is no gap, so the tinted area begins there
        data.append(_line(_from(bound, incumbent[0][0]), "gap", {"width": 0}) | {"hoverinfo": "skip"})
        data.append(
            _line(incumbent, "gap", {"width": 0})
            | {"fill": "tonexty", "fillcolor": "var(--gapfill)", "hoverinfo": "skip"}
        )
    if bound:
        data.append(_line(bound, "bound", {"color": "var(--bound)", "width": 2, "dash": "dash"}))
    if incumbent:
        data.append(_line(incumbent, "incumbent", {"color": "var(--incumbent)", "width": 2}))
    trees = [r for r in steps if "tree" in r and r.get("incumbent") is not None]
    if trees:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "new best tree",
                "x": [r["t"] for r in trees],
                "y": [r["incumbent"] for r in trees],
                "customdata": [r.get("line") for r in trees],
                "marker": {"color": "var(--card)", "size": 9, "line": {"color": "var(--incumbent)", "width": 2}},
                "hovertemplate": "%{y:.4f} after %{x:.1f} s<extra>new best tree</extra>",
            }
        )
    layout = _layout(incumbent, bound, measure)
    if data:
        layout["xaxis"]["range"] = until(max(steps[-1]["t"], now))
    shapes, annotations = mark_moment(steps, at)
    bracket, words = _bracket(incumbent, bound)
    if shapes or bracket:
        layout["shapes"] = bracket + shapes
    if annotations or words:
        layout["annotations"] = [*layout.get("annotations", []), *words, *annotations]
    return {"data": data, "layout": layout}


def _bracket(
    incumbent: list[tuple[float, float]], bound: list[tuple[float, float]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the line of the gap at the right end, and the labels of incumbent, bound and gap."""
    ends = [("best", incumbent, "var(--incumbent)", "top"), ("bound", bound, "var(--bound)", "bottom")]
    words = [
        _end_label(points[-1], f"{name} {points[-1][1]:.4g}", colour, anchor if incumbent and bound else "middle")
        for name, points, colour, anchor in ends
        if points
    ]
    if not (incumbent and bound) or bound[-1][1] - incumbent[-1][1] <= 0:
        return [], words
    t = incumbent[-1][0]
    low = incumbent[-1][1]
    high = bound[-1][1]
    line = {
        "type": "line", "x0": t, "x1": t, "y0": low, "y1": high, "line": {"color": "var(--bound)", "width": 3},
    }  # fmt: skip
    gap = f"gap {100 * (high - low) / abs(low):.3g}\u202f%" if low else "gap"
    return [line], [*words, _end_label((t, (low + high) / 2), f"<b>{gap}</b>", "var(--bound)", "middle")]


def _end_label(point: tuple[float, float], text: str, colour: str, anchor: str) -> dict[str, Any]:
    """Return an annotation to the right of the end of a line."""
    return {
        "text": text, "showarrow": False, "x": point[0], "y": point[1], "xanchor": "left", "yanchor": anchor, "xshift": 8,
        "font": {"size": 12, "color": colour},
    }  # fmt: skip


def _until(points: list[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Extend the last value to `end`."""
    return [*points, (end, points[-1][1])] if points and end > points[-1][0] else points


def _from(points: list[tuple[float, float]], start: float) -> list[tuple[float, float]]:
    """Return the steps from `start` on. They begin with the value that applied at `start`."""
    before = [value for t, value in points if t <= start]
    return [(start, before[-1] if before else points[0][1]), *((t, value) for t, value in points if t > start)]


def _line(points: list[tuple[float, float]], name: str, style: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [t for t, _ in points],
        "y": [value for _, value in points],
        "line": style | {"shape": "hv"},
        "showlegend": False,
        "hovertemplate": f"{name} %{{y:.4f}} after %{{x:.1f}} s<extra></extra>",
    }


def _layout(incumbent: list[tuple[float, float]], bound: list[tuple[float, float]], measure: str) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "margin": {"l": 56, "r": 96, "t": TOP_PIXELS, "b": 44},
        "height": 360,
        "uirevision": "progress",  # keeps the user's zoom while the lines grow
        "showlegend": True,
        "legend": dict(LEGEND),
        "xaxis": {
            "title": {"text": "seconds since the search began"},
            "rangemode": "tozero",
            "gridcolor": "var(--grid)",
        },
        "yaxis": {"title": {"text": measure}, "gridcolor": "var(--grid)"},
    }
    values = [value for _, value in incumbent + bound]
    if incumbent:
        low = incumbent[0][1]
        high = max(values)
        margin = max(0.01, 0.08 * (high - low))
        layout["yaxis"]["range"] = [low - margin, high + margin]
    elif values and max(values) > 0:
        layout["yaxis"]["range"] = [0, 1.08 * max(values)]
    if not values:
        layout["xaxis"]["range"] = [0, 1]
        layout["yaxis"]["range"] = [0, 1]
        layout["annotations"] = [
            {
                "text": "no tree and no bound",
                "showarrow": False,
                "x": 0.5,
                "y": 0.5,
                "xref": "paper",
                "yref": "paper",
            }
        ]
    return layout
