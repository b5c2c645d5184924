"""Draw the Rashomon set: size by tolerance, and columns of the first splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.tree.render.palette import axis, escape, fit, frame, text_width

PERCENT = {"ticksuffix": "\u202f%"}
ROWS = ("First question", "Then, on the yes side", "And, on the no side")
OTHER = "other columns"
LEAF = "an answer"
MIN_WIDTH_SHARE = 0.012  # share of the width; narrower parts are merged into OTHER
# pixels: width for which labels are shortened, and their font size
PLOT = 600.0
TEXT = 11.0


def tolerance_figure(
    tolerance: Sequence[Sequence[float]], *, now: int | None = None, best_rows: float | None = None
) -> dict[str, Any]:
    """Return Plotly JSON of the number of trees by cost above the optimum, on a logarithmic axis.

    The cost is in rows if `best_rows`, the least cost in rows, is given; otherwise it is a share of the least cost. A dot
    at the largest tolerance marks `now` trees, or the last number if `now` is None.
    """
    shares = [(100 if best_rows is None else best_rows) * share for share, _ in tolerance]
    unit = "\u202f%" if best_rows is None else " rows"
    numbers = [int(number) for _, number in tolerance]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "trees",
            "x": shares,
            "y": numbers,
            "line": {"color": "var(--run)", "width": 2, "shape": "hv"},
            "hovertemplate": f"within %{{x:.2f}}{unit}: %{{y:,}} trees<extra></extra>",
        }
    ]
    if shares:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "now",
                "x": [shares[-1]],
                "y": [numbers[-1] if now is None else now],
                "marker": {"color": "var(--card)", "size": 10, "line": {"color": "var(--run)", "width": 2}},
                "cliponaxis": False,
                "hoverinfo": "skip",
            }
        )
    layout = frame(
        height=220,
        margin={"l": 56, "r": 20, "t": 12, "b": 44},
        xaxis=axis("cost above the least, at most", rangemode="tozero", **PERCENT)
        if best_rows is None
        else axis("rows worse than the best tree, at most", rangemode="tozero"),
        yaxis=axis("trees", type="log", dtick=1, exponentformat="none", tickformat=",d"),
        hovermode="closest",
    )
    return {"data": data, "layout": layout}


def questions_figure(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return Plotly JSON of an icicle: columns of root splits, and below them those of both children.

    Widths count trees. An entry has `column`, `trees`, and `yes` and `no`: numbers of trees by the column of that child
    ("": a leaf).
    """
    total = sum(line["trees"] for line in columns)
    parts: list[list[tuple[str, str, float, int]]] = [[], [], []]  # entries: label, hover text, start, number of trees
    begin = 0
    for name, number, rectangles in _first(columns, total):
        parts[0].append((name, f"{name}: {number:,} trees ask it first", begin, number))
        for row, side, words in ((1, "yes", "yes"), (2, "no", "no")):
            at = begin
            for below, trees in _second(rectangles, side, number, total):
                parts[row].append((below, f"{name}, then on the {words} side {below}: {trees:,} trees", at, trees))
                at += trees
        begin += number
    data = [_bars(row, rectangles, total) for row, rectangles in enumerate(parts)]
    layout = frame(
        height=250,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        barmode="overlay",
        bargap=0.36,
        xaxis={"visible": False, "fixedrange": True, "range": [0, max(1, total)]},
        yaxis={"visible": False, "fixedrange": True, "range": [2.5, -0.75]},
        annotations=[
            {
                "text": words,
                "x": 0,
                "y": row - 0.4,
                "xref": "paper",
                "yref": "y",
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 11, "color": "var(--ink-3)"},
            }
            for row, words in enumerate(ROWS)
        ],
        hovermode="closest",
    )
    return {"data": data, "layout": layout}


def _first(columns: Sequence[Mapping[str, Any]], total: int) -> list[tuple[str, int, list[Mapping[str, Any]]]]:
    """Return (name, trees, entries), most frequent first. Narrow ones are merged at the end."""
    wide = [line for line in columns if line["trees"] >= MIN_WIDTH_SHARE * total]
    narrow = [line for line in columns if line["trees"] < MIN_WIDTH_SHARE * total]
    groups = [
        (str(line["column"]), int(line["trees"]), [line]) for line in sorted(wide, key=lambda line: -line["trees"])
    ]
    return groups + ([(OTHER, sum(int(line["trees"]) for line in narrow), narrow)] if narrow else [])


def _second(lines: Sequence[Mapping[str, Any]], side: str, number: int, all_trees: int) -> list[tuple[str, int]]:
    """Return (column, trees) of one child below `lines`: most frequent first, then narrow ones merged, then leaves."""
    total: dict[str, int] = {}
    for line in lines:
        for name, trees in line[side].items():
            total[name] = total.get(name, 0) + trees
    answers = total.pop("", 0)
    wide = sorted((item for item in total.items() if item[1] >= MIN_WIDTH_SHARE * all_trees), key=lambda item: -item[1])
    rest = number - answers - sum(trees for _, trees in wide)
    return [*wide, *([(OTHER, rest)] if rest else []), *([(LEAF, answers)] if answers else [])]


def _bars(row: int, parts: Sequence[tuple[str, str, float, int]], total: int) -> dict[str, Any]:
    widths = [PLOT * trees / max(1, total) for _, _, _, trees in parts]
    colours = {OTHER: "var(--line)", LEAF: "var(--grid)"}
    return {
        "type": "bar",
        "orientation": "h",
        "name": ROWS[row],
        "y": [row] * len(parts),
        "x": [trees for _, _, _, trees in parts],
        "base": [begin for _, _, begin, _ in parts],
        "marker": {
            "color": [colours.get(name, "var(--run-bg)") for name, _, _, _ in parts],
            "line": {"color": "var(--run)", "width": 0.75},
        },
        "text": [_label(name, trees, width) for (name, _, _, trees), width in zip(parts, widths, strict=True)],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"color": "var(--ink)", "size": TEXT},
        "hovertext": [escape(words) for _, words, _, _ in parts],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _label(name: str, trees: int, width: float) -> str:
    """Return the name of a part and its number of trees.

    If both do not fit, return only the name, shortened if needed. Return "" if the part is too narrow.
    """
    room = width - 8
    if room < text_width("abcd…", TEXT):
        return ""
    both = f"{name}  {trees:,}"
    return escape(both if text_width(both, TEXT) <= room else fit(name, room, TEXT))
