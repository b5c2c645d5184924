"""Draw misclassified rows by threshold, alone or below a histogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from octweb.figures.split.costs import CutCosts
from trainer.tree.numbers import column_number
from trainer.tree.render.palette import axis, escape, frame, short, whole_ticks

MOST_CUTS = 400  # maximum points of the curve on its own, in a figure of 300 px
MOST_STOPS = 2000  # maximum positions of a movable threshold; beyond it, some values are skipped, but counts stay exact
LENGTH = 40  # letters that fit below a figure of 300 px
NARROW = 30  # letters that fit beside the words that save the threshold
# shares of the height: the curve ends at LOWER, and the histogram begins at UPPER
LOWER = 0.24
UPPER = 0.43
HEIGHT = 308  # pixels, with one line for the legend
FREE_TOP_PIXELS = 12  # pixels of the top margin that are free, because both headings are short here
NUMBERS = 0.08  # share of the height that the tick labels take


def threshold_figure(costs: CutCosts, name: str) -> dict[str, Any]:
    """Return Plotly JSON of the curve alone. The dotted line is the tree's threshold."""
    costs = costs.thinned(MOST_CUTS)
    layout = frame(
        height=150,
        margin={"l": 48, "r": 12, "t": 8, "b": 40},
        xaxis=axis(short(name, LENGTH), showgrid=False),
        yaxis=axis("rows wrong", **whole_ticks(int(np.ptp(costs.wrong)))),
        hovermode="closest",
        shapes=[_dotted_line(costs.own, 0, 1)],
    )
    return {"data": _traces(costs), "layout": layout}


def with_curve(figure: dict[str, Any], costs: CutCosts, name: str) -> dict[str, Any]:
    """Return the histogram with the curve below it, on the same x-axis.

    `layout.meta` has the counts that the page needs to move the threshold. The page moves these parts by name: shapes
    cut, reach and now; annotations yes, no and wrong.
    """
    costs = costs.thinned(MOST_STOPS)
    layout = figure["layout"]
    heads = figure["layout"]["annotations"][:2]
    others = figure["layout"]["annotations"][2:]
    # space below the axis for the handle that the page draws
    below = {"ticks": "outside", "ticklen": 6, "tickcolor": "rgba(0,0,0,0)"}
    titled = layout["xaxis"] | {"title": {"text": ""}, "tickfont": {"size": 11}} | below
    changed = {
        "height": HEIGHT,
        "margin": layout["margin"] | {"t": layout["margin"]["t"] - FREE_TOP_PIXELS, "b": 24},
        "xaxis": titled | {"anchor": "y"},
        "yaxis": layout["yaxis"] | {"domain": [UPPER, 1], "tickfont": {"size": 11}},
        "yaxis2": _wrong_axis(costs),
        "shapes": [_solid(costs.own), _dotted_line(costs.own, 0, UPPER - NUMBERS) | {"name": "reach"}, _ring(costs)],
        "annotations": [
            *(
                # avoids the highest number of the axis
                head | {"name": word, "font": head["font"] | {"weight": 600}, "yshift": 4}
                for head, word in zip(heads, ("yes", "no"), strict=True)
            ),
            _caption(f"Wrong rows if you move the line: {lowest_words(costs)}", LOWER + 0.02, "bottom", name="wrong", bgcolor="var(--card)"),
            _caption(escape(short(name, NARROW)), 0, "top"),
            *others,
        ],
        "meta": _meta(costs),
    }  # fmt: skip
    curve = [trace | {"yaxis": "y2", "showlegend": False} for trace in _traces(costs)]
    return {"data": [*figure["data"], *curve], "layout": layout | changed}


def lowest_words(costs: CutCosts) -> str:
    """State the fewest misclassified rows, and their threshold."""
    return f"fewest, {int(costs.wrong[costs.best]):,}, at {escape(short(costs.written(costs.best)))}"


def _traces(costs: CutCosts) -> list[dict[str, Any]]:
    best = costs.best
    at = "%{customdata}" if costs.ranks else "%{x:.5~g}"
    line = {
        "type": "scatter", "mode": "lines", "name": "rows wrong", "x": costs.cuts, "y": costs.wrong.tolist(),
        "line": {"color": "var(--ink)", "width": 1.8, "shape": "hvh"},
        "hovertemplate": f"at {at}: %{{y:,}} rows wrong<extra></extra>", **_rank_words(costs, costs.cuts),
    }  # fmt: skip
    lowest = {
        "type": "scatter", "mode": "markers", "name": "fewest",
        "x": [costs.cut(best)], "y": [int(costs.wrong[best])],
        "marker": {"color": "var(--proved)", "size": 8},
        "hovertemplate": f"fewest: %{{y:,}} rows wrong at {at}<extra></extra>", **_rank_words(costs, [costs.cut(best)]),
    }  # fmt: skip
    return [line, lowest]


def _rank_words(costs: CutCosts, cuts: list[float]) -> dict[str, Any]:
    """Return the words of thresholds for hover texts; {} for a column of numbers."""
    return {"customdata": [escape(costs.text(cut)) for cut in cuts]} if costs.ranks else {}


def _wrong_axis(costs: CutCosts) -> dict[str, Any]:
    """Return the y-axis of the curve, with ticks at the fewest and the most misclassified rows."""
    ends = sorted({int(costs.wrong.min()), int(costs.wrong.max())})
    air = 0.12 * (ends[-1] - ends[0]) or 1
    return axis(
        domain=[0, LOWER],
        anchor="x",
        range=[ends[0] - air, ends[-1] + air],
        tickvals=ends,
        tickformat=",d",
        tickfont={"size": 11},
    )


def _solid(x: float) -> dict[str, Any]:
    line = {"color": "var(--cut)", "width": 2}
    return {"type": "line", "name": "cut", "x0": x, "x1": x, "y0": UPPER, "y1": 1, "yref": "paper", "line": line}


def _dotted_line(x: float, low: float, high: float) -> dict[str, Any]:
    line = {"color": "var(--cut)", "width": 1.2, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": low, "y1": high, "yref": "paper", "line": line}


def _ring(costs: CutCosts) -> dict[str, Any]:
    """Return a circle around the curve's point at the tree's threshold."""
    return {
        "type": "circle", "name": "now", "xsizemode": "pixel", "ysizemode": "pixel", "yref": "y2",
        "xanchor": costs.own, "yanchor": costs.now, "x0": -6, "x1": 6, "y0": -6, "y1": 6,
        "line": {"color": "var(--ink)", "width": 1.5},
    }  # fmt: skip


def _caption(text: str, y: float, anchor: str, **more: Any) -> dict[str, Any]:
    font = {"size": 11, "color": "var(--ink-2)"}
    place = {"x": 0, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": anchor, "align": "left"}
    return {"text": text, "showarrow": False, "font": font} | place | more


def _meta(costs: CutCosts) -> dict[str, Any]:
    """Return what the page needs to move the threshold: columns and fields of `costs`, and all thresholds."""
    lists = {name: getattr(costs, name).tolist() for name in ("low", "high", "yes", "wrong")}
    meta = {
        name: getattr(costs, name) for name in ("own", "at", "now", "nobody", "everybody", "known", "least", "rows")
    }
    year = "," not in column_number(costs.column, 2000.0, plain=costs.plain)
    words = {"lowest": lowest_words(costs), "ranks": list(costs.ranks)}
    return {"kind": "threshold", "cuts": costs.cuts, **lists, **meta, **words, "year": year}
