"""Draw figures of a linear split on two columns.

a  coefficients of the line      c  its threshold
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from octweb.figures.histogram import histogram_figure
from octweb.figures.plane import cut_segment, half_plane
from octweb.figures.split.impurity import best_threshold, gini_rows
from octweb.figures.split.scene import (
    SplitScene,
    rows_words,
    sentence,
    separation_words,
    side_heads,
    weighed_codes_words,
)
from trainer.dtypes import CodeArray, FloatArray
from trainer.tree.describe import number_text, split_text
from trainer.tree.render.names import named_styles
from trainer.tree.render.palette import LEGEND, ClassStyle, axis, class_styles, escape, frame, short
from trainer.tree.splits import Linear, Threshold

MAX_POINTS = 5000
SEED = 1


def plane_picture(scene: SplitScene, split: Linear) -> dict[str, Any]:
    f, g = split.features
    points = scene.X[:, [f, g]]
    finite: np.ndarray = np.all(np.isfinite(points), axis=1)
    spread = points[finite].std(axis=0) if finite.any() else np.ones(2)
    a = np.array(split.coefficients)
    values = points @ a - split.threshold
    sample = _sample(np.flatnonzero(finite), scene.codes)
    near = _nearest(values, finite)
    span = [_range(points[finite, j]) for j in (0, 1)]
    styles = class_styles(scene.tree.classes)
    data = _points(points, scene.codes, sample, styles, (scene.name(f), scene.name(g)))
    if near:
        data.append(_rings(points[list(near)]))
    layout = frame(
        height=420,
        margin={"l": 56, "r": 12, "t": 56, "b": 44},
        xaxis=axis(scene.name(f), range=span[0]),
        yaxis=axis(scene.name(g), range=span[1]),
        shapes=_plane_shapes(scene, a, split.threshold, [float(values[i]) for i in near], span, styles),
        annotations=_side_words(scene),
        showlegend=True,
        legend=LEGEND | {"y": 1.07},
        hovermode="closest",
    )
    size = math.hypot(*(a * spread))
    sampled = (
        f"{len(sample):,} of {int(finite.sum()):,} rows are drawn, in equal shares of each class; counts are exact."
    )
    note = sentence(
        _margin_words([abs(float(values[i])) / size for i in near] if size > 0 else []),
        sampled if len(sample) < int(finite.sum()) else "",
        f"{rows_words(int((~finite).sum()))} without both values are not drawn." if not finite.all() else "",
        weighed_codes_words(scene, split.features),
        _shares(scene),
        separation_words(scene),
    )
    return {
        "title": f"The line and the {rows_words(len(points))} that reach it",
        "note": note,
        "figure": {"data": data, "layout": layout},
    }


def _points(
    points: FloatArray, codes: CodeArray, sample: np.ndarray, styles: Sequence[ClassStyle], names: tuple[str, str]
) -> list[dict[str, Any]]:
    traces = []
    for style, group, name in named_styles(styles):
        rows = sample[np.isin(codes[sample], group)]
        if len(rows):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": points[rows, 0].tolist(),
                    "y": points[rows, 1].tolist(),
                    "marker": style.point,
                    "hovertemplate": f"{escape(names[0])} %{{x:.4~g}}<br>{escape(names[1])} %{{y:.4~g}}"
                    f"<extra>{escape(style.name)}</extra>",
                }
            )
    return traces


def _rings(points: FloatArray) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "nearest to the line",
        "showlegend": False,  # the note explains the rings; an entry of that length would wrap the legend
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "marker": {"symbol": "circle-open", "size": 14, "color": "var(--ink)", "line": {"width": 1.75}},
        "hoverinfo": "skip",
    }


def _plane_shapes(
    scene: SplitScene,
    a: FloatArray,
    c: float,
    margins: Sequence[float],
    span: Sequence[Sequence[float]],
    styles: Sequence[ClassStyle],
) -> list[dict[str, Any]]:
    """Return both half-planes in the colour of their side's majority class, the dashed margin, and the line."""
    shapes: list[dict[str, Any]] = []
    for child, sign in ((scene.node.left, 1.0), (scene.node.right, -1.0)):
        corners = half_plane(sign * a, sign * c, span)
        if len(corners) > 2:
            shapes.append(
                {
                    "type": "path",
                    "path": "M " + " L ".join(f"{x!r},{y!r}" for x, y in corners) + " Z",
                    "fillcolor": styles[scene.tree.nodes[child].label].colour,
                    "opacity": 0.1,
                    "line": {"width": 0},
                    "layer": "below",
                }
            )
    for shift, style in [(m, {"width": 1, "dash": "dash"}) for m in margins] + [(0.0, {"width": 2})]:
        ends = cut_segment(a, c + shift, span)
        if ends:
            (x0, y0), (x1, y1) = ends
            line = {"color": "var(--cut)", **style}
            shapes.append({"type": "line", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "line": line})
    return shapes


