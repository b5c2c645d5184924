"""Define class colours, hatches and marker shapes for all pictures.

Colours are CSS variables that the page resolves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainer.tree.numbers import MINUS, THIN

COLOURS = 8
MAX_CLASSES = 20  # with more classes, the last one is "Other"
SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "x", "pentagon", "star")
NAME_LENGTH = 22
LEGEND_LINE = 22  # height in pixels of a legend with one line
FONT = 'Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
NUMBER = re.compile(rf"(≤ )?{MINUS}?\d[\d,]*(\.\d+)?(E[+-]\d+)?")  # a number as a question writes it
WORD_BEGINS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=\w)(?=…\w)")
# a number at the end of a text; cut there, it would read as another number
CUT_NUMBER = re.compile(rf"(^| )(≤ )?{MINUS}?\d[\d.,E+-]*$")
NARROW = "fijlrtI.,:;'|!()[] ·-"
WIDE = "mwMW%@×≤∞…"


@dataclass(frozen=True, kw_only=True)
class ClassStyle:
    """The style of a class: colour, hatch of its bars ("", "/", ".") and shape of its points."""

    name: str
    colour: str
    hatch: str
    symbol: str

    @property
    def bar(self) -> dict[str, Any]:
        """The marker of a bar trace."""
        marker: dict[str, Any] = {"color": self.colour, "line": {"width": 0}}
        if self.hatch:
            marker["pattern"] = {
                "shape": self.hatch,
                "fgcolor": "var(--card)",
                "bgcolor": self.colour,
                "size": 5,
                "solidity": 0.35,
            }
        return marker

    @property
    def point(self) -> dict[str, Any]:
        """The marker of a scatter trace."""
        return {"color": self.colour, "symbol": self.symbol, "size": 7, "opacity": 0.85}


def class_styles(classes: Sequence[str]) -> list[ClassStyle]:
    """Return the style of each class in its order; above 20 classes, all from the 20th on share "Other (k classes)"."""
    n_coloured = len(classes) if len(classes) <= MAX_CLASSES else MAX_CLASSES - 1
    other = f"Other ({len(classes) - n_coloured} classes)"
    return [_style(k, name) if k < n_coloured else _contrasting(other) for k, name in enumerate(classes)]


def distinct_styles(styles: Sequence[ClassStyle]) -> list[tuple[ClassStyle, list[int]]]:
    """Return each style once, with its class codes."""
    groups: dict[ClassStyle, list[int]] = {}
    for k, style in enumerate(styles):
        groups.setdefault(style, []).append(k)
    return list(groups.items())


def swatch(k: int, classes: int) -> str:
    """Return the end of the CSS class "c…" of class `k`: its colour from 1 to 8 and its hatch, "3 h1"; or "-other"."""
    if classes > MAX_CLASSES and k >= MAX_CLASSES - 1:
        return "-other"
    band = k // COLOURS
    return f"{k % COLOURS + 1} h{band}" if band else str(k % COLOURS + 1)


def without_legend(figure: dict[str, Any]) -> dict[str, Any]:
    """Return the figure without its legend and the legend's line, for a page that names the classes itself."""
    layout = {**figure["layout"], "showlegend": False}
    if figure["layout"].get("showlegend") and "height" in layout and "margin" in layout:
        layout["height"] -= LEGEND_LINE
        layout["margin"] = {**layout["margin"], "t": max(0, layout["margin"]["t"] - LEGEND_LINE)}
    return {**figure, "layout": layout}


def _style(k: int, name: str) -> ClassStyle:
    band = k // COLOURS
    return ClassStyle(
        name=name,
        colour=f"var(--c{k % COLOURS + 1})",
        hatch=("", "/", ".")[band],
        symbol=SHAPES[k % COLOURS] + ("", "-open", "-open-dot")[band],
    )


def _contrasting(name: str) -> ClassStyle:
    return ClassStyle(name=name, colour="var(--c-other)", hatch="", symbol="circle")


