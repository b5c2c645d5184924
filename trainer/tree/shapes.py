"""Trees over binary features as nested tuples, before they are drafts."""

from __future__ import annotations

from typing import Any

Shape = tuple[int, Any, Any] | None  # (feature, subtree where it is 0, subtree where it is 1), or None for a leaf
LabelledShape = tuple[int, Any, Any] | int | None  # the same, with leaves that may name a class; None: the majority
