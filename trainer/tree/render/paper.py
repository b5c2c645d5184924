"""Draw a tree as SVG for documents; large trees in several pictures.

Bands are as wide as their rows. Cards are placed by the layout of the model page. Colours are from the light theme.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

from trainer.tree.describe import leaf_text, split_text
from trainer.tree.nodes import Node, Tree
from trainer.tree.numbers import points_text
from trainer.tree.render.layout import BAR, FONT, LINE, PAD, SMALL, Box, PlacedBoxes, band, bar_top, first_view, place
from trainer.tree.render.palette import MAX_CLASSES, fit
from trainer.tree.render.tokens import CLASSES, LIGHT

PAPER = 674.0  # pixels between the margins of a page
SMALLEST = 0.7  # a picture may be shrunk to this share of its size
ROOM = (0.8 * PAPER / SMALLEST, 1150.0)  # `first_view` lets pictures shrink to 0.8 by itself
MOST = 40  # limit on the pictures; the text has the rules of a larger tree
INK = LIGHT["ink"]
INK2 = LIGHT["ink-2"]
EDGE = LIGHT["line-strong"]
FAINT = LIGHT["line"]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture: its top node (0: the root), the nodes that other pictures continue, and the SVG."""

    node: int
    goes_on: tuple[int, ...]
    svg: str


def colour(k: int, classes: int) -> str:
    """Return the colour of class `k`."""
    return LIGHT["c-other"] if classes > MAX_CLASSES and k >= MAX_CLASSES - 1 else CLASSES[k % len(CLASSES)]


def pictures(tree: Tree) -> list[Picture]:
    """Return pictures of the tree from the root down, at most 40, each small enough for a page."""
    drawings: list[Picture] = []
    waiting = [0]
    while waiting and len(drawings) < MOST:
        node = waiting.pop(0)
        part, ids = below(tree, node)
        placed = place(part, closed=first_view(part, ROOM))
        closed = tuple(ids[i] for i in sorted(placed.closed & placed.boxes.keys()))
        drawings.append(Picture(node=node, goes_on=closed, svg=_svg(placed, ids, tree.nodes[0].rows)))
        waiting += closed
    return drawings


def below(tree: Tree, node: int) -> tuple[Tree, list[int]]:
    """Return the subtree at `node` as a tree of its own, and the id of each of its nodes in the whole tree."""
    ids = [node]
    for i in ids:  # the list grows during the loop, which gives breadth-first order
        v = tree.nodes[i]
        if not v.is_leaf:
            ids += [v.left, v.right]
    place_of = {old: new for new, old in enumerate(ids)}
    nodes = tuple(
        replace(v, id=place_of[v.id], left=place_of.get(v.left, -1), right=place_of.get(v.right, -1))
        for v in (tree.nodes[i] for i in ids)
    )
    return replace(tree, nodes=nodes), ids


def svg_of(tree: Tree, room: tuple[float, float] = ROOM) -> tuple[str, int]:
    """Return the tree in one picture, and the number of its nodes that `room` (width, height) has no place for."""
    placed = place(tree, closed=first_view(tree, room))
    svg = _svg(placed, list(range(len(tree.nodes))), tree.nodes[0].rows)
    return svg, len(tree.nodes) - len(placed.boxes)


def hover_text(tree: Tree, v: Node) -> str:
    """Return the whole rule or prediction of a node, and its rows of every class, the most frequent first."""
    head = leaf_text(tree, v) if v.split is None else split_text(v.split, tree.schema) + "?"
    present = sorted(((n, c) for n, c in zip(v.counts, tree.classes, strict=True) if n), key=lambda pair: -pair[0])
    in_all = "training rows" if tree.count_unit == "rows" else tree.count_unit
    return "\n".join([head, *(f"{n:,} {c}" for n, c in present), f"{v.rows:,} {in_all} in all"])


def _svg(placed: PlacedBoxes, ids: list[int], n_rows: int) -> str:
    scale = min(1.0, PAPER / placed.width)
    size = f'width="{scale * placed.width:.0f}" height="{scale * placed.height:.0f}"'
    title = f"Tree from node {ids[0]} down: {len(placed.boxes)} nodes. The rules in words follow in the text."
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {placed.width:.0f} {placed.height:.0f}" {size}']
    parts.append(f' role="img" aria-label="{escape(title)}" font-family="Inter, DejaVu Sans, Arial, sans-serif">')
    for box in placed.boxes.values():
        at = box.x
        widths = {child.node.id: band(child.node.rows, n_rows) for _, child in placed.children(box)}
        at -= sum(widths.values()) / 2
        for answer, child in placed.children(box):
            parts.append(_bands(placed, box, child, at, n_rows))
            at += widths[child.node.id]
            parts.append(_answer(answer, child))
    parts += [_card(placed, box, ids[box.node.id]) for box in placed.boxes.values()]
    return "".join([*parts, "</svg>"])