def _side_words(scene: SplitScene) -> list[dict[str, Any]]:
    """Return the row counts of both sides as annotations above the figure, with the colour of their majority class."""
    notes = []
    styles = class_styles(scene.tree.classes)
    for child, answer, x in ((scene.node.left, "yes", 0), (scene.node.right, "no", 1)):
        v = scene.tree.nodes[child]
        colour = styles[v.label].colour
        notes.append(
            {
                "text": f'<span style="color:{colour}">■</span> {answer} · {rows_words(v.rows)}',
                "x": x,
                "y": 1,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "right" if x else "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 11, "color": "var(--ink-2)"},
            }
        )
    return notes


def _shares(scene: SplitScene) -> str:
    """State the majority class of each side and its share of the rows there."""
    words = []
    for child, answer in ((scene.node.left, "yes"), (scene.node.right, "no")):
        v = scene.tree.nodes[child]
        if v.rows:
            share = 100 * v.counts[v.label] / v.rows
            words.append(f"{answer}: {share:.1f}\u202f% are {short(scene.tree.classes[v.label])}")
    return f"{'; '.join(words)}." if words else ""


def _nearest(values: FloatArray, finite: np.ndarray) -> list[int]:
    """Return the row nearest to the line on each side, or [] if a side has no rows. `values` is a·x − c."""
    near = []
    for side in (values <= 0, values > 0):
        rows = np.flatnonzero(side & finite)
        if len(rows):
            near.append(int(rows[np.abs(values[rows]).argmin()]))
    return near if len(near) == 2 else []


def _margin_words(distances: Sequence[float]) -> str:
    if len(distances) != 2:
        return ""
    yes, no = (number_text(d) for d in distances)
    return f"Dashed: the empty band around the line, {yes} standard deviations wide on the yes side and {no} on the no side; the ringed rows end it."


def single_column(scene: SplitScene, split: Linear) -> list[dict[str, Any]]:
    """Return a figure of the better of the two columns alone, with its best threshold. [] if neither can be split."""
    columns = []
    for feature in split.features:
        best = best_threshold(scene.X[:, feature], scene.codes, len(scene.tree.classes))
        if best:
            columns.append((best[1], feature, best[0]))
    if not columns:
        return []
    impurity, feature, cut = min(columns)
    values = scene.X[:, feature]
    heads = side_heads(int((values <= cut).sum()), len(values))
    line = gini_rows(scene.codes, scene.left, len(scene.tree.classes))
    note = sentence(
        f"The better of the two columns alone: {split_text(Threshold(feature=feature, threshold=cut), scene.tree.schema)}.",
        f"The line leaves the rows {100 * line / impurity:.0f} % as mixed as this column alone does."
        if impurity
        else "",
    )
    figure = histogram_figure(
        values, scene.codes, scene.tree.classes, title=scene.name(feature), cuts=[cut], heads=heads
    )
    return [{"title": "The better single column, for comparison", "note": note, "figure": figure}]


def _sample(rows: np.ndarray, codes: CodeArray) -> np.ndarray:
    """Sample about MAX_POINTS of `rows` with a fixed seed: an equal share of each class, and at least one row of each."""
    if len(rows) <= MAX_POINTS:
        return rows
    rng = np.random.default_rng(SEED)
    positions = []
    for k in np.unique(codes[rows]):
        members = rows[codes[rows] == k]
        take = max(1, math.floor(len(members) * MAX_POINTS / len(rows)))
        positions.append(rng.choice(members, take, replace=False))
    return np.sort(np.concatenate(positions))


def _range(values: FloatArray) -> list[float]:
    """Return the range of an axis with a small margin."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    air = 0.04 * (high - low) or max(1.0, abs(high) / 10)
    return [low - air, high + air]
