"""Draw a tree as a Plotly figure: cards, leaves and bands.

The width of a band is proportional to its rows. Everything is a scatter trace, because Plotly draws these
fast: filled outlines for bands, cards and bars, text for words. Coordinates are pixels from the top left
corner; y grows downwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from trainer.tree.describe import leaf_text, split_text
from trainer.tree.nodes import Node, Tree
from trainer.tree.render.layout import (
    BAR,
    PAD,
    STRIP,
    SWATCH,
    Box,
    Notes,
    PlacedBoxes,
    Point,
    Room,
    band,
    bar_top,
    first_view,
    leaves_below,
    level_closed,
    place,
    strip_top,
)
from trainer.tree.render.palette import ClassStyle, class_styles, distinct_styles, escape, frame, wrap
from trainer.tree.render.words import Unseen, words_trace

# number of pieces in one side of a band; fewer if the tree has many nodes
STEPS = 18
MANY_STEPS = 8
MANY = 40
RIBBON = 0.36
STEEP = 4  # pixels across per pixel down, up to which a band does not look thin
THICK = 0.45  # largest share of a level gap that a nearly horizontal band may fill


def tree_figure(
    tree: Tree,
    *,
    path: Sequence[int] = (),
    chosen: int | None = None,
    closed: Collection[int] | None = None,
    levels: int | None = None,
    room: Room | None = None,
    unseen: Unseen | None = None,
    notes: Notes | None = None,
) -> dict[str, Any]:
    """Return the Plotly JSON of `tree`; `path` are the node ids to highlight, `chosen` gets a strong border.

    `closed` are branches whose lower parts are not drawn, `levels` closes all below that many questions. With
    `room` (width, height) alone, as many levels are open as are readable there. `unseen` gives for leaves the
    correct unseen rows, and all of them. `notes` are small words for the cards of questions.
    `layout.meta.nodes` has the box, relatives and label of each node, for clicks and the keyboard.
    """
    if closed is None and levels is not None:
        closed = level_closed(tree, levels)
    if closed is None:
        closed = first_view(tree, room) if room else ()
    placed = place(tree, closed=closed, room=room, notes=notes)
    lit = set(path)
    groups = distinct_styles(class_styles(tree.classes))
    data = [
        *_bands(placed, groups),
        *_cards(placed, lit, chosen),
        *_bars(placed, groups),
        _lit(placed, lit),
        words_trace(placed, lit, unseen or {}),
        _centres(placed),
    ]
    layout = frame(
        width=round(placed.width),
        height=round(placed.height),
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        xaxis=_still([0, round(placed.width)]),
        yaxis=_still([round(placed.height), 0]),
        hovermode="closest",
        hoverdistance=80,
        dragmode=False,
        meta={
            "kind": "tree",
            "closed": sorted(placed.closed),
            "levels": tree.depth,
            "nodes": [_record(placed, box) for box in placed.boxes.values()],
        },
    )
    return {"data": [trace for trace in data if trace], "layout": layout}


# ---- bands: as wide as their rows, split by class


def _bands(placed: PlacedBoxes, groups: Sequence[tuple[ClassStyle, list[int]]]) -> list[dict[str, Any]]:
    n_rows = placed.tree.nodes[0].rows
    outlines: list[list[list[Point]]] = [[] for _ in groups]
    steps = STEPS if len(placed.boxes) <= MANY else MANY_STEPS
    for parent in placed.boxes.values():
        start = parent.x - band(parent.node.rows, n_rows) / 2
        for _, child in placed.children(parent):
            full = band(child.node.rows, n_rows)
            middles = _middles((start + full / 2, parent.bottom), (child.x, child.top), full, steps)
            at = -full / 2
            for g, (_, codes) in enumerate(groups):
                width = band(sum(child.node.counts[k] for k in codes), n_rows)
                if width:
                    outlines[g].append(_ribbon(middles, at, at + max(width, 0.8)))
                at += width
            start += full
    return [
        _filled_shapes(outline, style, opacity=RIBBON, name=f"rows: {style.name}")
        for (style, _), outline in zip(groups, outlines, strict=True)
    ]


def _middles(start: Point, end: Point, width: float, steps: int) -> list[tuple[float, float, float]]:
    """Return the points of a band's middle line, each with the factor by which the band is widened there.

    Bands are measured across the page, so that nearly horizontal parts would look thin. They are widened as long as
    they stay clear of the next band and of the levels above and below. Steep bands keep their width.
    """
    points = []
    across = abs(end[0] - start[0])
    down = end[1] - start[1]
    slope = 2 * across / down  # slope of the band halfway
    clear = 3 * across / (8 * max(width, 1.0))  # with this limit, the side towards the other band never turns back
    most = max(0.0, min(slope - STEEP, clear, THICK * down * slope / max(width, 1.0) - 1))
    for i in range(steps + 1):
        t = i / steps
        x, y = _curve(start, end, t)
        points.append((x, y, 1 + most * (4 * t * (1 - t)) ** 2))
    return points


def _ribbon(middles: Sequence[tuple[float, float, float]], left: float, right: float) -> list[Point]:
    """Return the outline of a part of a band, from `left` to `right` of its middle line."""
    return [*((x + k * left, y) for x, y, k in middles), *((x + k * right, y) for x, y, k in reversed(middles))]


def _curve(start: Point, end: Point, t: float) -> Point:
    """Return a point of the cubic curve whose handles lie half-way down."""
    middle = (start[1] + end[1]) / 2
    x = start[0] + (end[0] - start[0]) * t * t * (3 - 2 * t)
    y = (1 - t) ** 3 * start[1] + 3 * t * (1 - t) * middle + t**3 * end[1]
    return x, y


def _lit(placed: PlacedBoxes, lit: set[int]) -> dict[str, Any]:
    """Return the path of one row as an ink line through the bands."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for parent in placed.boxes.values():
        for _, child in placed.children(parent):
            if parent.node.id in lit and child.node.id in lit:
                points = [_curve((parent.x, parent.bottom), (child.x, child.top), i / STEPS) for i in range(STEPS + 1)]
                xs += [*(round(x, 1) for x, _ in points), None]
                ys += [*(round(y, 1) for _, y in points), None]
    if not xs:
        return {}
    line = {"color": "var(--ink)", "width": 2.5}
    return {"type": "scatter", "mode": "lines", "name": "path", "x": xs, "y": ys, "line": line, "hoverinfo": "skip"}


