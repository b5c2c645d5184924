"""Figures of splits: exact counts, cuts where the tree has them, and the lowest impurity."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from octweb.decide.pictures import rows_picture
from octweb.figures.frontier import frontier_figure
from octweb.figures.growth import growth_figure
from octweb.figures.histogram import histogram_figure, stacked_bars
from octweb.figures.plane import cut_segment, half_plane
from octweb.figures.split import split_figures
from octweb.figures.split.impurity import best_threshold, gini_rows
from tests.octweb.figures.specimens import SPLITS, one_split, tree_of
from tests.octweb.figures.tree_figure_cases import _valid
from tests.seeds import seeds
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.numbers import shortest_between
from trainer.tree.render.palette import class_styles, short, without_legend
from trainer.tree.splits import Interval, Linear, Split, Threshold, goes_left


@seeds(40)
def test_no_bar_of_decision_spans_its_threshold(seed):
    rng = np.random.default_rng(seed)
    tree, X, codes = one_split("threshold", n=100 + seed, classes=3)
    X[:, 0] = rng.normal(size=len(X)) if seed % 2 else rng.integers(0, int(rng.integers(2, 60)), len(X))
    value = float(np.median(X[:, 0]))
    low, high = sorted(rng.choice(np.unique(X[:, 0]), 2, replace=False).tolist())
    cut = shortest_between(low, float(np.nextafter(high, np.inf)))
    node = replace(tree.nodes[0], split=replace(tree.nodes[0].split, feature=0, threshold=cut))
    rows = SimpleNamespace(matrix=X, codes=codes)
    scene = SimpleNamespace(tree=tree, rows=rows, reaching=lambda node, part: np.arange(len(X)))
    found = rows_picture(scene, node, value)
    (line,) = found["cuts"]
    assert found["bars"]
    for bar in found["bars"]:
        assert not bar["x"] + 1e-6 < line < bar["x"] + bar["w"] - 1e-6


def test_the_better_single_column_is_written_in_full():
    """The columns differ in the fifth digit, so a rounded cut would be another split."""
    values = np.array([1.51869, 1.51870, 1.51872, 1.51873])
    cut, impurity = best_threshold(values, np.array([0, 0, 1, 1]), 2)
    assert (cut, impurity) == (1.51871, 0.0)
    tree, X, codes = one_split("plane", n=200, classes=2)
    X[:, list(tree.nodes[0].split.features)] = (1.5 + 1e-5 * (codes * 100 + np.arange(len(X)) % 50))[:, None]
    note = split_figures(tree, 0, X, codes)[1]["note"]
    cut = float(note.split(" ≤ ")[1].split("\u202f")[0])
    assert ((X[:, tree.nodes[0].split.features[0]] <= cut) == (codes == 0)).all()


@pytest.mark.parametrize("classes", [2, 5, 20, 23])
@pytest.mark.parametrize("kind", list(SPLITS))
def test_every_kind_is_a_valid_figure(kind, classes):
    tree, X, codes = one_split(kind, classes=classes)
    pictures = split_figures(tree, 0, X, codes)
    assert len(pictures) == (2 if kind in ("plane", "many") else 1)
    for picture in pictures:
        assert picture["title"]
        assert picture["note"]
        assert len(_valid(picture["figure"]).data)
    assert split_figures(tree, 1, X, codes) == []


@pytest.mark.parametrize("seed", range(5))
def test_bars_left_of_the_cut_are_the_rows_that_go_left(seed):
    tree, X, codes = one_split("threshold", n=300 + seed, classes=3)
    figure = split_figures(tree, 0, X, codes)[0]["figure"]
    cut = figure["layout"]["shapes"][0]["x0"]
    assert cut == tree.nodes[0].split.threshold
    bars = [t for t in figure["data"] if t["type"] == "bar"]
    assert len(bars) == 3
    for k, trace in enumerate(bars):
        left = sum(n for x, n in zip(trace["x"], trace["y"], strict=True) if x < cut)
        assert left == tree.nodes[1].counts[k]
        assert sum(trace["y"]) == ((codes == k) & np.isfinite(X[:, 0])).sum()


def test_rows_of_an_inner_node_only():
    tree = tree_of(6, classes=2, seed=4)
    from tests.octweb.figures.specimens import rows

    X, codes = rows(900, 2, 4)
    reach = tree.reach(X)
    for v in tree.branches:
        for picture in split_figures(tree, v.id, X, codes):
            bars = [t for t in picture["figure"]["data"] if t["type"] == "bar" and "name" in t]
            drawn = sum(sum(t["x"] if t.get("orientation") else t["y"]) for t in bars)
            assert drawn <= len(reach[v.id])


def test_large_scatter_is_labelled_as_sample():
    tree, X, codes = one_split("plane", n=12_000, classes=3)
    picture = split_figures(tree, 0, X, codes)[0]
    drawn = sum(len(t["x"]) for t in picture["figure"]["data"] if t["name"] != "nearest to the line")
    assert 4_990 <= drawn <= 5_000
    assert f"{drawn:,} of {np.isfinite(X[:, 0]).sum():,} rows are drawn" in picture["note"]


def test_the_rows_of_both_sides_stand_at_the_ends_of_the_picture():
    """Labels at the cut would not fit on a phone."""
    tree, X, codes = one_split("threshold", n=6000)
    picture = split_figures(tree, 0, X, codes)[0]
    yes, no, *_ = picture["figure"]["layout"]["annotations"]
    left = int(goes_left(tree.nodes[0].split, X).sum())
    assert (yes["text"], yes["x"], yes["xanchor"]) == (f"yes · {left:,} rows", 0, "left")
    assert (no["text"], no["x"], no["xanchor"]) == (f"no · {len(X) - left:,} rows", 1, "right")
    assert "This question partly separates “benign” from “malignant”." in picture["note"]
    split = Interval(feature=0, low=0.1, high=np.inf)
    tree = replace(tree, nodes=(replace(tree.nodes[0], split=split), *tree.nodes[1:]))
    ends = split_figures(tree, 0, X, codes)[0]["figure"]["layout"]["annotations"]
    assert [e["text"].split()[0] for e in ends] == ["no", "yes"]


def test_a_chart_without_its_legend_keeps_the_height_of_its_plot():
    tree, X, codes = one_split("threshold")
    figure = split_figures(tree, 0, X, codes)[0]["figure"]
    with_legend = figure["layout"]
    without = without_legend(figure)["layout"]
    assert without["height"] < with_legend["height"]
    assert without["height"] - without["margin"]["t"] == with_legend["height"] - with_legend["margin"]["t"]


def test_a_subset_shows_every_row_in_its_group():
    tree, X, codes = one_split("subset", classes=2)
    figure = split_figures(tree, 0, X, codes)[0]["figure"]
    heads = figure["layout"]["yaxis"]["ticktext"]
    no = heads.index("<b>no: right</b>")
    yes_rows = sum(sum(t["x"][:no]) for t in figure["data"])
    assert yes_rows == goes_left(tree.nodes[0].split, X).sum()
    assert "&lt;i&gt;fishy&lt;/i&gt;" in heads


@seeds(60)
def test_best_threshold_is_the_lowest_of_all(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    classes = int(rng.integers(1, 4))
    values = rng.integers(0, 5, n).astype(float)
    values[rng.random(n) < 0.15] = np.nan
    codes = rng.integers(0, classes, n).astype(np.int32)
    known = np.unique(values[~np.isnan(values)])
    every = [gini_rows(codes, values <= cut, classes) for cut in known[:-1]]
    found = best_threshold(values, codes, classes)
    if not every:
        assert found is None
        return
    assert found[1] == pytest.approx(min(every))
    assert gini_rows(codes, values <= found[0], classes) == pytest.approx(min(every))


@seeds(40)
def test_half_planes_share_the_line_and_fill_the_picture(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=2)
    c = float(rng.normal())
    span = ((-2.0, 1.0), (0.0, 3.0))

    def area(points):
        x, y = np.array(points).T if len(points) else np.zeros((2, 1))
        return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2

    yes = half_plane(a, c, span)
    no = half_plane(-a, -c, span)
    assert area(yes) + area(no) == pytest.approx(9.0)
    assert all(a @ p <= c + 1e-9 for p in yes)
    ends = cut_segment(a, c, span)
    assert (ends is None) == (not yes or not no)
    assert ends is None or all(a @ p == pytest.approx(c) for p in ends)


@pytest.mark.parametrize("most", [1, 2, 7, 40, 3000])
def test_all_axes_of_counts_have_whole_ticks(most):
    found = [{"name": f"m{n}", "leaves": n, "accuracy": 0.5} for n in range(1, most + 1, max(1, most // 5))]
    records = [{"t": float(n), "leaves": n + 1, "correct": n, "line": n} for n in (1, most)]
    grown = growth_figure(records)["layout"]
    for axis in (frontier_figure(found)["layout"]["xaxis"], grown["yaxis"], grown["yaxis2"]):
        assert isinstance(axis["dtick"], int), axis
        assert axis["dtick"] >= 1
        assert axis["tick0"] == 0


def test_bars_of_folds_are_drawn_only_if_folds_were_run():
    points = [{"name": "a", "leaves": 2, "accuracy": 0.5, "sd": None}, {"name": "b", "leaves": 3, "accuracy": 0.7}]
    models = [t for t in frontier_figure(points)["data"] if t["name"] == "models"]
    assert len(models) == 1
    assert "error_y" not in models[0]
    with_folds = frontier_figure([*points, {"name": "c", "leaves": 4, "accuracy": 0.8, "sd": 0.1}])
    assert [t["error_y"]["array"] for t in with_folds["data"] if t["name"] == "models"] == [[0.0, 0.0, 10.0]]


def test_frontier_omits_dominated_points():
    points = [
        {"name": "one split", "leaves": 2, "accuracy": 0.95, "sd": 0.01, "id": 1, "claim": "proved"},
        {"name": "worse", "leaves": 4, "accuracy": 0.93, "id": 2, "claim": "heuristic"},
        {"name": "<b>large</b>", "leaves": 6, "accuracy": 0.97, "sd": 0.02, "id": 3, "claim": "gap"},
        {"name": "not evaluated", "leaves": 3, "accuracy": None, "id": 4},
    ]
    figure = frontier_figure(points)
    _valid(figure)
    line, models = figure["data"]
    assert line["x"] == [2, 6]
    assert models["customdata"] == [1, 2, 3]
    assert "<b>large" not in models["text"][2]
    assert _valid(frontier_figure([])).layout.annotations


def test_styles_tell_twenty_classes_apart():
    styles = class_styles([str(k) for k in range(20)])
    assert len({(s.colour, s.hatch) for s in styles}) == 20
    assert len({(s.colour, s.symbol) for s in styles}) == 20
    many = class_styles([str(k) for k in range(25)])
    assert many[19].name == "Other (6 classes)" == many[24].name
    assert short("abcdefghijklmnopqrstuvwxyz0123") == "abcdefghijk…uvwxyz0123"


@seeds(40)
def test_no_bar_spans_a_cut_and_counts_have_integer_ticks(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    values = np.round(rng.normal(size=n) * 10, int(rng.integers(0, 3))) if seed % 2 else rng.choice([0, 1, 4, 9.5], n)
    codes = rng.integers(0, 2, n).astype(np.int32)
    chosen = np.sort(rng.choice(np.unique(values), 2))
    cuts = [float(chosen[0]), float(chosen[1]) + 0.1][: 1 + seed % 2]
    figure = histogram_figure(values, codes, ("a", "b"), title="x", cuts=cuts)
    counted = 0
    for trace in figure["data"]:
        for at, width, rows in zip(trace["x"], trace["width"], trace["y"], strict=True):
            counted += rows
            for cut in cuts:
                assert not at - width / 2 + 1e-9 < cut < at + width / 2 - 1e-9
    assert counted == n
    axis = figure["layout"]["yaxis"]
    assert isinstance(axis["dtick"], int)
    assert axis["dtick"] >= 1


@seeds(60)
def test_bars_of_odd_columns_are_finite_seen_and_not_cut(seed):
    """Numbers near the largest double, from 1e-300 to 1e300, and of a few values far apart: a picture, and no error."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    values = (
        np.clip(rng.normal(size=n), -1, 1) * 1.7e308,
        rng.choice([-1, 0, 1], n) * 10.0 ** rng.integers(-300, 300, n),
        rng.choice([0, 1e-9, 5e7], n),
        rng.normal(size=n) * 1e-310,
    )[seed % 4]
    distinct = np.unique(values)
    cuts = [float(v) for v in rng.choice(distinct[:-1], min(2, len(distinct) - 1), replace=False)]
    at, widths, counts = stacked_bars(values, rng.integers(0, 2, n), 2, cuts)
    assert counts.sum() == n
    assert np.isfinite(at).all()
    assert (widths > 0).all()
    tolerance = 1e-9 * widths
    for cut in cuts:
        assert not ((at - widths / 2 < cut - tolerance) & (at + widths / 2 > cut + tolerance)).any()
    if len(distinct) > 1:
        assert widths.max() / 2 > distinct[-1] / 3000 - distinct[0] / 3000
    json.dumps(
        histogram_figure(values, np.zeros(n, np.int32), ("a",), title="x", cuts=cuts, heads=("yes", "no")),
        allow_nan=False,
    )


