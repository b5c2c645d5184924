"""Fixed topologies of decision nodes: the four of Günlük et al. and any other given as text.

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
        """True where exchanging the children changes nothing, so a test and its complement give the same tree."""
        return self.left == self.right

    @property
    def nodes(self) -> int:
        """Number of decision nodes."""
        return 1 + sum(child.nodes for child in (self.left, self.right) if child is not None)

    @property
    def depth(self) -> int:
        """Decision nodes on the longest path."""
        return 1 + max((child.depth for child in (self.left, self.right) if child is not None), default=0)


def complete(depth: int) -> Shape | None:
    """The topology of all trees of at most `depth` questions; None for depth 0."""
    if depth <= 0:
        return None
    below = complete(depth - 1)
    return Shape(below, below)


def canonical(shape: Shape | None) -> Shape | None:
    """The same topology with the larger side right at each node: which side of a question goes which way is free."""
    if shape is None:
        return None
    sides = sorted((canonical(shape.left), canonical(shape.right)), key=_size)
    return Shape(sides[0], sides[1])


def _size(shape: Shape | None) -> tuple[int, int, str]:
    return (0, 0, "") if shape is None else (shape.depth, shape.nodes, repr(shape))


def fits(one: Shape | None, other: Shape | None) -> bool:
    """Whether a topology lies within the other, either way round at each node."""
    if one is None or other is None:
        return one is None
    straight = fits(one.left, other.left) and fits(one.right, other.right)
    return straight or (fits(one.left, other.right) and fits(one.right, other.left))


@cache
def grows(one: Shape | None, other: Shape | None) -> bool:
    """Whether a topology lies within the other where its questions may part no rows, and then leave their place to what is below them."""
    if one is None or other is None:
        return one is None
    straight = grows(one.left, other.left) and grows(one.right, other.right)
    turned = straight or (grows(one.left, other.right) and grows(one.right, other.left))
    return turned or grows(one, other.left) or grows(one, other.right)


@cache
def subtopologies(shape: Shape | None, height: int) -> tuple[Shape, ...]:
    """The largest topologies of the trees of a topology with at most `height` questions on a path; one that parts no rows does not count."""
    if shape is None or height <= 0:
        return ()
    if shape.depth <= height:
        return (shape,)
    found: tuple[Shape, ...] = ()
    for child in (shape.left, shape.right):  # the question here parts no rows
        found = _largest((*found, *subtopologies(child, height)), grows)
    if complete(height) in found:
        return found
    left, right = (subtopologies(child, height - 1) or (None,) for child in (shape.left, shape.right))
    made = [canonical(Shape(a, b)) for a in left for b in right]
    return _largest((*found, *(one for one in made if one is not None)), grows)


def _largest(shapes: Sequence[Shape], lies: Callable[[Shape, Shape], bool]) -> tuple[Shape, ...]:
    """The topologies that do not lie within another one."""
    found: list[Shape] = []
    for shape in shapes:
        if not any(lies(shape, one) for one in found):
            found = [one for one in found if not lies(one, shape)] + [shape]
    return tuple(found)


@cache
def layouts(shape: Shape) -> tuple[Shape, ...]:
    """The largest topologies of trees that part some rows by every question: one that parts none leaves the place to what is below it."""
    below = [other for child in (shape.left, shape.right) if child is not None for other in layouts(child)]
    return _largest([shape, *below], fits)


@cache
def rooms_below(shape: Shape) -> tuple[tuple[Shape | None, Shape | None], ...]:
    """What the sides of a question have room for, for each way to lay the topology out."""
    pairs = [pair for one in layouts(shape) for pair in ((one.left, one.right), (one.right, one.left))]
    return tuple(dict.fromkeys((canonical(a), canonical(b)) for a, b in pairs))


def parse(text: str) -> Shape:
    """The shape of a name (`depth-2`, `depth-2.5`, `depth-3`, `imbalanced`) or a bracket text; raises ParameterError."""
    code = "".join(NAMED.get(text.strip(), text).split())
    shape, place = _node(code, 0)
    if place != len(code) or shape is None:
        raise _error(text)
    if shape.nodes > MAX_NODES:
        raise ParameterError({"topology": f"The topology has {shape.nodes} decision nodes; {MAX_NODES} is the limit."})
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
