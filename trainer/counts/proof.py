"""Write the proof of a tree from counts (docs/proof-format.md, "Counts").

The checker counts trees of depth two by itself, so a proof is one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainer.counts.folder import Counts
from trainer.counts.objective import CountedObjective
from trainer.methods.base import NotProved, Settings
from trainer.training.proof_file import FORMAT, OF_COUNTS

MOST_QUESTIONS = 250  # limit of the checker
MOST_COST = 1 << 61  # limit of the checker on integer costs


def proof_lines(
    counts: Counts, settings: Settings, objective: CountedObjective, gain: int, leaves: int, *, within: bool = False
) -> Iterator[dict[str, Any]]:
    """Return the header and the steps for a best tree with this gain and number of leaves; with wishes it is `within` them.

    Raises NotProved if the format has no steps for these counts.
    """
    if counts.suppress:
        raise NotProved("There are no proof steps for counts whose small numbers are secret.")
    if len(counts.questions) > MOST_QUESTIONS:
        raise NotProved(f"Steps from counts have at most {MOST_QUESTIONS} questions, not {len(counts.questions)}.")
    if objective.costs is not None and (settings["min_leaf"] or 1) > 1:
        raise NotProved("No proof steps from counts exist for costs together with min_leaf.")
    price = objective.price
    unit = price.denominator
    if unit * objective.total + (price.numerator << settings["depth"]) >= MOST_COST:
        raise NotProved("The leaf penalty has too many digits for exact integer costs. Round it to six digits.")
    goal = unit * (objective.total - gain) + price.numerator * leaves
    return iter(_lines(counts.sha256, settings, goal, within=within or bool(settings["recall"])))


def _lines(digest: str, settings: Settings, goal: int, *, within: bool) -> list[dict[str, Any]]:
    depth = settings["depth"]
    most = settings["max_leaves"]
    step: dict[str, Any] = {"path": [], "height": depth, "bound": goal}
    if within:
        step["by"] = "within"
    else:
        step["by"] = "count" if depth < 3 else "split"
        if most is not None and most < 1 << depth:
            step["leaves"] = most
    return [{"format": FORMAT, "version": OF_COUNTS, "rows": digest, "scale": 1, "goal": goal}, step]