def coded(special: tuple[float, ...], split: Split) -> list[str]:
    """Return the note below `split` for 12 rows: two have −9 in the first of three columns, and one has 999."""
    X = np.c_[[-9, -9, 999, *range(9)], np.arange(12) % 5, np.arange(12) % 3].astype(float)
    codes = (np.arange(12) % 2).astype(np.int32)
    schema = tuple(
        ColumnSchema(name=name, kind=ColumnKind.NUMERIC, special=special if name == "days" else ())
        for name in ("days", "b", "c")
    )
    draft = DraftBranch(split=split, left=DraftLeaf(), right=DraftLeaf())
    tree = grow(draft, X, codes, schema=schema, classes=("no", "yes"))
    return [picture.get("warning") or picture["note"] for picture in split_figures(tree, 0, X, codes)]


def test_answers_to_codes_are_counted():
    (note,) = coded((-9.0, 999.0), Threshold(feature=0, threshold=4.5))
    assert (
        "2 rows answer yes because of a special value: −9 in 2 rows. 1 row answers no because of a special value: 999 in 1 row."
        in note
    )
    # no code is declared, and a single 999 is not enough to suspect one
    (note,) = coded((), Threshold(feature=0, threshold=4.5))
    assert "2 rows answer yes because of what may be a code: −9 in 2 rows." in note
    assert "999" not in note