def _bands(placed: PlacedBoxes, box: Box, child: Box, start: float, n_rows: int) -> str:
    """Return the band from a card to one below it, one ribbon for each class."""
    out = []
    classes = len(placed.tree.classes)
    a = start
    b = child.x - band(child.node.rows, n_rows) / 2
    middle = (box.bottom + child.top) / 2
    for k, count in enumerate(child.node.counts):
        w = band(count, n_rows)
        if not count:
            continue
        out.append(
            f'<path fill="{colour(k, classes)}" fill-opacity=".34" d="M{a:.1f} {box.bottom:.1f}C{a:.1f} {middle:.1f} {b:.1f} {middle:.1f} '
            f'{b:.1f} {child.top:.1f}H{b + w:.1f}C{b + w:.1f} {middle:.1f} {a + w:.1f} {middle:.1f} {a + w:.1f} {box.bottom:.1f}Z"/>'
        )
        a = a + w
        b = b + w
    return "".join(out)


def _answer(answer: str, child: Box) -> str:
    x, anchor = (child.x - 10, "end") if answer == "yes" else (child.x + 10, "start")
    return f'<text x="{x:.1f}" y="{child.top - 6:.1f}" font-size="{SMALL}" fill="{INK2}" text-anchor="{anchor}">{answer}</text>'


def _card(placed: PlacedBoxes, box: Box, number: int) -> str:
    v = box.node
    brief = placed.brief
    edge = FAINT if v.is_leaf else EDGE
    left = box.left + PAD
    top = box.top + 8 + LINE - 4
    out = [
        f"<g><title>{escape(hover_text(placed.tree, v))}</title>",
        f'<rect x="{box.left:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6" fill="{LIGHT["card"]}" stroke="{edge}"/>',
    ]
    if v.is_leaf:
        name = fit(brief.class_words[v.label], box.inner - 14, FONT)
        fill = colour(v.label, len(brief.classes))
        out.append(f'<rect x="{left:.1f}" y="{top - 9:.1f}" width="10" height="10" rx="2" fill="{fill}"/>')
        out.append(_text(left + 14, top, name, bold=True))
        y = top + LINE if box.stacked else bar_top(box) + BAR + LINE
        out.append(_text(left, y, _leaf_words(v, number, box.inner + 8), small=True))
    else:
        out += [_text(left, top + LINE * i, line, bold=True) for i, line in enumerate(box.lines)]
        words = f"node {number} goes on" if box.closed else f"node {number} · {placed.tree.counted(v.rows)}"
        out.append(_text(left, bar_top(box) + BAR + LINE - 1, words, small=True))
    return "".join([*out, _bar(box, len(brief.classes)), "</g>"])


def _leaf_words(v: Node, number: int, width: float) -> str:
    """Return the share of a leaf's class and the number of the leaf, with its rows and decimals if there is room."""
    if not v.rows:
        return fit(f"no rows · leaf {number}", width, SMALL)
    share = v.counts[v.label] / v.rows
    exact = f"{points_text(share)} %"
    tries = (f"{exact} of {v.rows:,} · leaf {number}", f"{exact} · leaf {number}")
    shortest = fit(f"{points_text(share, 0)} % · leaf {number}", width, SMALL)
    return next((words for words in tries if fit(words, width, SMALL) == words), shortest)


def _bar(box: Box, classes: int) -> str:
    x = box.left + PAD
    out = []
    for k, count in enumerate(box.node.counts):
        if not count:
            continue
        w = box.inner * count / max(1, box.node.rows)
        out.append(
            f'<rect x="{x:.1f}" y="{bar_top(box):.1f}" width="{w:.1f}" height="{BAR}" fill="{colour(k, classes)}"/>'
        )
        x += w
    return "".join(out)


def _text(x: float, y: float, words: str, *, bold: bool = False, small: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    size, ink = (SMALL, INK2) if small else (FONT, INK)
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{weight} fill="{ink}">{escape(words)}</text>'
