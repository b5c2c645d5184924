"""Read the frontier of sensitivity and specificity from a certificate's evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def frontier_points(evidence: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs of a frontier as shares, by ascending sensitivity.

    Older files do not state which pairs are on the front. For them, `proved` means that no tree as sensitive is more
    specific.
    """
    P = max(1, evidence["positives"])
    N = max(1, evidence["negatives"])
    proved = evidence.get("proved") or [bound == tn for _, tn, bound in evidence["pairs"]]
    return [
        {"sensitivity": tp / P, "specificity": tn / N, "bound": bound / N, "proved": on_front}
        for (tp, tn, bound), on_front in zip(evidence["pairs"], proved, strict=True)
    ]


def frontier_bounds(evidence: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the proved bounds of an unfinished frontier.

    Between the sensitivity of the previous entry and its own, no tree has a specificity above `bound`.
    """
    P = max(1, evidence["positives"])
    N = max(1, evidence["negatives"])
    return [{"sensitivity": t / P, "bound": b / N} for t, b in evidence.get("bounds") or ()]


def open_bound_text(point: Mapping[str, Any], digits: int = 1) -> str:
    """Return in words how far an unproved point might still improve."""
    if point["bound"] > point["specificity"]:
        return f"at most {100 * point['bound']:.{digits}f} %"
    return "more sensitivity may be possible"