# ---- cards and bars


def _cards(placed: PlacedBoxes, lit: set[int], chosen: int | None) -> list[dict[str, Any]]:
    kinds: dict[str, tuple[str, float, list[list[Point]]]] = {
        "leaves": ("var(--line)", 1, []),
        "questions": ("var(--line-strong)", 1, []),
        "on the path": ("var(--ink)", 1.75, []),
        "chosen": ("var(--ink)", 2.5, []),
    }
    for box in placed.boxes.values():
        kind = "leaves" if box.node.is_leaf else "questions"
        if box.node.id == chosen:
            kind = "chosen"
        elif box.node.id in lit:
            kind = "on the path"
        kinds[kind][2].append(_card_outline(box))
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            **_outline(outlines),
            "fill": "toself",
            "fillcolor": "var(--panel)",
            "line": {"color": colour, "width": width},
            "hoverinfo": "skip",
        }
        for name, (colour, width, outlines) in kinds.items()
        if outlines
    ]


def _card_outline(box: Box, r: float = 4.0) -> list[Point]:
    """Return the outline of a card; each corner is cut twice, which looks round at this size."""
    x0 = box.left
    y0 = box.top
    x1 = box.left + box.width
    y1 = box.bottom
    k = 0.3 * r
    return [
        (x0 + r, y0), (x1 - r, y0), (x1 - k, y0 + k), (x1, y0 + r), (x1, y1 - r), (x1 - k, y1 - k),
        (x1 - r, y1), (x0 + r, y1), (x0 + k, y1 - k), (x0, y1 - r), (x0, y0 + r), (x0 + k, y0 + k), (x0 + r, y0),
    ]  # fmt: skip


