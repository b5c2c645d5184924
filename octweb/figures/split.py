"""The picture of one split: the training rows that reach its node, and where it cuts them.

a  coefficients of a linear rule      sd  standard deviation among the rows of the node
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.figures.histogram import histogram_figure
from octweb.figures.names import short_names
from octweb.figures.palette import LEGEND, ClassStyle, axis, class_styles, count_axis, drawn, escape, frame, short
from octweb.figures.plane import cut_segment, half_plane
from trainer.data.codes import codes_text, likely_codes
from trainer.dtypes import CodeArray, FloatArray
from trainer.table import Kind
from trainer.tree.describe import number_text, split_text
from trainer.tree.nodes import Node, Tree
from trainer.tree.splits import Interval, Linear, Subset, Threshold, goes_left

MAX_POINTS = 5000
MAX_CATEGORIES = 12  # a side
MAX_TERMS = 10
SEED = 1


@dataclass(frozen=True, kw_only=True)
class _Scene:
    """A branch of a tree with its rows `X` (n, columns), their classes `codes` and the side `left` each goes to."""

    tree: Tree
    node: Node
    X: FloatArray
    codes: CodeArray
    left: np.ndarray

    def name(self, feature: int) -> str:
        column = self.tree.schema[feature]
        return f"{short(column.name, 40)} ({column.unit})" if column.unit else short(column.name, 40)

    @property
    def head(self) -> str:
        yes = int(self.left.sum())
        return f"yes · {yes:,} rows | no · {len(self.left) - yes:,} rows"


def split_figures(tree: Tree, node_id: int, X: FloatArray, codes: CodeArray) -> list[dict[str, Any]]:
    """Records title, note, figure (Plotly JSON) of the split at `node_id`; none for a leaf.

    `X` (n, columns) are the rows the tree was trained on, `codes` (n,) their classes.
    """
    node = tree.nodes[node_id]
    if node.split is None:
        return []
    rows = _reaching(tree, node_id, X)
    inside = X[rows]
    scene = _Scene(tree=tree, node=node, X=inside, codes=codes[rows], left=goes_left(node.split, inside))
    return PICTURES[node.split.kind](scene, node.split)


def _threshold_pictures(scene: _Scene, split: Threshold) -> list[dict[str, Any]]:
    return [_column_picture(scene, split.feature, [split.threshold])]


def _interval_pictures(scene: _Scene, split: Interval) -> list[dict[str, Any]]:
    return [_column_picture(scene, split.feature, [split.low, split.high])]


def _subset_pictures(scene: _Scene, split: Subset) -> list[dict[str, Any]]:
    return [_subset_picture(scene, split)]


def _linear_pictures(scene: _Scene, split: Linear) -> list[dict[str, Any]]:
    if len(split.features) == 2 and max(split.levels) < 0 and len(set(split.features)) == 2:
        return [_plane_picture(scene, split), *_single_column(scene, split)]
    return [_coefficient_picture(scene, split), _sum_picture(scene, split)]


# the pictures of each kind of split; the kinds are those of `trainer.tree.splits.KINDS`
PICTURES: dict[str, Callable[[_Scene, Any], list[dict[str, Any]]]] = {
    Threshold.kind: _threshold_pictures,
    Interval.kind: _interval_pictures,
    Subset.kind: _subset_pictures,
    Linear.kind: _linear_pictures,
}


def gini_rows(codes: CodeArray, left: np.ndarray, classes: int) -> float:
    """Gini impurity in rows of two sides: sum over sides of n · (1 − Σ share²)."""
    total = 0.0
    for side in (left, ~left):
        counts = np.bincount(codes[side], minlength=classes).astype(np.float64)
        n = counts.sum()
        total += n - float((counts**2).sum()) / n if n else 0.0
    return total


def best_threshold(values: FloatArray, codes: CodeArray, classes: int) -> tuple[float, float] | None:
    """The cut of `values` (n,) with the lowest Gini impurity in rows, and that impurity; None where nothing can be cut.

    Cuts lie half-way between neighbouring values; a missing value answers no.
    """
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    x, y = values[known][order], codes[known][order]
    ends = np.flatnonzero(x[1:] > x[:-1])
    if not len(ends):
        return None
    total = np.bincount(codes, minlength=classes).astype(np.float64)
    inner, n = np.zeros((2, len(ends))), len(codes)
    for k in range(classes):
        yes = np.cumsum(y == k)[ends].astype(np.float64)
        inner += np.array([yes**2, (total[k] - yes) ** 2])
    size = ends + 1.0
    impurity = n - inner[0] / size - inner[1] / (n - size)
    at = int(impurity.argmin())
    low, high = float(x[ends[at]]), float(x[ends[at] + 1])
    cut = low / 2 + high / 2
    return (cut if low <= cut < high else low), float(impurity[at])


def _reaching(tree: Tree, node_id: int, X: FloatArray) -> np.ndarray:
    """Indices of the rows of X that reach the node: only its own path is routed."""
    rows = np.arange(len(X))
    path = tree.path_to(node_id)
    for at, following in itertools.pairwise(path):
        v = tree.nodes[at]
        if v.split is not None:
            left = goes_left(v.split, X[rows])
            rows = rows[left if following == v.left else ~left]
    return rows


def _column_picture(scene: _Scene, feature: int, cuts: Sequence[float]) -> dict[str, Any]:
    values = scene.X[:, feature]
    figure = histogram_figure(
        values, scene.codes, scene.tree.classes, title=scene.name(feature), cuts=cuts, head=scene.head
    )
    return {
        "title": f"{_rule(scene)} and the {_rows(len(values))} that reach it",
        "note": _sentence("Bars stack the classes.", _missing(values), _codes(scene, feature), _impurities(scene)),
        "figure": figure,
    }


def _plane_picture(scene: _Scene, split: Linear) -> dict[str, Any]:
    f, g = split.features
    points = scene.X[:, [f, g]]
    finite: np.ndarray = np.all(np.isfinite(points), axis=1)
    spread = points[finite].std(axis=0) if finite.any() else np.ones(2)
    a = np.array(split.coefficients)
    values = points @ a - split.threshold
    shown = _sample(np.flatnonzero(finite), scene.codes)
    near = _nearest(values, finite)
    span = [_range(points[finite, j]) for j in (0, 1)]
    styles = class_styles(scene.tree.classes)
    data = _points(points, scene.codes, shown, styles, (scene.name(f), scene.name(g)))
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
        f"{len(shown):,} of {int(finite.sum()):,} rows are drawn, in equal shares of each class; counts are exact."
    )
    note = _sentence(
        _margin_words([abs(float(values[i])) / size for i in near] if size > 0 else []),
        sampled if len(shown) < int(finite.sum()) else "",
        f"{_rows(int((~finite).sum()))} without both values are not drawn." if not finite.all() else "",
        _shares(scene),
        _impurities(scene),
    )
    return {
        "title": f"The line and the {_rows(len(points))} that reach it",
        "note": note,
        "figure": {"data": data, "layout": layout},
    }


def _points(
    points: FloatArray, codes: CodeArray, shown: np.ndarray, styles: Sequence[ClassStyle], names: tuple[str, str]
) -> list[dict[str, Any]]:
    traces = []
    for style, group in drawn(styles):
        rows = shown[np.isin(codes[shown], group)]
        if len(rows):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": escape(short(style.name)),
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
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "marker": {"symbol": "circle-open", "size": 14, "color": "var(--ink)", "line": {"width": 1.75}},
        "hoverinfo": "skip",
    }


def _plane_shapes(
    scene: _Scene,
    a: FloatArray,
    c: float,
    margins: Sequence[float],
    span: Sequence[Sequence[float]],
    styles: Sequence[ClassStyle],
) -> list[dict[str, Any]]:
    """Both half-planes in the class that each side predicts, the dashed margin and the line."""
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


def _side_words(scene: _Scene) -> list[dict[str, Any]]:
    """The rows of each side above the picture, with the colour of the class it predicts."""
    notes = []
    styles = class_styles(scene.tree.classes)
    for child, answer, x in ((scene.node.left, "yes", 0), (scene.node.right, "no", 1)):
        v = scene.tree.nodes[child]
        colour = styles[v.label].colour
        notes.append(
            {
                "text": f'<span style="color:{colour}">■</span> {answer} · {_rows(v.rows)}',
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


def _shares(scene: _Scene) -> str:
    """Which class each side predicts and how much of it is right."""
    words = []
    for child, answer in ((scene.node.left, "yes"), (scene.node.right, "no")):
        v = scene.tree.nodes[child]
        if v.rows:
            share = 100 * v.counts[v.label] / v.rows
            words.append(f"{answer}: {share:.1f}\u202f% {short(scene.tree.classes[v.label])}")
    return f"{'; '.join(words)}." if words else ""


def _nearest(values: FloatArray, finite: np.ndarray) -> list[int]:
    """The row nearest to the line on each side that has one; `values` is a·x − c."""
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


def _single_column(scene: _Scene, split: Linear) -> list[dict[str, Any]]:
    """The better of the two columns alone with its best cut: the reason for the line."""
    found = []
    for feature in split.features:
        best = best_threshold(scene.X[:, feature], scene.codes, len(scene.tree.classes))
        if best:
            found.append((best[1], feature, best[0]))
    if not found:
        return []
    impurity, feature, cut = min(found)
    values = scene.X[:, feature]
    yes = int((values <= cut).sum())
    head = f"yes · {yes:,} rows | no · {len(values) - yes:,} rows"
    line = gini_rows(scene.codes, scene.left, len(scene.tree.classes))
    before = gini_rows(scene.codes, np.ones(len(values), bool), len(scene.tree.classes))
    note = _sentence(
        f"The better of the two columns alone: {scene.tree.schema[feature].name} ≤ {number_text(cut)}.",
        f"Gini impurity in rows: {before:.1f} before the split, {impurity:.1f} with this column, {line:.1f} with the line;"
        " 0 means that both sides are pure.",
    )
    figure = histogram_figure(values, scene.codes, scene.tree.classes, title=scene.name(feature), cuts=[cut], head=head)
    return [{"title": "The better single column, for comparison", "note": note, "figure": figure}]


def _subset_picture(scene: _Scene, split: Subset) -> dict[str, Any]:
    column = scene.tree.schema[split.feature]
    values, classes = scene.X[:, split.feature], len(scene.tree.classes)
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
    note = _sentence(f"{scene.head.replace(' | ', '; ')}. Longest first.", _missing(values), _impurities(scene))
    return {"title": f"{short(column.name, 40)}: which categories go where", "note": note, "figure": figure}


def _category_bars(scene: _Scene, bars: Sequence[tuple[str, np.ndarray]]) -> dict[str, Any]:
    """Horizontal stacked bars at 0, 1, … downwards; the heads of the groups are ticks without a bar."""
    table = np.array([counts for _, counts in bars])
    at = list(range(len(bars)))
    traces = []
    for style, group in drawn(class_styles(scene.tree.classes)):
        rows = table[:, group].sum(axis=1)
        if rows.any():
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": escape(short(style.name)),
                    "x": rows.tolist(),
                    "y": at,
                    "marker": style.bar,
                    "customdata": [name for name, _ in bars],
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


def _coefficient_picture(scene: _Scene, split: Linear) -> dict[str, Any]:
    terms = []
    names = short_names([c.name for c in scene.tree.schema])
    for f, a, level in zip(split.features, split.coefficients, split.levels, strict=True):
        column = scene.tree.schema[f]
        values = scene.X[:, f] if level < 0 else (scene.X[:, f] == level).astype(np.float64)
        known = values[np.isfinite(values)]
        name = names[f] if level < 0 else f"{short(column.name, 14)} is {short(column.categories[level], 14)}"
        terms.append((a * float(known.std()) if len(known) else 0.0, name))
    terms.sort(key=lambda term: -abs(term[0]))
    shown = terms[:MAX_TERMS]
    sizes = [size for size, _ in shown]
    layout = frame(
        height=84 + 40 * len(shown),
        margin={"l": 48, "r": 12, "t": 12, "b": 44},
        bargap=0.35,
        xaxis=axis("per standard deviation", zeroline=True, zerolinecolor="var(--ink)", range=_air(sizes)),
        yaxis=axis(
            showgrid=False,
            tickvals=list(range(len(shown))),
            ticktext=[f"{escape(name)}<br><b>{_signed(size)}</b>" for size, name in shown],
            range=[len(shown) - 0.4, -0.6],
        ),
    )
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": sizes,
        "y": list(range(len(shown))),
        "marker": {"color": "var(--ink-3)"},
        "hovertemplate": "%{x:.6~g}<extra></extra>",
    }
    more = len(terms) - len(shown)
    note = _sentence(
        "How far the sum moves when a column grows by one standard deviation; + pulls to no, − to yes.",
        f"{more} smaller terms are not drawn." if more > 1 else "1 smaller term is not drawn." if more else "",
    )
    return {"title": f"The {len(terms)} terms of the rule", "note": note, "figure": {"data": [trace], "layout": layout}}


def _sum_picture(scene: _Scene, split: Linear) -> dict[str, Any]:
    total = np.zeros(len(scene.X))
    for f, a, level in zip(split.features, split.coefficients, split.levels, strict=True):
        total += a * (scene.X[:, f] if level < 0 else (scene.X[:, f] == level))
    figure = histogram_figure(
        total,
        scene.codes,
        scene.tree.classes,
        title="weighted sum of the columns",
        cuts=[split.threshold],
        head=scene.head,
    )
    return {
        "title": f"The sum of the {_rows(len(total))} that reach it",
        "note": _sentence("Bars stack the classes.", _missing(total), _impurities(scene)),
        "figure": figure,
    }


def _sample(rows: np.ndarray, codes: CodeArray) -> np.ndarray:
    """At most MAX_POINTS of `rows`, the same share of each class and at least one row of each, chosen once and for all."""
    if len(rows) <= MAX_POINTS:
        return rows
    rng, kept = np.random.default_rng(SEED), []
    for k in np.unique(codes[rows]):
        members = rows[codes[rows] == k]
        take = max(1, math.floor(len(members) * MAX_POINTS / len(rows)))
        kept.append(rng.choice(members, take, replace=False))
    return np.sort(np.concatenate(kept))


def _range(values: FloatArray) -> list[float]:
    """The range of an axis with a little air."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    air = 0.04 * (high - low) or max(1.0, abs(high) / 10)
    return [low - air, high + air]


