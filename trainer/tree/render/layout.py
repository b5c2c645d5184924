"""Lay out the cards of a tree: open nodes, sizes and positions.

Children stand as close as possible. Coordinates are pixels from the top left corner; y grows downwards. A closed branch
represents its whole subtree.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainer.tree.nodes import Node, Tree
from trainer.tree.render.names import short_names
from trainer.tree.render.palette import number_width, text_width, wrap
from trainer.tree.splits import Split

MARGIN = 16
GAP = 10
LEVEL_GAP = 58
LEVEL_ROOM = 132
# widths of cards in pixels
CARD = 196
LEAF = 154
COMPACT = 106
CLOSED = 116
PAD = 10
LINE = 15
FONT = 12.5
SMALL = 11.0
FULL_TO = 6  # leaves show their unseen rows if at most this many cards have no children
# sizes in pixels: square of a class, class bars, strips of leaves
SWATCH = 10
BAR = 6
STRIP = 12
SHOWN_CATEGORIES = 3
# limit on the lines of a question; names may be cut, but numbers never
LINES = 3
NUMBER_LINES = 12
# limits on the letters of a column name and of a class name in a card
CARD_NAME = 20
CLASS_NAME = 13
READABLE = 0.8  # a picture may shrink to this share of its size before levels are closed
STRETCH = 1.35
BAND = 104  # width of a band that carries all rows
AWAY = 6  # distance from a band to its words

Room = tuple[float, float]
Point = tuple[float, float]
Span = tuple[float, float]  # extent to the left and to the right of a centre
Notes = Mapping[int, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Box:
    """A placed node: centre x, top, size, and the lines of its rule and notes; `closed` hides its subtree."""

    node: Node
    x: float
    top: float
    width: float
    height: float
    lines: tuple[str, ...]
    notes: tuple[str, ...]  # smaller text below the rule
    closed: bool
    level: int
    stacked: bool = False  # whether a leaf shows its share below its class instead of beside it

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def inner(self) -> float:
        """The width for words and bars."""
        return self.width - 2 * PAD

    @property
    def compact(self) -> bool:
        """Whether a leaf has room only for its class, its share and its rows."""
        return self.node.is_leaf and self.width == COMPACT


@dataclass(frozen=True, kw_only=True)
class PlacedBoxes:
    """The boxes of the open nodes by node id, parents before children, and the size of the picture."""

    tree: Tree
    brief: Tree
    boxes: dict[int, Box]
    closed: frozenset[int]
    width: float
    height: float

    def children(self, box: Box) -> list[tuple[str, Box]]:
        """Return the answers of an open branch with their boxes, yes first."""
        if box.node.is_leaf or box.closed:
            return []
        return [("yes", self.boxes[box.node.left]), ("no", self.boxes[box.node.right])]


@dataclass
class _Plan:
    """Cards before they are placed."""

    tree: Tree
    closed: frozenset[int]
    full: bool
    stacked: bool
    level: dict[int, int] = field(default_factory=dict)
    lines: dict[int, tuple[str, ...]] = field(default_factory=dict)
    # width that a card needs for the longest number of its question
    numbers: dict[int, int] = field(default_factory=dict)
    notes: Notes = field(default_factory=dict)

    def ends(self, v: Node) -> bool:
        return v.is_leaf or v.id in self.closed

    def width(self, v: Node) -> int:
        if v.is_leaf:
            return LEAF if self.full else COMPACT
        return max(CLOSED if v.id in self.closed else CARD, self.numbers[v.id])

    def height(self, v: Node) -> float:
        if v.is_leaf:
            lines = 2 if self.stacked else 1
        else:
            lines = len(self.lines[v.id]) + len(self.notes.get(v.id, ()))
        words = 8 + LINE * lines + 5 + BAR
        if v.is_leaf and not self.full:
            return words + 8
        return words + 4 + LINE + 5 + (2 + STRIP + 3 + LINE if v.id in self.closed else 0)


def _empty_note(v: Node) -> tuple[str, ...]:
    """Return a note on the side of empty cells, if training rows had some and the question does not state it."""
    answer = v.split.empty_answer() if v.split is not None else ""
    return (f"empty: {answer}",) if answer else ()


def place(
    tree: Tree, *, closed: Collection[int] = (), room: Room | None = None, notes: Notes | None = None
) -> PlacedBoxes:
    """Place the nodes that no node of `closed` hides; spread them over `room` (width, height) if it is larger.

    `notes` are words for the cards of open questions, which are shown if there are few cards.
    """
    brief = brief_tree(tree)
    plan = _plan(tree, brief, frozenset(c for c in closed if not tree.nodes[c].is_leaf))
    if plan.full:
        plan.notes = {
            i: (*_empty_note(tree.nodes[i]), *(notes or {}).get(i, ())) for i in plan.lines if i not in plan.closed
        }
    open_nodes = [tree.nodes[i] for i in plan.level]
    spans = _spans(plan, open_nodes)
    x = _across(plan, open_nodes, spans)
    low = min(x[v.id] + spans[v.id][0] for v in open_nodes)
    high = max(x[v.id] + spans[v.id][1] for v in open_nodes)
    width = high - low + 2 * MARGIN
    stretch = 1.0
    if room and len(open_nodes) > 1 and width < room[0]:
        stretch = min(STRETCH, (room[0] - 2 * MARGIN) / (high - low))
    tops, height = _level_tops(plan, open_nodes, room[1] if room else 0.0)
    middle = stretch * (high - low) / 2 + MARGIN
    boxes = {
        v.id: Box(
            node=v,
            x=middle + stretch * (x[v.id] - (low + high) / 2),
            top=tops[plan.level[v.id]],
            width=plan.width(v),
            height=plan.height(v),
            lines=plan.lines.get(v.id, ()),
            notes=tuple(plan.notes.get(v.id, ())),
            closed=v.id in plan.closed,
            level=plan.level[v.id],
            stacked=v.is_leaf and plan.stacked,
        )
        for v in open_nodes
    }
    return PlacedBoxes(tree=tree, brief=brief, boxes=boxes, closed=plan.closed, width=2 * middle, height=height)


def first_view(tree: Tree, room: Room) -> frozenset[int]:
    """Return the branches to close so that the picture is readable in `room`: whole levels, as few as possible."""
    for levels in range(tree.depth, 0, -1):
        closed = level_closed(tree, levels)
        placed = place(tree, closed=closed)
        if READABLE * placed.width <= room[0] and READABLE * placed.height <= room[1]:
            return closed
    return level_closed(tree, 1)


def level_closed(tree: Tree, levels: int) -> frozenset[int]:
    """Return the branches to close so that at most `levels` questions on a path are open."""
    level = [0] * len(tree.nodes)
    for v in tree.nodes:
        if not v.is_leaf:
            level[v.left] = level[v.right] = level[v.id] + 1
    return frozenset(v.id for v in tree.branches if level[v.id] == levels)


def brief_tree(tree: Tree) -> Tree:
    """Return the tree with short names, which is used for words only."""
    columns = short_names([c.name for c in tree.schema], CARD_NAME)
    schema = tuple(
        replace(c, name=name, categories=tuple(short_names(c.categories)))
        for c, name in zip(tree.schema, columns, strict=True)
    )
    return replace(tree, schema=schema, classes=tuple(short_names(tree.classes, CLASS_NAME)))


def rule(tree: Tree, split: Split) -> str:
    """Return the rule in words: at most three categories of a subset; only the number of columns of a long sum."""
    return split.brief(tree.schema, most=SHOWN_CATEGORIES)


def _plan(tree: Tree, brief: Tree, closed: frozenset[int]) -> _Plan:
    level = {}
    waiting = [(0, 0)]
    while waiting:
        at, depth = waiting.pop()
        level[at] = depth
        v = tree.nodes[at]
        if not v.is_leaf and at not in closed:
            waiting += [(v.right, depth + 1), (v.left, depth + 1)]
    ends = sum(tree.nodes[i].is_leaf or i in closed for i in level)
    full = ends <= FULL_TO
    names = max(text_width(brief.class_words[tree.nodes[i].label], FONT) for i in range(len(tree.nodes)))
    stacked = not full or names > LEAF - 2 * PAD - SWATCH - 5 - text_width("100.0\u202f%", FONT)
    level = dict(sorted(level.items()))
    plan = _Plan(tree=tree, closed=closed & level.keys(), full=full, stacked=stacked, level=level)
    for i in plan.level:
        split = brief.nodes[i].split
        if split is not None:
            words = rule(brief, split)
            plan.numbers[i] = math.ceil(number_width(words, FONT)) + 2 * PAD
            plan.lines[i] = _card_lines(tree, words, split, plan.width(tree.nodes[i]) - 2 * PAD)
    return plan


def _card_lines(tree: Tree, words: str, split: Split, width: float) -> tuple[str, ...]:
    """Return the lines of a question, with whole names if they take no more lines than the short ones in `words`."""
    if split.among:
        return tuple(wrap(words, width, FONT, LINES))
    short = wrap(words, width, FONT, NUMBER_LINES)
    wrapped = wrap(rule(tree, split), width, FONT, NUMBER_LINES)
    return tuple(wrapped if len(wrapped) <= len(short) else short)


def _level_tops(plan: _Plan, nodes: Sequence[Node], room: float) -> tuple[list[float], float]:
    """Return the top of each level, and the total height."""
    deepest = max(plan.level.values())
    heights = [max(plan.height(v) for v in nodes if plan.level[v.id] == at) for at in range(deepest + 1)]
    gap = LEVEL_GAP
    if deepest:
        gap = max(LEVEL_GAP, min(LEVEL_ROOM, int((room - 2 * MARGIN - sum(heights)) / deepest)))
    tops = []
    top = float(MARGIN)
    for height in heights:
        tops.append(top)
        top += height + gap
    return tops, top - gap + MARGIN


def _spans(plan: _Plan, nodes: Sequence[Node]) -> dict[int, Span]:
    """Return the extent of each card from its centre, including the words beside the band above it."""
    halves = {v.id: plan.width(v) / 2 for v in nodes}
    spans = {i: (-half, half) for i, half in halves.items()}
    n_rows = plan.tree.nodes[0].rows
    for parent in nodes:
        if plan.ends(parent):
            continue
        for answer, child in (("yes", parent.left), ("no", parent.right)):
            half = halves[child]
            rows = plan.tree.nodes[child].rows
            if not fits_beside_band(2 * half):
                continue
            reach = max(half, band(rows, n_rows) / 2 + AWAY + text_width(band_text(answer, rows), SMALL))
            spans[child] = (-reach, half) if answer == "yes" else (-half, reach)
    return spans


def _across(plan: _Plan, nodes: Sequence[Node], spans: Mapping[int, Span]) -> dict[int, float]:
    """Return the centre of each open node: boxes of a level do not touch, parents stand midway above their children."""
    offset: dict[int, float] = {}
    contour: dict[int, list[Span]] = {}  # for each node, the leftmost and rightmost extent of every level below
    for v in reversed(nodes):
        span = spans[v.id]
        if plan.ends(v):
            contour[v.id] = [span]
            continue
        left = contour.pop(v.left)
        right = contour.pop(v.right)
        half = offset[v.id] = _least_distance(left, right) / 2
        below = []
        for depth in range(max(len(left), len(right))):
            low = left[depth][0] - half if depth < len(left) else right[depth][0] + half
            high = right[depth][1] + half if depth < len(right) else left[depth][1] - half
            below.append((low, high))
        contour[v.id] = [span, *below]
    x = {0: 0.0}
    for v in nodes:
        if not plan.ends(v):
            x[v.left] = x[v.id] - offset[v.id]
            x[v.right] = x[v.id] + offset[v.id]
    return x


def _least_distance(left: list[Span], right: list[Span]) -> float:
    """Return the least distance of the centres of two neighbours."""
    return max(a[1] - b[0] + GAP for a, b in zip(left, right, strict=False))


def band(rows: int, n_rows: int) -> float:
    """Return the width of the band for `rows` of `n_rows` rows."""
    return BAND * rows / max(1, n_rows)


def band_text(answer: str, rows: int) -> str:
    """Return the words beside a band: its answer and its rows."""
    return f"{answer} · {rows:,}"


def fits_beside_band(width: float) -> bool:
    """Return whether words fit beside the band above a card of this width; narrow cards show their rows inside."""
    return width >= LEAF


def leaves_below(tree: Tree, node: int) -> list[Node]:
    """Return the leaves below a node from left to right; for a leaf, itself."""
    leaves = []
    waiting = [node]
    while waiting:
        v = tree.nodes[waiting.pop()]
        if v.is_leaf:
            leaves.append(v)
        else:
            waiting += [v.right, v.left]
    return leaves


def bar_top(box: Box) -> float:
    """Return the y coordinate of the class bar of a card."""
    if box.node.is_leaf:
        lines = 2 if box.stacked else 1
    else:
        lines = len(box.lines) + len(box.notes)
    return box.top + 8 + LINE * lines + 5


def strip_top(box: Box) -> float:
    """Return the y coordinate of the strip of leaves of a closed card."""
    return bar_top(box) + BAR + 4 + LINE + 2
