"""Enumerate and compare trees of labels.

Such a tree has the classes of the leaves and leaves the questions open. It is a class, or a pair of trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from trainer.check.proof.subject import BadProof

Tree = int | tuple["Tree", "Tree"]  # classes by their position; the two sides of a question
MAX_LABEL_TREES = 20_000


def labels(tree: Tree) -> frozenset[int]:
    """Return the classes that a tree predicts."""
    return frozenset([tree]) if isinstance(tree, int) else labels(tree[0]) | labels(tree[1])


def includes(large: Tree, small: Tree) -> bool:
    """Return True if the large tree can predict whatever the small one predicts, with additional idle questions."""
    if isinstance(small, int):
        return small in labels(large)
    if isinstance(large, int):
        return False
    pairs = zip(large, small, strict=True), zip(large, small[::-1], strict=True)
    return any(all(includes(*two) for two in pair) for pair in pairs) or any(includes(side, small) for side in large)


def trees(depth: int, leaves: int, classes: Sequence[int]) -> Iterator[Tree]:
    """Yield all trees of labels with `leaves` leaves, one of each mirrored pair; two leaves below a question differ."""
    if leaves == 1:
        yield from classes
    elif depth > 0:
        # the other child gets the remaining leaves
        for few in range(max(1, leaves - (1 << (depth - 1))), leaves // 2 + 1):
            for i, one in enumerate(trees(depth - 1, few, classes)):
                for two in islice(trees(depth - 1, leaves - few, classes), i if 2 * few == leaves else 0, None):
                    if one != two or not isinstance(one, int):
                        yield one, two


def read_tree(value: object, depth: int, classes: int) -> Tree:
    """Read a tree of labels of a proof; raise BadProof if `value` is not such a tree of at most this depth."""
    if type(value) is int and 0 <= value < classes:
        return value
    if depth > 0 and isinstance(value, list) and len(value) == 2:
        return read_tree(value[0], depth - 1, classes), read_tree(value[1], depth - 1, classes)
    raise BadProof("its tree of labels is too deep, or has a class that the model does not have")
