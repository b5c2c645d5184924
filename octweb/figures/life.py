"""Draw a served model's decisions per leaf, and the evidence of change."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from trainer.tree.render.palette import axis, class_styles, escape, frame

WEEK_DAYS = 7
HEIGHT = 300
MARGIN = {"l": 64, "r": 78, "t": 34, "b": 40}
DAY_MILLISECONDS = 86_400_000
BAR_MILLISECONDS = 0.92 * DAY_MILLISECONDS  # width of the bar of one day; the rest of the day is a gap
EACH_DAY = 5  # up to this range, the axis labels each day
LABEL_STEP = 14  # pixels between the two heights of the labels of alarms
SHORT_DAYS = 200  # up to this range, the axis labels days, and beyond it, months
LABELLED_FROM = 0.5  # log10 of the evidence; lines that end lower overlap, so they are labelled only after an alarm
FLOOR = -3.0  # log10 of the evidence; lower values are drawn at this height
NOTHING = {"text": "No decisions yet.", "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
DASHES = ("solid", "dash", "dot", "dashdot")
SHARE = "rows"  # kind of the watches of the shares of leaves
WRONG = "wrong"  # kind of the watches of wrong answers
CLAIMS = {SHARE: "odds against “as in training”", WRONG: "odds against “as promised”"}


def leaves_figure(record: dict[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """Return Plotly JSON of one stacked bar per week, with a part for each leaf in the colour of its class.

    Dotted lines show the cumulative shares in training.
    """
    watches = _by_answer(record, classes)
    rows = _weeks(record["rows"])
    layout = _frame(record, "share of the decisions", range=[0, 100], ticksuffix="\u202f%")
    layout |= {"barmode": "stack", "bargap": 0.08}
    if not rows.any():
        layout["annotations"] = [dict(NOTHING)]
        return {"data": [], "layout": layout}
    starts = _week_starts(record)
    places = [*_starts(len(record["days"])), len(record["days"])]
    widths = [(b - a) * BAR_MILLISECONDS for a, b in itertools.pairwise(places)]
    styles = class_styles(classes)
    data: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    below = 0.0
    for watch, code, order in watches:
        counts = _weeks(watch["counts"])
        share = np.where(rows > 0, 100 * counts / np.maximum(rows, 1), 0.0)
        data.append(
            {
                "type": "bar",
                "name": f"leaf {watch['name']}: {escape(classes[code])}",
                "x": starts,
                "offset": 0,
                "width": widths,
                "y": share.round(2).tolist(),
                "customdata": [[int(k), int(n)] for k, n in zip(counts, rows, strict=True)],
                "hovertemplate": "week from %{x|%-d %b %Y}: %{y:.1f}\u202f%, %{customdata[0]} of %{customdata[1]}",
                "marker": styles[code].bar | {"opacity": 1.0 if order % 2 == 0 else 0.6},
            }
        )
        if watch["reference"] is not None:
            below += 100 * watch["reference"]["share"]
            shapes.append(_level(below, "dot"))
    marks, words = _alarm_marks(record)
    layout |= {"shapes": [*shapes[:-1], *marks], "annotations": words}
    return {"data": data, "layout": layout}


def evidence_figure(record: dict[str, Any], classes: Sequence[str], *, kind: str = SHARE) -> dict[str, Any]:
    """Return Plotly JSON of a line for each leaf: log10 of the odds against "as in training", or "as promised".

    `kind` is that of the watches. Dashed lines show the alarm thresholds.
    """
    layout = _frame(record, CLAIMS[kind], tickprefix="10<sup>", ticksuffix="</sup>")
    data: list[dict[str, Any]] = []
    ends: list[tuple[str, float, str, str]] = []  # entries: day, height, leaf, colour
    ceiling = 1.0
    for watch, look in _lines(record, classes, kind):
        level = float(np.log10(watch["threshold"]))
        ceiling = max(ceiling, 2 * level)
        y = [None if e is None else max(FLOOR, min(e, 2 * level)) for e in watch["evidence"]]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"leaf {watch['name']}" if watch["name"] else "all leaves",
                "x": record["days"],
                "y": y,
                "customdata": watch["evidence"],
                "hovertemplate": "%{x|%-d %b %Y}: 10<sup>%{customdata:.1f}</sup>",
                "line": look,
            }
        )
        points = [(day, value) for day, value in zip(record["days"], y, strict=True) if value is not None]
        if points and (points[-1][1] >= LABELLED_FROM or watch["alarm"] is not None):
            ends.append((*points[-1], watch["name"], look["color"]))
    watches = [w for w in record["watches"] if w["kind"] == kind]
    marks, _ = _alarm_marks(record, {w["watch"] for w in watches})
    thresholds = {float(np.log10(w["threshold"])) for w in watches}
    layout["yaxis"]["range"] = [FLOOR, ceiling]
    layout["shapes"] = [*(_level(level, "dash") for level in sorted(thresholds)), *marks]
    seen = any(e is not None for watch in watches for e in watch["evidence"])
    layout["annotations"] = _end_labels(ends) if seen else [dict(NOTHING) | {"text": "No look yet."}]
    return {"data": data, "layout": layout}


def _lines(record: dict[str, Any], classes: Sequence[str], kind: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the watches of a kind with the look of their lines: of each leaf, and of all leaves together."""
    styles = class_styles(classes)
    lines = [
        (watch, {"color": styles[code].colour, "width": 2, "dash": DASHES[order % len(DASHES)]})
        for watch, code, order in _by_answer(record, classes, kind)
    ]
    together = [w for w in record["watches"] if w["kind"] == kind and not w["name"]]
    return [*lines, *((watch, {"color": "var(--ink)", "width": 2.5, "dash": "solid"}) for watch in together)]


