"""Draw histograms of one column with the thresholds of its split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from octweb.figures.histogram import histogram_figure
from octweb.figures.split.costs import threshold_costs
from octweb.figures.split.curve import with_curve
from octweb.figures.split.scene import (
    SplitScene,
    codes_words,
    missing_words,
    rows_words,
    rule_words,
    sentence,
    separation_words,
    undeclared_codes,
)
from trainer.tree.render.palette import escape, short
from trainer.tree.splits import Interval, Missing, Split, Threshold

MOST_RANK_TICKS = 6  # words that fit side by side below a figure of 300 px
RANK_LETTERS = 10


def threshold_pictures(scene: SplitScene, split: Threshold) -> list[dict[str, Any]]:
    """Return a histogram of the column. If several thresholds are possible, add a curve of misclassified rows."""
    picture = _column_picture(scene, split, [split.threshold])
    costs = threshold_costs(scene.tree, scene.node.id, scene.X, scene.codes)
    if costs is not None and len(costs.low) > 1:
        picture["figure"] = with_curve(picture["figure"], costs, scene.name(split.feature))
    return [picture]


def interval_pictures(scene: SplitScene, split: Interval) -> list[dict[str, Any]]:
    return [_column_picture(scene, split, [split.low, split.high])]


def missing_pictures(scene: SplitScene, split: Missing) -> list[dict[str, Any]]:
    """Return a histogram with the empty cells on the left, and the rows with a value on the right."""
    values = scene.X[:, split.feature]
    known = values[np.isfinite(values)]
    low = float(known.min()) if len(known) else 0.0
    span = float(known.max()) - low if len(known) else 0.0
    return [_column_picture(scene, split, [low - 0.04 * (span or 1.0)])]


def _column_picture(scene: SplitScene, split: Split, cuts: Sequence[float]) -> dict[str, Any]:
    (feature,) = split.used
    values = scene.X[:, feature]
    yes, no = scene.heads
    # without an upper limit, the yes side of an interval is on the right
    heads = (yes, no) if np.isfinite(cuts[-1]) else (no, yes)
    figure = histogram_figure(
        values,
        scene.codes,
        scene.tree.classes,
        title=scene.name(feature),
        cuts=cuts,
        heads=heads,
        ranks=scene.tree.schema[feature].ranks,
        empty_left=None if split.empty_goes_left is None else split.empty_goes_left == (heads == (yes, no)),
    )
    figure["layout"]["xaxis"] |= rank_ticks(scene.tree.schema[feature].ranks)
    return {
        "title": f"{rule_words(scene)} and the {rows_words(len(values))} that reach it",
        "note": sentence("Bars stack the classes.", missing_words(values, split), separation_words(scene)),
        "warning": codes_words(scene, feature),
        "undeclared": {"column": scene.tree.schema[feature].name, "codes": undeclared_codes(scene, feature)},
        "figure": figure,
    }


def rank_ticks(ranks: Sequence[str]) -> dict[str, Any]:
    """Return the part of an x-axis that shows the words of ranks; {} for a column of numbers."""
    if not ranks:
        return {}
    places = range(0, len(ranks), -(-len(ranks) // MOST_RANK_TICKS))
    return {
        "tickvals": [place + 1 for place in places],
        "ticktext": [escape(short(ranks[place], RANK_LETTERS)) for place in places],
    }
