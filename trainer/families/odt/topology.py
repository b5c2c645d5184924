"""Define topologies of decision nodes, named or given as text.

A shape is `Shape(left, right)`; a child None is a leaf. Text form: brackets around the two children of a node, a dot for a leaf, so that
depth 2 is `[[..][..]]` and the imbalanced topology `[[..][[..][[..][..]]]]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from trainer.errors import ParameterError

NAMED = {
    "depth-1": "[..]",
    "depth-2": "[[..][..]]",
    "depth-2.5": "[[..][[..][..]]]",
    "depth-3": "[[[..][..]][[..][..]]]",
    "imbalanced": "[[..][[..][[..][..]]]]",
}
MAX_NODES = 63


@dataclass(frozen=True)
class Shape:
    """A decision node and the shapes of its children."""

    left: Shape | None
    right: Shape | None

    @property
    def is_last(self) -> bool:
        """True if both children of the node are leaves."""
        return self.left is None and self.right is None

    @property
    def is_symmetric(self) -> bool:
        """True if both children are equal, so that a test and its complement give the same tree."""
        return self.left == self.right

    @property
    def nodes(self) -> int:
        """Number of decision nodes."""
        return 1 + sum(child.nodes for child in (self.left, self.right) if child is not None)

    @property
    def depth(self) -> int:
        """Number of decision nodes on the longest path."""
        return 1 + max((child.depth for child in (self.left, self.right) if child is not None), default=0)


def complete(depth: int) -> Shape | None:
    """Return the topology of all trees of at most `depth`; None for depth 0."""
    if depth <= 0:
        return None
    below = complete(depth - 1)
    return Shape(below, below)


def canonical(shape: Shape | None) -> Shape | None:
    """Exchange the children of nodes so that the larger one is right. The trees of the topology stay the same."""
    if shape is None:
        return None
    sides = sorted((canonical(shape.left), canonical(shape.right)), key=_size)
    return Shape(sides[0], sides[1])


def _size(shape: Shape | None) -> tuple[int, int, str]:
    return (0, 0, "") if shape is None else (shape.depth, shape.nodes, repr(shape))


def is_subtopology(one: Shape | None, other: Shape | None) -> bool:
    """Return whether topology `one` is part of `other`, up to exchanged children at each node."""
    if one is None or other is None:
        return one is None
    straight = is_subtopology(one.left, other.left) and is_subtopology(one.right, other.right)
    return straight or (is_subtopology(one.left, other.right) and is_subtopology(one.right, other.left))


@cache
def is_embedded(one: Shape | None, other: Shape | None) -> bool:
    """Return whether all trees of `one` are trees of `other` if a child may replace a trivial test of `other`."""
    if one is None or other is None:
        return one is None
    straight = is_embedded(one.left, other.left) and is_embedded(one.right, other.right)
    turned = straight or (is_embedded(one.left, other.right) and is_embedded(one.right, other.left))
    return turned or is_embedded(one, other.left) or is_embedded(one, other.right)


@cache
def subtopologies(shape: Shape | None, height: int) -> tuple[Shape, ...]:
    """Return the largest topologies of trees of `shape` with at most `height` nontrivial tests on a path."""
    if shape is None or height <= 0:
        return ()
    if shape.depth <= height:
        return (shape,)
    shapes: tuple[Shape, ...] = ()
    for child in (shape.left, shape.right):  # a trivial test at the root leaves the topology of one child
        shapes = _largest((*shapes, *subtopologies(child, height)), is_embedded)
    if complete(height) in shapes:
        return shapes
    left, right = (subtopologies(child, height - 1) or (None,) for child in (shape.left, shape.right))
    combined = [canonical(Shape(a, b)) for a in left for b in right]
    return _largest((*shapes, *(one for one in combined if one is not None)), is_embedded)


def _largest(shapes: Sequence[Shape], is_within: Callable[[Shape, Shape], bool]) -> tuple[Shape, ...]:
    """Drop topologies that lie within another one."""
    largest: list[Shape] = []
    for shape in shapes:
        if not any(is_within(shape, one) for one in largest):
            largest = [one for one in largest if not is_within(one, shape)] + [shape]
    return tuple(largest)


@cache
def layouts(shape: Shape) -> tuple[Shape, ...]:
    """Return the largest topologies of trees without trivial tests; a child replaces a trivial test."""
    below = [other for child in (shape.left, shape.right) if child is not None for other in layouts(child)]
    return _largest([shape, *below], is_subtopology)


@cache
def child_topologies(shape: Shape) -> tuple[tuple[Shape | None, Shape | None], ...]:
    """Return the distinct pairs of child topologies over all layouts of the topology, in both orders."""
    pairs = [pair for one in layouts(shape) for pair in ((one.left, one.right), (one.right, one.left))]
    return tuple(dict.fromkeys((canonical(a), canonical(b)) for a, b in pairs))


def parse(text: str) -> Shape:
    """Parse a name (`depth-2`, `depth-2.5`, `depth-3`, `imbalanced`) or brackets. Raises ParameterError."""
    code = "".join(NAMED.get(text.strip(), text).split())
    shape, place = _node(code, 0)
    if place != len(code) or shape is None:
        raise _error(text)
    if shape.nodes > MAX_NODES:
        raise ParameterError(
            {
                "topology": f"The topology has {shape.nodes} questions, but at most {MAX_NODES} are possible. Choose a smaller one."
            }
        )
    return shape


def _node(code: str, place: int) -> tuple[Shape | None, int]:
    if place < len(code) and code[place] == ".":
        return None, place + 1
    if place >= len(code) or code[place] != "[" or code.count("[", 0, place) > MAX_NODES:
        raise _error(code)
    left, place = _node(code, place + 1)
    right, place = _node(code, place)
    if place >= len(code) or code[place] != "]":
        raise _error(code)
    return Shape(left, right), place + 1


def _error(text: str) -> ParameterError:
    return ParameterError(
        {
            "topology": f"'{text[:80]}' is not a topology. Use {', '.join(NAMED)}, auto, or brackets such as [[..][..]] for depth 2."
        }
    )