def _bars(placed: PlacedBoxes, groups: Sequence[tuple[ClassStyle, list[int]]]) -> list[dict[str, Any]]:
    """Return one trace for each class: its part of each class bar, the squares of its leaves, its leaves in closed cards."""
    outlines: list[list[list[Point]]] = [[] for _ in groups]
    group_of = {k: g for g, (_, codes) in enumerate(groups) for k in codes}
    for box in placed.boxes.values():
        v = box.node
        at = box.left + PAD
        for g, (_, codes) in enumerate(groups):
            width = box.inner * sum(v.counts[k] for k in codes) / max(1, v.rows)
            if width:
                outlines[g].append(_rectangle(at, bar_top(box), width, BAR))
            at += width
        if v.is_leaf:
            outlines[group_of[v.label]].append(_rectangle(box.left + PAD, box.top + 8 + 2.5, SWATCH, SWATCH))
        elif box.closed:
            _strip(placed, box, outlines, group_of)
    return [
        _filled_shapes(f, style, opacity=1, name=style.name) for (style, _), f in zip(groups, outlines, strict=True)
    ]


def _strip(placed: PlacedBoxes, box: Box, outlines: list[list[list[Point]]], group_of: Mapping[int, int]) -> None:
    """Add the leaves below a closed card in their order: width = rows, colour = answer."""
    at = box.left + PAD
    leaves = leaves_below(placed.tree, box.node.id)
    for leaf in leaves:
        width = box.inner * leaf.rows / max(1, box.node.rows)
        if width:
            outlines[group_of[leaf.label]].append(_rectangle(at, strip_top(box), max(0.6, width - 0.8), STRIP))
        at += width


def _rectangle(x: float, y: float, width: float, height: float) -> list[Point]:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]


def _filled_shapes(outlines: list[list[Point]], style: ClassStyle, *, opacity: float, name: str) -> dict[str, Any]:
    """Return filled outlines in the colour of a class, hatched like its bars."""
    if not outlines:
        return {}
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "name": escape(name),
        **_outline(outlines),
        "fill": "toself",
        "fillcolor": style.colour,
        "line": {"width": 0, "color": style.colour},
        "opacity": opacity,
        "hoverinfo": "skip",
    }
    if style.hatch:
        trace["fillpattern"] = style.bar["pattern"]
    return trace


def _outline(outlines: Iterable[list[Point]]) -> dict[str, list[float | None]]:
    """Return the x and the y of outlines in one list each, with gaps between outlines."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for outline in outlines:
        xs += [*(round(x, 1) for x, _ in outline), None]
        ys += [*(round(y, 1) for _, y in outline), None]
    return {"x": xs[:-1], "y": ys[:-1]}


# ---- data for the page


def _centres(placed: PlacedBoxes) -> dict[str, Any]:
    boxes = placed.boxes.values()
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "nodes",
        "x": [round(b.x, 1) for b in boxes],
        "y": [round(b.top + b.height / 2, 1) for b in boxes],
        "customdata": [b.node.id for b in boxes],
        "hovertext": ["<br>".join(_hover(placed.tree, b.node)) for b in boxes],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"size": [min(b.width, 64) for b in boxes], "opacity": 0, "color": "var(--ink)"},
    }


def _hover(tree: Tree, v: Node) -> list[str]:
    """Return the whole rule or prediction, and the rows of the 20 largest classes, as lines of Plotly's markup."""
    head = leaf_text(tree, v) if v.split is None else split_text(v.split, tree.schema)
    lines = [f"<b>{escape(line)}</b>" for line in wrap(head, 420, 12, 12)]
    present = [(n, c) for n, c in zip(v.counts, tree.classes, strict=True) if n]
    weighted = tree.count_unit != "rows"
    largest = sorted(present, key=lambda p: -p[0])[:20]
    lines += [f"{f'{n:,}' if weighted else tree.counted(n)} {escape(c)}" for n, c in largest]
    return [*lines, f"{tree.counted(v.rows)} in all"]


def _record(placed: PlacedBoxes, box: Box) -> dict[str, Any]:
    v = box.node
    tree = placed.tree
    words = leaf_text(tree, v) if v.split is None else v.split.brief(tree.schema)
    ends = v.is_leaf or box.closed
    return {
        "id": v.id,
        "parent": tree.parents[v.id],
        "left": -1 if ends else v.left,
        "right": -1 if ends else v.right,
        "leaf": v.is_leaf,
        "closed": box.closed,
        "level": box.level,
        "box": [round(n, 1) for n in (box.left, box.top, box.width, box.height)],
        "label": f"{words}, {tree.counted(v.rows)}" if v.split is not None else words,
    }


def _still(span: list[int]) -> dict[str, Any]:
    """Return an axis of pixels that draws nothing and does not move."""
    return {"range": span, "autorange": False, "fixedrange": True, "visible": False}
