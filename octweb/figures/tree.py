"""The picture of a tree: branch cards with their rule, leaf cards with their class, edges as wide as the rows they carry.

Coordinates are pixels from the top left corner; y grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from octweb.figures.outline import counts_text
from octweb.figures.palette import class_styles, drawn, escape, fit, frame, short, text_width, wrap
from trainer.tree.describe import leaf_text, split_text
from trainer.tree.nodes import Node, Tree
from trainer.tree.splits import Split

SMALL_FROM, BLOCKS_FROM = 7, 17  # leaves
MARGIN, LEVEL_GAP, LINES = 16, 62, 3
SHOWN_CATEGORIES = 3
EDGE_MIN, EDGE_SPAN = 1.5, 17.0
BLOCK = 28
SWATCH = 15  # the square of a class and the gap after it


@dataclass(frozen=True, kw_only=True)
class _Size:
    """Measures of the cards: full to 6 leaves, small to 16, beyond with leaves as blocks; `stacked` puts shares below classes."""

    card: int
    leaf: int
    pad: int
    font: int
    gap: int
    counts: bool
    blocks: bool
    stacked: bool = False

    @property
    def inner(self) -> int:
        """The room for the words of a rule."""
        return self.card - 2 * self.pad

    def inside(self, box: _Box) -> float:
        """The room for words and bars in one card."""
        return box.width - 2 * self.pad


FULL = _Size(card=182, leaf=182, pad=12, font=12, gap=10, counts=True, blocks=False)
SMALL = _Size(card=132, leaf=104, pad=9, font=11, gap=8, counts=False, blocks=False)
BLOCKS = _Size(card=112, leaf=BLOCK, pad=7, font=11, gap=8, counts=False, blocks=True)


@dataclass(frozen=True, kw_only=True)
class _Box:
    """A placed node: centre x, top, width, height, the lines of its rule."""

    node: Node
    x: float
    top: float
    width: float
    height: float
    lines: list[str]

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def bottom(self) -> float:
        return self.top + self.height


def tree_figure(tree: Tree, *, path: Sequence[int] = (), chosen: int | None = None) -> dict[str, Any]:
    """Plotly JSON of `tree`, 1 to 64 leaves; `path` are the node ids to light, `chosen` gets a strong border.

    `layout.meta.nodes` has for each node its box and its relatives, for clicks and the keyboard.
    """
    size = FULL if tree.n_leaves < SMALL_FROM else SMALL if tree.n_leaves < BLOCKS_FROM else BLOCKS
    brief = _brief(tree)
    if not size.blocks and _crowded(brief, size):
        size = _stacked(brief, size)
    boxes = _place(brief, size)
    lit = set(path)
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for v in sorted(tree.branches, key=lambda v: v.id in lit):  # the lit path lies on top
        for child, answer in ((v.left, "yes"), (v.right, "no")):
            on = v.id in lit and child in lit
            shapes.append(_edge(boxes[v.id], boxes[child], tree.nodes[0].rows, on))
            notes.append(_edge_note(boxes[v.id], boxes[child], answer, on, size))
    for box in boxes:
        shapes += _card(box, size, box.node.id in lit, box.node.id == chosen)
        notes += _words(brief, box, size)
    width = max(b.x + b.width / 2 for b in boxes) + max(MARGIN, _beside(tree, size) + 4)
    height = max(b.bottom for b in boxes) + MARGIN
    layout = frame(
        width=round(width),
        height=round(height),
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        xaxis=_still([0, round(width)]),
        yaxis=_still([round(height), 0]),
        shapes=shapes,
        annotations=notes,
        barmode="overlay",
        hovermode="closest",
        hoverdistance=40,
        dragmode=False,
        meta={"kind": "tree", "nodes": [_record(tree, b) for b in boxes]},
    )
    return {"data": [*_bars(tree, boxes, size), _centres(tree, boxes)], "layout": layout}


def _brief(tree: Tree) -> Tree:
    """The tree with short names; used for words only."""
    schema = tuple(
        replace(c, name=short(c.name), categories=tuple(short(k) for k in c.categories)) for c in tree.schema
    )
    return replace(tree, schema=schema, classes=tuple(short(c) for c in tree.classes))


def _crowded(tree: Tree, size: _Size) -> bool:
    """Whether a class and its share do not fit beside each other in some leaf."""
    room = size.leaf - 2 * size.pad - SWATCH
    return any(
        _beside_share(room, v, size) < text_width(tree.classes[v.label], size.font) for v in tree.nodes if v.is_leaf
    )


def _stacked(tree: Tree, size: _Size) -> _Size:
    """Shares below classes, and leaves as wide as their classes ask for, at most as wide as branches."""
    names = max(text_width(tree.classes[v.label], size.font) for v in tree.nodes if v.is_leaf)
    needed = math.ceil(names) + SWATCH + 2 * size.pad
    return replace(size, stacked=True, leaf=min(max(size.leaf, needed), size.card))


def _beside_share(room: float, v: Node, size: _Size) -> float:
    """What the share of a leaf leaves of the room for its class."""
    return room if size.stacked else room - text_width(_share(v), size.font) - 6


def _place(tree: Tree, size: _Size) -> list[_Box]:
    """Boxes by node id: children as close as their subtrees allow, parents centred above them."""
    lines = [[] if v.split is None else wrap(_rule(tree, v.split), size.inner, size.font, LINES) for v in tree.nodes]
    widths = [size.leaf if v.is_leaf else size.card for v in tree.nodes]
    heights = [_height(v, lines[v.id], size) for v in tree.nodes]
    level = [len(tree.path_to(v.id)) - 1 for v in tree.nodes]
    tops, top = [], float(MARGIN)
    for depth in range(max(level) + 1):
        tops.append(top)
        top += max(h for h, at in zip(heights, level, strict=True) if at == depth) + LEVEL_GAP
    beside = _beside(tree, size)
    offset = _offsets(tree, widths, size.gap, max(size.gap, 2 * beside + 8))
    x = [0.0] * len(tree.nodes)
    for v in tree.nodes:
        if not v.is_leaf:
            x[v.left], x[v.right] = x[v.id] - offset[v.id], x[v.id] + offset[v.id]
    shift = max(MARGIN, beside + 4) - min(at - w / 2 for at, w in zip(x, widths, strict=True))
    return [
        _Box(
            node=v,
            x=x[v.id] + shift,
            top=tops[level[v.id]],
            width=widths[v.id],
            height=heights[v.id],
            lines=lines[v.id],
        )
        for v in tree.nodes
    ]


def _rule(tree: Tree, split: Split) -> str:
    """The rule in words; of a subset at most three categories."""
    return split_text(split, tree.schema, most=SHOWN_CATEGORIES)


def _beside(tree: Tree, size: _Size) -> float:
    """How far the words of an edge reach beyond the card below them."""
    noted = [v for v in tree.nodes[1:] if not (size.blocks and v.is_leaf)]
    reach = [
        text_width(f"yes · {_rows_text(v, size)}", 11) - (size.leaf if v.is_leaf else size.card) / 2 for v in noted
    ]
    return max(0.0, max(reach, default=0.0) + EDGE_SPAN / 2 + 3)


def _offsets(tree: Tree, widths: list[int], gap: float, between: float) -> list[float]:
    """For every branch how far its children lie left and right of it, so that no two boxes of a level touch.

    Boxes of a level are `gap` apart if they are siblings and `between` if not: edge words stand on the outer sides.
    """
    offset = [0.0] * len(tree.nodes)
    contour: list[list[tuple[float, float]]] = [[] for _ in tree.nodes]  # leftmost and rightmost of each level below
    for v in reversed(tree.nodes):
        own = (-widths[v.id] / 2, widths[v.id] / 2)
        if v.is_leaf:
            contour[v.id] = [own]
            continue
        left, right = contour[v.left], contour[v.right]
        apart = max(
            a[1] - b[0] + (between if depth else gap) for depth, (a, b) in enumerate(zip(left, right, strict=False))
        )
        half = offset[v.id] = apart / 2
        below = []
        for depth in range(max(len(left), len(right))):
            low = left[depth][0] - half if depth < len(left) else right[depth][0] + half
            high = right[depth][1] + half if depth < len(right) else left[depth][1] - half
            below.append((low, high))
        contour[v.id] = [own, *below]
        contour[v.left] = contour[v.right] = []
    return offset


def _height(v: Node, lines: list[str], size: _Size) -> int:
    if v.is_leaf and size.blocks:
        return BLOCK
    text = (2 if v.is_leaf and size.stacked else max(1, len(lines))) * (size.font + 3)
    return 8 + text + 6 + 7 + (20 if size.counts else 9)


def _rows_text(v: Node, size: _Size) -> str:
    if not size.counts:
        return f"{v.rows:,}"
    return "1 row" if v.rows == 1 else f"{v.rows:,} rows"


def _edge(parent: _Box, child: _Box, rows: int, lit: bool) -> dict[str, Any]:
    middle = (parent.bottom + child.top) / 2
    return {
        "type": "path",
        "path": f"M {parent.x:.1f},{parent.bottom:.1f} C {parent.x:.1f},{middle:.1f} {child.x:.1f},{middle:.1f} "
        f"{child.x:.1f},{child.top:.1f}",
        "line": {
            "color": "var(--ink)" if lit else "var(--line-strong)",
            "width": round(EDGE_MIN + EDGE_SPAN * child.node.rows / max(1, rows), 2),
        },
        "opacity": 0.8 if lit else 0.45,
        "layer": "below",
    }


def _edge_note(parent: _Box, child: _Box, answer: str, lit: bool, size: _Size) -> dict[str, Any]:
    words = answer if size.blocks and child.node.is_leaf else f"{answer} · {_rows_text(child.node, size)}"
    side = -1 if child.x < parent.x else 1
    half = BLOCK / 2 if child.width == BLOCK else EDGE_SPAN / 2 + 3
    return _text(
        f"<b>{words}</b>" if lit else words,
        child.x + side * (0 if child.width == BLOCK else half),
        child.top - 10,
        11,
        anchor="center" if child.width == BLOCK else "right" if side < 0 else "left",
        colour="var(--ink)" if lit else "var(--ink-2)",
        ground="var(--card)" if child.width == BLOCK else None,
    )


def _card(box: _Box, size: _Size, lit: bool, chosen: bool) -> list[dict[str, Any]]:
    strong = lit or chosen
    line = "var(--ink)" if strong else "var(--line)" if box.node.is_leaf else "var(--line-strong)"
    card = {
        "type": "path",
        "path": _rounded(box.left, box.top, box.width, box.height, 5),
        "fillcolor": "var(--sunk)" if box.node.is_leaf else "var(--card)",
        "line": {"color": line, "width": 2.5 if chosen else 1.75 if lit else 1},
        "layer": "below",
    }
    return [card]


def _rounded(x: float, y: float, w: float, h: float, r: float) -> str:
    return (
        f"M {x + r:.1f},{y:.1f} L {x + w - r:.1f},{y:.1f} Q {x + w:.1f},{y:.1f} {x + w:.1f},{y + r:.1f} "
        f"L {x + w:.1f},{y + h - r:.1f} Q {x + w:.1f},{y + h:.1f} {x + w - r:.1f},{y + h:.1f} "
        f"L {x + r:.1f},{y + h:.1f} Q {x:.1f},{y + h:.1f} {x:.1f},{y + h - r:.1f} "
        f"L {x:.1f},{y + r:.1f} Q {x:.1f},{y:.1f} {x + r:.1f},{y:.1f} Z"
    )


def _words(tree: Tree, box: _Box, size: _Size) -> list[dict[str, Any]]:
    """The rule or the class with its share, and the counts where there is room."""
    v, start, step = box.node, box.left + size.pad, size.font + 3
    first = box.top + 8 + step / 2
    if v.is_leaf and size.blocks:
        letter = escape(_letters(tree.classes)[v.label])
        return [_text(f"<b>{letter}</b>", box.x, box.top + BLOCK / 2, 11, anchor="center", ground="var(--card)")]
    notes = [_text(f"<b>{escape(line)}</b>", start, first + i * step, size.font) for i, line in enumerate(box.lines)]
    if v.is_leaf:
        name = fit(tree.classes[v.label], _beside_share(size.inside(box) - SWATCH, v, size), size.font)
        notes.append(_text(f"<b>{escape(name)}</b>", start + SWATCH, first, size.font))
        place = (start + SWATCH, first + step) if size.stacked else (box.left + box.width - size.pad, first)
        notes.append(_text(f"<b>{_share(v)}</b>", *place, size.font, anchor="left" if size.stacked else "right"))
    if size.counts:
        counts = fit(counts_text(tree, v), 1.1 * size.inner, 11)  # regular weight is narrower than the estimate
        notes.append(_text(escape(counts), start, box.bottom - 12, 11, colour="var(--ink-2)"))
    return notes


def _share(v: Node) -> str:
    """The share of the predicted class; an empty leaf has none."""
    if not v.rows:
        return "no rows"
    share = v.counts[v.label] / v.rows
    return "100\u202f%" if share == 1 else f"{100 * share:.1f}\u202f%"


def _letters(classes: Sequence[str]) -> list[str]:
    """One or two characters for each class that tell them apart, else its number."""
    for length in (1, 2):
        letters = [c.strip()[:length].upper() for c in classes]
        if len(set(letters)) == len(letters) and all(letters):
            return letters
    return [str(k + 1) for k in range(len(classes))]


def _bars(tree: Tree, boxes: Sequence[_Box], size: _Size) -> list[dict[str, Any]]:
    """One trace for each class: its segments of the class bars, leaf swatches and leaf blocks; a trace can be hatched."""
    traces = []
    for style, codes in drawn(class_styles(tree.classes)):
        base: list[float] = []
        length: list[float] = []
        y: list[float] = []
        width: list[int] = []
        for box in boxes:
            v = box.node
            if v.is_leaf and v.label in codes:
                swatch = BLOCK - 2 if size.blocks else 10
                at = box.top + BLOCK / 2 if size.blocks else box.top + 8 + (size.font + 3) / 2
                base.append(box.left + (1 if size.blocks else size.pad))
                length.append(swatch)
                y.append(at)
                width.append(swatch)
            count = sum(v.counts[k] for k in codes)
            if count and not (v.is_leaf and size.blocks):
                before, room = sum(v.counts[: codes[0]]), size.inside(box)
                base.append(box.left + size.pad + room * before / v.rows)
                length.append(room * count / v.rows)
                y.append(box.bottom - (20 if size.counts else 9) - 3.5)
                width.append(7)
        if base:
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": escape(style.name),
                    "base": _round(base),
                    "x": _round(length),
                    "y": _round(y),
                    "width": width,
                    "marker": style.bar,
                    "hoverinfo": "skip",
                }
            )
    return traces


def _centres(tree: Tree, boxes: Sequence[_Box]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "nodes",
        "x": _round(b.x for b in boxes),
        "y": _round(b.top + b.height / 2 for b in boxes),
        "customdata": [b.node.id for b in boxes],
        "hovertext": [_hover(tree, b.node) for b in boxes],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"size": [min(b.width, 64) for b in boxes], "opacity": 0, "color": "var(--ink)"},
    }


def _hover(tree: Tree, v: Node) -> str:
    """The whole rule or prediction, and the rows of every class."""
    head = leaf_text(tree, v) if v.split is None else split_text(v.split, tree.schema)
    lines = [f"<b>{escape(line)}</b>" for line in wrap(head, 420, 12, 12)]
    present = [(n, c) for n, c in zip(v.counts, tree.classes, strict=True) if n]
    lines += [f"{n:,} {escape(c)}" for n, c in sorted(present, key=lambda p: -p[0])[:20]]
    return "<br>".join([*lines, f"{v.rows:,} rows in all"])


def _record(tree: Tree, box: _Box) -> dict[str, Any]:
    v = box.node
    words = leaf_text(tree, v) if v.split is None else split_text(v.split, tree.schema)
    return {
        "id": v.id,
        "parent": tree.parents[v.id],
        "left": v.left,
        "right": v.right,
        "box": _round((box.left, box.top, box.width, box.height)),
        "label": f"{words}, {v.rows:,} rows",
    }


def _text(
    text: str,
    x: float,
    y: float,
    size: int,
    *,
    anchor: str = "left",
    colour: str = "var(--ink)",
    ground: str | None = None,
) -> dict[str, Any]:
    note: dict[str, Any] = {
        "text": text,
        "x": round(x, 1),
        "y": round(y, 1),
        "xanchor": anchor,
        "yanchor": "middle",
        "showarrow": False,
        "borderpad": 0,
        "font": {"size": size, "color": colour},
    }
    return note | ({"bgcolor": ground, "borderpad": 1} if ground else {})


def _round(values: Any) -> list[float]:
    return [round(float(value), 1) for value in values]


def _still(span: list[int]) -> dict[str, Any]:
    """An axis of pixels: nothing drawn, nothing moves."""
    return {"range": span, "autorange": False, "fixedrange": True, "visible": False}