def test_class_names_of_a_legend_have_more_room_than_in_a_card():
    names = ("agrees with the question asked", "does not agree with it at all")
    figure = histogram_figure(
        np.arange(4.0), np.array([0, 1, 0, 1], np.int32), names, title="x", cuts=[1.5], heads=("yes", "no")
    )
    assert [trace["name"] for trace in figure["data"]] == list(names)


@pytest.mark.parametrize("features", [(0, 1), (0, 1, 2)])
def test_codes_that_a_sum_weighs_are_counted(features):
    plane = Linear(features=features, coefficients=(1.0,) * len(features), threshold=4.5, levels=(-1,) * len(features))
    said = "3 rows have a special value in days (−9 in 2 rows, 999 in 1 row), and the sum weighs it as a number."
    assert any(said in note for note in coded((-9.0, 999.0), plane))
    said = "2 rows have what may be a code in days (−9 in 2 rows), and the sum weighs it as a number."
    assert any(said in note for note in coded((), plane))
    assert not any("as a number" in note for note in coded((5000.0,), plane))


def test_names_of_models_do_not_lie_over_each_other():
    """Of points in one place, one name is above and one below on each side; hovering shows the others."""
    same = [{"name": f"a model with a long name {k}", "leaves": 4, "accuracy": 0.88} for k in range(6)]
    points = [*same, {"name": "far", "leaves": 12, "accuracy": 0.8}]
    models = next(t for t in frontier_figure(points)["data"] if t["name"] == "models")
    shown = [(t, p) for t, p in zip(models["text"], models["textposition"], strict=True) if t]
    assert len(shown) == 5
    assert len({p for t, p in shown if t != "far"}) == 4
    assert len(models["hovertext"]) == 7
