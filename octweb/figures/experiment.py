"""Draw accuracy, or cost per row, of an experiment's candidates against leaves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from octweb.figures.measure import ACCURACY, Measure
from trainer.tree.render.palette import axis, escape, frame, short

ASIDE = 1.05  # candidates of the same size are drawn side by side; each is moved by this factor of leaves
MARGIN_SHARE = 0.14  # margin above and below the points for two labels, as a share of the points' height range
# pixels: width of the plot on a phone, of a bold letter, and of the ring with its distance
NARROWEST = 290
LETTER = 7
ROUND = 24
LABEL_DISTANCE_PIXELS = (
    14  # pixels between a bar and its label; with less, the label would touch the ring of a short bar
)


def experiment_figure(
    points: Sequence[dict[str, Any]], base: float | None = None, measure: Measure = ACCURACY
) -> dict[str, Any]:
    """Return Plotly JSON with the one-standard-error band of the best candidate.

    A point has `name`, `leaves`, `mean` and `error` of the measure, `proved`, `recommended`, `highest` and `id`. `base`
    is the measure on the same rows if one answer is always given; it is drawn as a line. Ticks of leaves double.
    Without points, there are only axes and a sentence.
    """
    placed = _place_points(points, measure)
    largest = max([4, *(p["leaves"] for p in placed)])
    ticks = [2**k for k in range(math.ceil(math.log2(max(2, largest))) + 1)]
    layout = frame(
        height=460,
        margin={"l": 60, "r": 24, "t": 40, "b": 48},
        xaxis=axis(
            "leaves (doubling scale)",
            type="log",
            tickvals=ticks,
            ticktext=[f"{t:,}" for t in ticks],
            range=[-0.12, math.log10(max(2, largest)) + 0.15],
        ),
        yaxis=axis(_axis_title(measure), ticksuffix="" if measure.by_cost else measure.suffix),
        hovermode="closest",
    )
    if not placed:
        layout["annotations"] = [_sentence("the first points appear when<br>a candidate has all its folds")]
        layout["yaxis"] |= {"range": [0, 1] if measure.by_cost else [50, 100]}
        return {"data": [], "layout": layout}
    layout["shapes"], layout["annotations"] = _band(placed, measure)
    leaders, words = _labels(placed, measure)
    layout["shapes"] += leaders
    layout["annotations"] += words
    low = min(_low(p) for p in placed)
    high = max(_high(p) for p in placed)
    if base is not None:
        low = min(low, measure.factor * base)
        high = max(high, measure.factor * base)
        layout["shapes"].append(_base_line(measure.factor * base))
        layout["annotations"].append(_base_words(base, measure))
    air = MARGIN_SHARE * (high - low or 1.0) if measure.by_cost else MARGIN_SHARE * max(high - low, 1.0)
    layout["yaxis"] |= {"range": [low - air, high + air]}
    data = [_trace(placed, proved) for proved in (True, False)]
    data = [trace for trace in data if trace["x"]]
    if chosen := [p for p in placed if p["recommended"]]:
        data.append(_ring(chosen[0]))
    return {"data": data, "layout": layout}


def _axis_title(measure: Measure) -> str:
    if not measure.by_cost:
        return "accuracy on unseen rows, %"
    return f"cost per unseen row, {measure.unit}" if measure.unit else "cost per unseen row"


def _base_line(height: float) -> dict[str, Any]:
    """Return a horizontal line over the whole width for always giving one answer."""
    line = {"color": "var(--ink-3)", "width": 1.25, "dash": "dash"}
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "line": line,
        "layer": "below",
    }


def _base_words(base: float, measure: Measure) -> dict[str, Any]:
    answer = "one answer" if measure.by_cost else "the most frequent class"
    return {
        "text": f"always {answer}: {escape(measure.text(base))}",
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "y": measure.factor * base,
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"color": "var(--ink-2)", "size": 12},
    }


def _place_points(points: Sequence[dict[str, Any]], measure: Measure) -> list[dict[str, Any]]:
    """Return the points by size with their positions. Points of equal size are side by side, best first."""
    sign = 1 if measure.by_cost else -1
    ordered = sorted(points, key=lambda p: (p["leaves"], sign * p["mean"]))
    alike = Counter(p["leaves"] for p in ordered)
    seen: Counter[int] = Counter()
    placed = []
    for p in ordered:
        aside = seen[p["leaves"]] - (alike[p["leaves"]] - 1) / 2
        seen[p["leaves"]] += 1
        place = {"x": p["leaves"] * ASIDE**aside, "y": measure.factor * p["mean"], "half": measure.factor * p["error"]}
        placed.append(
            {**p, **place, "words": f"{measure.value(p['mean'])} ± {measure.error(p['error'])}{measure.suffix}"}
        )
    return placed


def _low(p: dict[str, Any]) -> float:
    return float(p["y"] - p["half"])


def _high(p: dict[str, Any]) -> float:
    return float(p["y"] + p["half"])


def _trace(placed: Sequence[dict[str, Any]], proved: bool) -> dict[str, Any]:
    trace_points = [p for p in placed if p["proved"] is proved]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "proved optimal" if proved else "not proved as a whole",
        "x": [p["x"] for p in trace_points],
        "y": [p["y"] for p in trace_points],
        "error_y": {
            "type": "data", "array": [p["half"] for p in trace_points], "color": "var(--ink-3)", "thickness": 1.25, "width": 0,
        },
        "cliponaxis": False,
        "customdata": [p["id"] for p in trace_points],
        "hovertext": [_hover(p) for p in trace_points],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "color": "var(--ink)", "size": 10, "symbol": "square" if proved else "circle-open",
            "line": {"color": "var(--ink)", "width": 1.5},
        },
    }  # fmt: skip


def _ring(p: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "recommended",
        "x": [p["x"]],
        "y": [p["y"]],
        "hoverinfo": "skip",
        "marker": {
            "color": "var(--proved)",
            "size": 22,
            "symbol": "circle-open",
            "line": {"color": "var(--proved)", "width": 2},
        },
    }


def _band(placed: Sequence[dict[str, Any]], measure: Measure) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the band from the best mean to one standard error from it, and its label."""
    top = next((p for p in placed if p["highest"]), None)
    if top is None:
        return [], []
    ends = (top["y"], _high(top)) if measure.by_cost else (_low(top), top["y"])
    band = {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": ends[0], "y1": ends[1],
        "fillcolor": "var(--proved-bg)", "line": {"width": 0}, "layer": "below",
    }  # fmt: skip
    words = {
        "text": f"band: within one standard error of the {measure.best}", "showarrow": False, "xref": "paper", "x": 0, "xanchor": "left",
        "xshift": -52, "yref": "paper", "y": 1, "yanchor": "bottom", "yshift": 14, "font": {"size": 12, "color": "var(--ink-2)"},
    }  # fmt: skip
    return [band], [words]


