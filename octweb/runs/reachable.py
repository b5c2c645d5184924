"""Relax the constraint of an infeasible run to a reachable value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from octweb.core.templatetags.octweb import NARROW
from octweb.runs.models import TrainingRun
from octweb.runs.words import recalls

STEPS_PER_SHARE = (
    10**6
)  # shares are relaxed to multiples of 1 / STEPS_PER_SHARE, so that rounding cannot make them infeasible again


@dataclass(frozen=True, kw_only=True)
class Reachable:
    """Feasible parameters, and the relaxation in words."""

    parameters: dict[str, Any]
    words: str


def reachable(run: TrainingRun) -> Reachable | None:
    """Return the settings with the constraint at a reachable value, or None if none is known."""
    if not run.unreachable:
        return None
    best = run.summary.get("best")
    of = run.summary.get("best_of")
    requested = run.parameters
    if of in (None, "specificity"):
        if any(requested.get(name) in (None, "") for name in ("sensitivity", "specificity")):
            return None
        return Reachable(
            parameters=requested | {"specificity": None},
            words="with the largest specificity that this sensitivity allows",
        )
    if best is None:
        return None
    if of == "shortfall of the recalls":
        lower = _lower_recall(str(requested.get("recall") or ""), float(best))
        return Reachable(
            parameters=requested | {"recall": lower}, words=f"with at least {_describe_recalls(lower)} found"
        )
    if of == "difference of rates":
        delta = min(1.0, math.ceil(float(best) * STEPS_PER_SHARE) / STEPS_PER_SHARE)
        words = f"with rates that differ by at most {100 * delta:.4g}{NARROW}%"
        return Reachable(parameters=requested | {"fairness_delta": delta}, words=words)
    if of in ("leaves", "columns"):
        return Reachable(parameters=requested | {f"max_{of}": int(best)}, words=f"with {int(best)} {of}")
    return None


def _lower_recall(text: str, short: float) -> str:
    """Lower each recall in a text such as 'yes: 0.9; no: 0.8' by `short`."""
    parts = []
    for item in filter(None, (i.strip() for i in text.split(";"))):
        name, _, share = item.rpartition(":")
        lower = max(0.0, math.floor((float(share) - short) * STEPS_PER_SHARE) / STEPS_PER_SHARE)
        parts.append(f"{name.strip()}: {lower:.6g}")
    return "; ".join(parts)


def _describe_recalls(text: str) -> str:
    """Format recalls such as 'yes: 0.9; no: 0.8' as '90 % of yes and 80 % of no'."""
    return " and ".join(f"{share} of {name}" for name, share in recalls(text))
