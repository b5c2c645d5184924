"""Compare the threshold of a split with other thresholds of its column."""

from __future__ import annotations

from typing import Any

import numpy as np

from octweb.core.methods import title_of
from octweb.figures.split.costs import CutCosts, threshold_costs
from octweb.registry.page.content import number_writing
from octweb.registry.page.scene import ModelScene
from trainer.registry import editable_ids
from trainer.tree.render.palette import swatch

NEGLIGIBLE_SHARE = 0.005  # share of a node's rows; a smaller change in misclassified rows counts as none
MOST_NAMED = 6  # with more classes, a picture has no legend, because the tree next to it names them


def costs(scene: ModelScene) -> CutCosts | None:
    """Return the costs of all thresholds of the selected split. None for other splits, and without rows."""
    if scene.rows is None or scene.node.is_leaf:
        return None
    at = scene.reaching(scene.node.id, "training")
    return threshold_costs(scene.tree, scene.node.id, scene.rows.matrix[at], scene.rows.codes[at])


def threshold_slider(scene: ModelScene) -> dict[str, Any] | None:
    """Return the context of the threshold slider. None if there is only one threshold."""
    cut_costs = costs(scene)
    if cut_costs is None or scene.node.split is None or len(cut_costs.low) < 2:
        return None
    return {
        "own": cut_costs.text(cut_costs.own),
        "ranks": rank_choices(cut_costs),
        "hardly": similar_thresholds(cut_costs),
        "editable": scene.model.method in editable_ids(),
        "method": title_of(scene.model.method),
        **number_writing(scene.file, scene.tree.schema[scene.node.split.used[0]]),
    }


def rank_choices(cut_costs: CutCosts) -> list[dict[str, Any]]:
    """Return the thresholds of a column of ranks, as the page's script writes them, with their words. [] for numbers."""
    if not cut_costs.ranks:
        return []
    return [
        {"value": f"{cut:g}", "word": cut_costs.text(cut), "is_own": cut == cut_costs.own}
        for cut in sorted({*cut_costs.cuts, cut_costs.own})
    ]


def similar_thresholds(cut_costs: CutCosts) -> dict[str, Any] | None:
    """Return the range of thresholds around the tree's own with about as many misclassified rows.

    None if there is no other.
    """
    at = cut_costs.at
    more = cut_costs.wrong - cut_costs.now
    if not 0 <= at < len(more):
        return None
    costly = np.flatnonzero(np.abs(more) > max(1, int(NEGLIGIBLE_SHARE * cut_costs.rows)))
    first = int(costly[costly < at].max(initial=-1)) + 1
    last = int(costly[costly > at].min(initial=len(more))) - 1
    if first == last:
        return None
    others = np.delete(more[first : last + 1], at - first)
    ends = [cut_costs.written(i) for i in (first, last)]
    return {"from": ends[0], "to": ends[1], "words": _more_words(int(others.min()), int(others.max()))}


def _more_words(least: int, most: int) -> str:
    """Describe a range of changes, such as "9 to 15 rows more", "at most 1 row fewer" or "3 fewer to 2 more"."""
    if least == most == 0:
        return "not one row more or fewer"
    if least < 0 < most:
        return f"{-least:,} fewer to {most:,} more"
    low, high = sorted((abs(least), abs(most)))
    rows = f"{low:,} to {high:,}" if low else f"at most {high:,}"
    if low == high:
        rows = f"{high:,}"
    return f"{rows} row{'' if high == 1 else 's'} {'more' if most > 0 else 'fewer'}"


def legend(scene: ModelScene) -> list[dict[str, Any]]:
    """Return the classes of the node's rows. [] if the tree has too many classes for a legend."""
    classes = scene.tree.classes
    if len(classes) > MOST_NAMED:
        return []
    return [
        {"look": swatch(k, len(classes)), "label": label} for k, label in enumerate(classes) if scene.node.counts[k]
    ]
