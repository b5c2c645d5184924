"""Draw a linear split: its terms, and a histogram of its sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from octweb.figures.histogram import histogram_figure
from octweb.figures.split.scene import (
    SplitScene,
    missing_words,
    rows_words,
    sentence,
    separation_words,
    weighed_codes_words,
)
from trainer.tree.describe import number_text
from trainer.tree.render.names import short_names
from trainer.tree.render.palette import axis, escape, frame, short
from trainer.tree.splits import Linear
from trainer.tree.splits.base import EMPTY

MAX_TERMS = 10


def coefficient_picture(scene: SplitScene, split: Linear) -> dict[str, Any]:
    terms = []
    names = short_names([c.name for c in scene.tree.schema])
    for f, a, level in zip(split.features, split.coefficients, split.levels, strict=True):
        column = scene.tree.schema[f]
        values = scene.X[:, f]
        what = ""
        if level == EMPTY:
            values = np.isnan(values).astype(np.float64)
            what = "empty"
        elif level >= 0:
            values = (values == level).astype(np.float64)
            what = short(column.categories[level], 14)
        known = values[np.isfinite(values)]
        name = f"{short(column.name, 14)} is {what}" if what else names[f]
        terms.append((a * float(known.std()) if len(known) else 0.0, name))
    terms.sort(key=lambda term: -abs(term[0]))
    largest_terms = terms[:MAX_TERMS]
    sizes = [size for size, _ in largest_terms]
    layout = frame(
        height=84 + 40 * len(largest_terms),
        margin={"l": 48, "r": 12, "t": 24, "b": 44},
        bargap=0.35,
        xaxis=axis("per standard deviation", zeroline=True, zerolinecolor="var(--ink)", range=_air(sizes)),
        yaxis=axis(
            showgrid=False,
            tickvals=list(range(len(largest_terms))),
            ticktext=[f"{escape(name)}<br><b>{_signed_text(size)}</b>" for size, name in largest_terms],
            range=[len(largest_terms) - 0.4, -0.6],
        ),
    )
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": sizes,
        "y": list(range(len(largest_terms))),
        "marker": {"color": "var(--ink-3)"},
        "hovertemplate": "%{x:.6~g}<extra></extra>",
    }
    more = len(terms) - len(largest_terms)
    omitted = f"{more} smaller terms are not drawn." if more else ""
    if more == 1:
        omitted = "1 smaller term is not drawn."
    note = sentence(
        "How far the sum moves when a column grows by one standard deviation; + pulls to no, − to yes.",
        omitted,
    )
    return {"title": f"The {len(terms)} terms of the rule", "note": note, "figure": {"data": [trace], "layout": layout}}


def sum_picture(scene: SplitScene, split: Linear) -> dict[str, Any]:
    total = split.sums(scene.X)
    figure = histogram_figure(
        total,
        scene.codes,
        scene.tree.classes,
        title="weighted sum of the columns",
        cuts=[split.threshold],
        heads=scene.heads,
        empty_left=split.empty_goes_left,
    )
    return {
        "title": f"The sum of the {rows_words(len(total))} that reach it",
        "note": sentence(
            "Bars stack the classes.",
            missing_words(total, split),
            weighed_codes_words(scene, [f for f, level in zip(split.features, split.levels, strict=True) if level < 0]),
            separation_words(scene),
        ),
        "figure": figure,
    }


def _air(sizes: Sequence[float]) -> list[float]:
    """Return the range of the bars. It includes zero and a small margin."""
    low = min(0.0, *sizes, 0.0)
    high = max(0.0, *sizes, 0.0)
    air = 0.04 * (high - low) or 1.0
    return [low - air if low < 0 else -air / 4, high + air if high > 0 else air / 4]


def _signed_text(size: float) -> str:
    return ("+" if size > 0 else "") + number_text(size)