def differences_figure(days: Sequence[tuple[date, int, int]]) -> dict[str, Any]:
    """Return Plotly JSON of a bar per day: the share of the compared rows with another answer of the challenger.

    `days` are pairs of a day with its compared rows, and those with another answer.
    """
    compared = [day for day in days if day[1]]
    first = days[0][0] if days else date.today()
    last = days[-1][0] if days else first
    layout = frame(
        height=HEIGHT,
        margin=dict(MARGIN),
        xaxis=_date_axis(first, last + timedelta(days=1)),
        yaxis=axis("other answers of the challenger", rangemode="tozero", ticksuffix="\u202f%"),
        hovermode="closest",
        showlegend=False,
    )
    if not compared:
        layout["annotations"] = [NOTHING | {"text": "No answer was compared yet."}]
        return {"data": [], "layout": layout}
    bars = {
        "type": "bar",
        "x": [day.isoformat() for day, _, _ in compared],
        "y": [round(100 * different / rows, 2) for _, rows, different in compared],
        "offset": 0,
        "width": BAR_MILLISECONDS,
        "customdata": [[different, rows] for _, rows, different in compared],
        "hovertemplate": "%{x|%-d %b %Y}: %{y:.1f}\u202f%, %{customdata[0]} of %{customdata[1]}<extra></extra>",
        "marker": {"color": "var(--warm)"},
    }
    return {"data": [bars], "layout": layout}


def _end_labels(ends: list[tuple[str, float, str, str]]) -> list[dict[str, Any]]:
    """Return labels of lines at their ends. Lines that end at the same rounded height share a label."""
    by_height: dict[float, list[tuple[str, float, str, str]]] = {}
    for end in ends:
        by_height.setdefault(round(end[1]), []).append(end)
    labels = []
    for group in by_height.values():
        day, height, _, colour = group[0]
        leaves = [leaf for _, _, leaf, _ in group if leaf]
        names = [f"{'leaf' if len(leaves) == 1 else 'leaves'} {', '.join(leaves)}"] if leaves else []
        label = {
            "text": " and ".join([*names, *(["all leaves"] if len(leaves) < len(group) else [])]),
            "x": day,
            "y": height,
            "showarrow": False,
        }
        font = {"color": colour if len(group) == 1 else "var(--ink)", "size": 12}
        labels.append(label | {"xanchor": "left", "xshift": 4, "font": font})
    return labels