def _labels(placed: Sequence[dict[str, Any]], measure: Measure) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return leaders and labels of the best and the recommended candidate.

    The label of the best candidate is above all bars that it spans, the other label below them.
    """
    labels = []
    labelled = {
        _leaves(p) for p in placed if p["highest"] and p["recommended"]
    }  # sizes of tied candidates with a label
    for p in placed:
        if p["highest"] and not p["recommended"] and _leaves(p) in labelled:
            continue
        if p["highest"]:
            labelled.add(_leaves(p))
            rank = f"tied for the {measure.best}" if p.get("tied") else f"the {measure.best}"
            plain = f"{rank.removeprefix('the ')}, {_leaves(p)}"
            labels.append((p, f"<b>recommended</b>, {rank}" if p["recommended"] else plain, True))
        elif p["recommended"]:
            labels.append((p, f"<b>recommended, {_leaves(p)}</b>", False))
    leaders = []
    words = []
    for p, text, above in labels:
        side, met = _room(placed, p, text)
        end = max(map(_high, met)) if above else min(map(_low, met))
        words.append(_label_trace(p, text, side, end, above=above))
        if end != (_high(p) if above else _low(p)):
            leaders.append(_leader(p, end))
    return leaders, words


def _room(placed: Sequence[dict[str, Any]], p: dict[str, Any], text: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the anchor of a label, and the points that it spans on a phone.

    Near the ends of the axis, it points inwards.
    """
    last = math.log10(max(q["x"] for q in placed) + 1)
    at = math.log10(p["x"])
    side = "center"
    if at < 0.3 * last:
        side = "left"
    elif at > 0.7 * last:
        side = "right"
    pixel = (math.log10(max(2, *(q["leaves"] for q in placed), 4)) + 0.27) / NARROWEST
    width = pixel * LETTER * len(text.replace("<b>", "").replace("</b>", ""))
    left = at - {"left": 0.0, "center": 0.5, "right": 1.0}[side] * width - ROUND * pixel
    return side, [q for q in placed if left <= math.log10(q["x"]) <= left + width + 2 * ROUND * pixel]


def _label_trace(p: dict[str, Any], text: str, side: str, end: float, *, above: bool) -> dict[str, Any]:
    return {
        # on a log axis, Plotly places annotations by log10
        "text": text, "showarrow": False, "x": math.log10(p["x"]), "y": end, "xanchor": side,
        "yanchor": "bottom" if above else "top", "xshift": {"left": -12, "right": 12}.get(side, 0),
        "yshift": LABEL_DISTANCE_PIXELS if above else -LABEL_DISTANCE_PIXELS,
        "font": {"size": 12, "color": "var(--ink)"}, "bgcolor": "var(--card)", "borderpad": 1,
    }  # fmt: skip


def _leader(p: dict[str, Any], end: float) -> dict[str, Any]:
    """Return a dotted line from a candidate to a label that other bars moved away."""
    return {
        "type": "line", "x0": p["x"], "x1": p["x"], "y0": p["y"], "y1": end, "layer": "below",
        "line": {"color": "var(--ink-2)", "width": 1.5, "dash": "dot"},
    }  # fmt: skip


def _hover(p: dict[str, Any]) -> str:
    name = escape(short(str(p["name"]), 60))
    return f"<b>{name}</b><br>{escape(p['words'])}<br>{_leaves(p)}"


def _leaves(p: dict[str, Any]) -> str:
    return "1 leaf" if p["leaves"] == 1 else f"{p['leaves']:,} leaves"


def _sentence(text: str) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