def escape(text: str) -> str:
    """Escape text so that Plotly shows it as it is, not as pseudo-HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(name: str, length: int = NAME_LENGTH) -> str:
    """Shorten a name to `length` characters by leaving out its middle, because the end often distinguishes names."""
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def text_width(text: str, size: float) -> float:
    """Return the approximate width of a line of bold sans-serif text in pixels, measured on a wide font."""
    return size * sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if character in NARROW:
        return 0.4
    if character in WIDE:
        return 1.0
    return 0.78 if character.isupper() else 0.68


def fit(text: str, width: float, size: float) -> str:
    """Cut a text at its end to `width` pixels if it is longer."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip(" ·+…") + "…"


def wrap(text: str, width: float, size: float, lines: int) -> list[str]:
    """Break a text into at most `lines` lines of `width` pixels; the last one ends in … if it is cut.

    Lines break at spaces, underscores and units, before a capital InsideOfAWord, and before a … inside a word.
    """
    finished: list[str] = []
    line = ""
    for piece in _pieces(text):
        if line and text_width((line + piece).rstrip(), size) > width:
            finished.append(line.rstrip())
            line = ""
        line += piece
        while text_width(line.rstrip(), size) > width and len(line) > 1:  # a single word is longer than a line
            keep = next(i for i in range(len(line), 0, -1) if i == 1 or text_width(line[:i], size) <= width)
            finished.append(line[:keep])
            line = line[keep:]
    finished += [line.rstrip()] if line.strip() else []
    if len(finished) <= lines:
        return finished or [""]
    last = fit(finished[lines - 1] + "……", width, size).rstrip("…")
    return [*finished[: lines - 1], CUT_NUMBER.sub("", last) + "…"]


def number_width(text: str, size: float) -> float:
    """Return the width of a line that holds the longest number of `text` in one piece; 0 without a number."""
    return max((text_width(p.rstrip(), size) for p in _pieces(text) if NUMBER.fullmatch(p.strip())), default=0.0)


def _pieces(text: str) -> list[str]:
    """Split text at possible line ends; a threshold stays with its sign."""
    text = WORD_BEGINS.sub("\0", text)
    for end in ("_", " ", THIN):
        text = text.replace(end, f"{end}\0")
    return text.replace("≤ \0", "≤ ").split("\0")


def frame(**layout: Any) -> dict[str, Any]:
    """Return the layout of all charts: transparent background, the page's font and ink, no legend by default."""
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": "var(--ink-2)"},
        "hoverlabel": {
            "bgcolor": "var(--card)",
            "bordercolor": "var(--line-strong)",
            "font": {"family": FONT, "size": 12, "color": "var(--ink)"},
            "align": "left",
            "namelength": -1,
        },
        "showlegend": False,
        **layout,
    }


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis in the page's colours with a faint grid."""
    return {
        "title": {"text": escape(title), "font": {"color": "var(--ink)", "size": 12}, "standoff": 8},
        "gridcolor": "var(--grid)",
        "linecolor": "var(--line-strong)",
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
        **more,
    }


def count_axis(title: str, most: float, **more: Any) -> dict[str, Any]:
    """Return an axis of counts from 0 to about `most`, with about five whole ticks."""
    return axis(title, rangemode="tozero", **whole_ticks(most), **more)


def whole_ticks(span: float) -> dict[str, Any]:
    """Return about five ticks at whole numbers over `span`."""
    step = 1
    for step in (m * 10**k for k in range(16) for m in (1, 2, 5)):
        if span <= 6 * step:
            break
    return {"tick0": 0, "dtick": step, "tickformat": ",d"}


LEGEND: dict[str, Any] = {
    "orientation": "h",
    "x": 0,
    "y": 1.02,
    "yanchor": "bottom",
    "itemclick": False,
    "traceorder": "normal",
}