def _air(sizes: Sequence[float]) -> list[float]:
    """The range of the bars with zero and a little air."""
    low, high = min(0.0, *sizes, 0.0), max(0.0, *sizes, 0.0)
    air = 0.04 * (high - low) or 1.0
    return [low - air if low < 0 else -air / 4, high + air if high > 0 else air / 4]


def _signed(size: float) -> str:
    return ("+" if size > 0 else "") + number_text(size)


def _impurities(scene: _Scene) -> str:
    classes = len(scene.tree.classes)
    before = gini_rows(scene.codes, np.ones(len(scene.codes), bool), classes)
    after = gini_rows(scene.codes, scene.left, classes)
    return f"Gini impurity in rows: {before:.1f} before, {after:.1f} after the split."


def _codes(scene: _Scene, feature: int) -> str:
    """How many rows answer as they do because their value is a code: one that was declared, or one that looks like it."""
    column, values = scene.tree.schema[feature], scene.X[:, feature]
    if column.kind is not Kind.NUMERIC:
        return ""
    declared = {v: int((values == v).sum()) for v in column.special}
    codes = {v: n for v, n in declared.items() if n} if column.special else likely_codes(values)
    said = []
    for answer, side in (("yes", scene.left), ("no", ~scene.left)):
        here = {v: int(((values == v) & side).sum()) for v in codes}
        if rows := sum(here.values()):
            shown = codes_text({v: n for v, n in here.items() if n})
            kind = "a special value" if column.special else "what may be a code"
            said.append(f"{_rows(rows)} {'answers' if rows == 1 else 'answer'} {answer} because of {kind}: {shown}.")
    return " ".join(said)


def _missing(values: FloatArray) -> str:
    missing = int(np.isnan(values).sum())
    return f"{_rows(missing)} without a value answer no." if missing else ""


def _rule(scene: _Scene) -> str:
    return split_text(scene.node.split, scene.tree.schema) if scene.node.split else ""


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def _sentence(*parts: str) -> str:
    return " ".join(part for part in parts if part)
