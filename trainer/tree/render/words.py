"""Gather the words of a tree's picture into one text trace."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from trainer.tree.nodes import Node
from trainer.tree.numbers import points_text
from trainer.tree.render.layout import (
    AWAY,
    BAR,
    CLASS_NAME,
    FONT,
    LINE,
    PAD,
    SMALL,
    STRIP,
    SWATCH,
    Box,
    PlacedBoxes,
    band,
    band_text,
    bar_top,
    fits_beside_band,
    leaves_below,
    strip_top,
)
from trainer.tree.render.names import short_names
from trainer.tree.render.outline import counts_text
from trainer.tree.render.palette import escape, fit, text_width

Unseen = Mapping[int, tuple[int, int]]


class _Text:
    """Collector of the words of a picture, for one text trace."""

    def __init__(self) -> None:
        self.x: list[float] = []
        self.y: list[float] = []
        self.text: list[str] = []
        self.place: list[str] = []
        self.size: list[float] = []
        self.colour: list[str] = []

    def add(
        self, text: str, x: float, y: float, *, at: str = "right", size: float = SMALL, colour: str = "var(--ink-2)"
    ) -> None:
        """Add `text` at the point (x, y): to its right, to its left or around it."""
        self.x.append(round(x, 1))
        self.y.append(round(y, 1))
        self.text.append(text)
        self.place.append("middle center" if at == "center" else f"middle {at}")
        self.size.append(size)
        self.colour.append(colour)

    def trace(self) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "text",
            "name": "words",
            "x": self.x,
            "y": self.y,
            "text": self.text,
            "textposition": self.place,
            "textfont": {"size": self.size, "color": self.colour},
            "cliponaxis": False,
            "hoverinfo": "skip",
        }


def words_trace(placed: PlacedBoxes, lit: set[int], unseen: Unseen) -> dict[str, Any]:
    words = _Text()
    n_rows = placed.tree.nodes[0].rows
    for box in placed.boxes.values():
        if box.node.is_leaf:
            _leaf_words(words, placed, box, unseen)
        else:
            _branch_words(words, placed, box)
        for answer, child in placed.children(box):
            on = box.node.id in lit and child.node.id in lit
            text = band_text(answer, child.node.rows)
            if not fits_beside_band(child.width):
                continue
            side = -1 if answer == "yes" else 1
            x = child.x + side * (band(child.node.rows, n_rows) / 2 + AWAY)
            at = "left" if side < 0 else "right"
            colour = "var(--ink)" if on else "var(--ink-2)"
            words.add(f"<b>{text}</b>" if on else text, x, child.top - 9, at=at, colour=colour)
    return words.trace()


def _branch_words(words: _Text, placed: PlacedBoxes, box: Box) -> None:
    start = box.left + PAD
    for i, line in enumerate(box.lines):
        words.add(f"<b>{escape(line)}</b>", start, box.top + 8 + LINE * (i + 0.5), size=FONT, colour="var(--ink)")
    for i, line in enumerate(box.notes, len(box.lines)):
        words.add(escape(fit(line, box.inner, SMALL)), start, box.top + 8 + LINE * (i + 0.5))
    below = bar_top(box) + BAR + 4 + LINE / 2
    if not box.closed:
        words.add(escape(_counts(placed, box)), start, below)
        return
    words.add(placed.tree.counted(box.node.rows), start, below)
    bottom = strip_top(box) + STRIP + 3 + LINE / 2
    words.add(f"{len(leaves_below(placed.tree, box.node.id))} leaves", start, bottom)
    words.add("<b>+</b>", box.left + box.width - PAD, bottom, at="left", size=FONT, colour="var(--ink)")


def _leaf_words(words: _Text, placed: PlacedBoxes, box: Box, unseen: Unseen) -> None:
    v = box.node
    start = box.left + PAD
    end = box.left + box.width - PAD
    first = box.top + 8 + LINE / 2
    share = leaf_share(v)
    beside_share = 0 if box.stacked else text_width(share, FONT) + 6
    name = _class_name(placed, v.label, box.inner - SWATCH - 5 - beside_share)
    words.add(f"<b>{escape(name)}</b>", start + SWATCH + 5, first, size=FONT, colour="var(--ink)")
    if box.stacked:
        words.add(f"<b>{share}</b>", start, first + LINE, colour="var(--ink)")
        words.add(f"{v.rows:,}", end, first + LINE, at="left")
    else:
        words.add(f"<b>{share}</b>", end, first, at="left", size=FONT, colour="var(--ink)")
    if not box.compact:
        words.add(escape(_below_leaf(placed, box, unseen)), start, bar_top(box) + BAR + 4 + LINE / 2)


def _class_name(placed: PlacedBoxes, label: int, room: float) -> str:
    """Return a class name that fits into `room`; parts that it shares with others go first ("…10" of "species 10")."""
    name = placed.brief.class_words[label]
    for length in range(CLASS_NAME, 2, -1):
        if text_width(name, FONT) <= room:
            return name
        name = _names(placed.tree.class_words, length)[label]
    return fit(placed.brief.class_words[label], room, FONT)


@functools.lru_cache(maxsize=64)  # all leaves of a tree need the same names
def _names(classes: tuple[str, ...], length: int) -> tuple[str, ...]:
    return tuple(short_names(classes, length))


def _below_leaf(placed: PlacedBoxes, box: Box, unseen: Unseen) -> str:
    right, n = unseen.get(box.node.id, (0, 0))
    if n:
        return f"unseen {_percent(right, n)} of {n:,}"
    return _counts(placed, box)


def _counts(placed: PlacedBoxes, box: Box) -> str:
    """Return the rows of each class, or their total if that is too long."""
    counts = counts_text(placed.brief, box.node)
    return counts if text_width(counts, SMALL) <= 1.15 * box.inner else placed.tree.counted(box.node.rows)


def leaf_share(v: Node) -> str:
    """Return the share of the predicted class among the training rows, or "no rows"."""
    if not v.rows:
        return "no rows"
    return _percent(v.counts[v.label], v.rows)


def _percent(part: float, total: float) -> str:
    """Return a share in percent; only 0 % and 100 % have no decimals."""
    return f"{points_text(part / total, 0 if part in (0, total) else 1)}\u202f%"