def _by_answer(
    record: dict[str, Any], classes: Sequence[str], kind: str = SHARE
) -> list[tuple[dict[str, Any], int, int]]:
    """Return the watches of leaves sorted by class, each with its class code and its position within the class."""
    code = {label: k for k, label in enumerate(classes)}
    watches = [w for w in record["watches"] if w["kind"] == kind and w["name"]]
    leaves = [(code[record["answers"][w["name"]]], int(w["name"]), w) for w in watches]
    ordered = []
    places: dict[int, int] = {}
    for leaf_class, _, watch in sorted(leaves, key=lambda leaf: leaf[:2]):
        ordered.append((watch, leaf_class, places.get(leaf_class, 0)))
        places[leaf_class] = places.get(leaf_class, 0) + 1
    return ordered


def _weeks(numbers: Sequence[int]) -> np.ndarray:
    """Return sums over weeks, int64. The last week ends on the last day. The first may be shorter."""
    starts = _starts(len(numbers))
    return np.add.reduceat(np.asarray(numbers, np.int64), starts)


def _starts(days: int) -> list[int]:
    first = days % WEEK_DAYS
    return [*([0] if first else []), *range(first, days, WEEK_DAYS)]


def _week_starts(record: dict[str, Any]) -> list[str]:
    return [record["days"][i] for i in _starts(len(record["days"]))]


def _frame(record: dict[str, Any], title: str, **y: Any) -> dict[str, Any]:
    begin = next((i for i, rows in enumerate(record["rows"]) if rows), 0)
    first = date.fromisoformat(record["days"][begin]) - timedelta(days=WEEK_DAYS)
    last = date.fromisoformat(record["days"][-1]) + timedelta(days=1)
    return frame(
        height=HEIGHT,
        margin=dict(MARGIN),
        xaxis=_date_axis(first, last),
        yaxis=axis(title, **y),
        hovermode="closest",
        showlegend=False,
    )


def _date_axis(first: date, last: date) -> dict[str, Any]:
    """Return an axis of days. A short one has a tick per day, because Plotly would repeat the name of a day."""
    days = (last - first).days
    ticks: dict[str, Any] = {"tickformat": "%b %Y" if days > SHORT_DAYS else "%-d %b %Y"}
    if days <= EACH_DAY:
        ticks |= {"tick0": first.isoformat(), "dtick": DAY_MILLISECONDS}
    return axis("", type="date", range=[first.isoformat(), last.isoformat()], **ticks)


def _level(y: float, dash: str) -> dict[str, Any]:
    line = {"color": "var(--ink-2)" if dash == "dot" else "var(--warm)", "width": 1.5, "dash": dash}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _alarm_marks(
    record: dict[str, Any], watches: Collection[str] | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return shapes and labels of open alarms that are not folded, of some watches or of all.

    The shapes are a line on the day of the alarm, and a tint from the start of the change to that day.
    """
    shapes: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    shown = [
        alarm
        for alarm in sorted(record["alarms"], key=lambda alarm: alarm["found"])
        if alarm["closed_at"] is None
        and not alarm["folded"]
        and record["days"][0] <= alarm["found"]
        and (watches is None or alarm["watch"] in watches)
    ]
    middle = record["days"][len(record["days"]) // 2]
    for place, alarm in enumerate(shown):
        rectangle = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "line": {"width": 0}}
        shapes.append(rectangle | {"x0": alarm["began"], "x1": alarm["found"], "fillcolor": "var(--gap-bg)"})
        line = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": {"color": "var(--gap)", "width": 1.5}}
        shapes.append(line | {"x0": alarm["found"], "x1": alarm["found"]})
        words.append(
            {"text": escape(_alarm_label(alarm)), "x": alarm["found"], "y": 1, "yref": "paper", "yanchor": "bottom"}
            # two heights, because labels of alarms of the same weeks would overlap on a phone
            | {"yshift": LABEL_STEP * (place % 2), "xanchor": "left" if alarm["found"] < middle else "right"}
            | {"showarrow": False, "font": {"color": "var(--gap)", "size": 12}}
        )
    return shapes, words


def _alarm_label(alarm: dict[str, Any]) -> str:
    """Return the watch of an alarm in words, with its day."""
    found = date.fromisoformat(alarm["found"])
    watch = alarm["watch"]
    if watch.startswith(f"{WRONG}: "):
        watch = f"{watch.removeprefix(f'{WRONG}: ')}: promise broken"
    return f"{watch}, {found.day} {found:%b}"
