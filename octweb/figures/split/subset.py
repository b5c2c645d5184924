"""Draw a categorical split: bars of the categories on each side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from octweb.figures.split.scene import SplitScene, missing_words, sentence, separation_words
from trainer.tree.render.names import named_styles
from trainer.tree.render.palette import LEGEND, axis, class_styles, count_axis, escape, frame, short
from trainer.tree.splits import Subset

MAX_CATEGORIES = 12  # maximum number of categories listed on one side


def subset_pictures(scene: SplitScene, split: Subset) -> list[dict[str, Any]]:
    return [_subset_picture(scene, split)]


def _subset_picture(scene: SplitScene, split: Subset) -> dict[str, Any]:
    column = scene.tree.schema[split.feature]
    values = scene.X[:, split.feature]
    classes = len(scene.tree.classes)
    missing = np.isnan(values)
    place = np.where(missing, len(column.categories), np.nan_to_num(values)).astype(np.int64)
    counts = np.zeros((len(column.categories) + 1, classes), np.int64)
    np.add.at(counts, (place, scene.codes), 1)
    names = [*column.categories, "missing"]
    chosen = set(split.codes)
    bars: list[tuple[str, np.ndarray]] = []
    heads: list[int] = []
    for inside, head in ((True, "yes: left"), (False, "no: right")):
        group = [k for k in range(len(names)) if (k in chosen) is inside and counts[k].any()]
        group.sort(key=lambda k: -int(counts[k].sum()))
        heads.append(len(bars))
        bars.append((f"<b>{head}</b>", np.zeros(classes, np.int64)))
        keep = group if len(group) <= MAX_CATEGORIES else group[: MAX_CATEGORIES - 1]
        bars += [(escape(short(names[k])), counts[k]) for k in keep]
        if len(keep) < len(group):
            rest = group[len(keep) :]
            bars.append((f"Other ({len(rest)} categories)", counts[rest].sum(axis=0)))
    figure = _category_bars(scene, bars)
    note = sentence(f"{'; '.join(scene.heads)}. Longest first.", missing_words(values, split), separation_words(scene))
    return {"title": f"{short(column.name, 40)}: which categories go where", "note": note, "figure": figure}


def _category_bars(scene: SplitScene, bars: Sequence[tuple[str, np.ndarray]]) -> dict[str, Any]:
    """Return Plotly JSON of horizontal stacked bars at 0, 1, … downwards. Group headings are ticks without a bar."""
    table = np.array([counts for _, counts in bars])
    at = list(range(len(bars)))
    traces = []
    for style, group, name in named_styles(class_styles(scene.tree.classes)):
        rows = table[:, group].sum(axis=1)
        if rows.any():
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": name,
                    "x": rows.tolist(),
                    "y": at,
                    "marker": style.bar,
                    "customdata": [words for words, _ in bars],
                    "hovertemplate": "%{customdata}: %{x:,} rows<extra>" + escape(style.name) + "</extra>",
                }
            )
    layout = frame(
        height=100 + 24 * len(bars),
        barmode="stack",
        bargap=0.3,
        margin={"l": 48, "r": 12, "t": 40, "b": 44},
        xaxis=count_axis("rows", table.sum(axis=1).max(initial=0)),
        yaxis=axis(showgrid=False, tickvals=at, ticktext=[name for name, _ in bars], range=[len(bars) - 0.4, -0.6]),
        showlegend=True,
        legend=LEGEND,
    )
    return {"data": traces, "layout": layout}
