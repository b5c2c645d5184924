"""Define the options of a split that all greedy methods share."""

from __future__ import annotations

from dataclasses import dataclass

MEASURES = {"gini": 0, "entropy": 1, "error": 2}  # codes of the measures in kernels


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """`measure` is a key of MEASURES, `min_leaf` the minimum weight of a child."""

    measure: str = "gini"
    min_leaf: int = 1
