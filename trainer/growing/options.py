"""What every method that grows a tree may choose of a split: the measure of impurity and the smallest leaf."""

from __future__ import annotations

from dataclasses import dataclass

MEASURES = {"gini": 0, "entropy": 1, "error": 2}  # the number by which kernels know a measure


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """`measure` is a key of MEASURES; `min_leaf` the smallest weight of a side."""

    measure: str = "gini"
    min_leaf: int = 1
