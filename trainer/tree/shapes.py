"""Represent trees over binary features as nested tuples; shared by five families and by editing."""

from __future__ import annotations

from typing import Any

Shape = tuple[int, Any, Any] | None  # (feature, subtree where it is 0, subtree where it is 1); None is a leaf
LabelledShape = tuple[int, Any, Any] | int | None  # the same, but a leaf may be a class; None is the majority class


def stump(feature: int) -> Shape:
    """Return the tree of one split on the feature, or a leaf if the feature is negative."""
    return None if feature < 0 else (feature, None, None)


def shape_depth(shape: LabelledShape) -> int:
    """Return the largest number of splits on a path."""
    return 1 + max(shape_depth(shape[1]), shape_depth(shape[2])) if isinstance(shape, tuple) else 0
