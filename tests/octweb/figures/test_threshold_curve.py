"""The curve of misclassified rows below a split: same axis, exact at every stop, and readable."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from octweb.figures.histogram import histogram_figure
from octweb.figures.split import split_figures
from octweb.figures.split.column import rank_ticks
from octweb.figures.split.costs import CutCosts, threshold_costs
from octweb.figures.split.curve import LENGTH, MOST_STOPS, lowest_words, threshold_figure
from octweb.registry.page.thresholds import rank_choices
from tests.octweb.figures.specimens import one_split
from tests.octweb.figures.tree_figure_cases import _valid
from trainer.table import EmptySide
from trainer.tree.nodes import DraftBranch, DraftLeaf, grow
from trainer.tree.render.palette import without_legend
from trainer.tree.splits import Missing


def drawn(classes: int = 2, n: int = 400):
    tree, X, codes = one_split("threshold", n=n, classes=classes)
    return tree, X, codes, split_figures(tree, 0, X, codes)[0]["figure"]


@pytest.mark.parametrize("classes", [2, 3, 20])
def test_picture_and_curve_share_axis_and_cut_line(classes):
    tree, X, codes, figure = drawn(classes)
    _valid(figure)
    layout = figure["layout"]
    curve = [t for t in figure["data"] if t.get("yaxis") == "y2"]
    assert [t["name"] for t in curve] == ["rows wrong", "fewest"]
    assert not any("xaxis" in t for t in figure["data"])  # both plots share one axis of values
    low = layout["yaxis2"]["domain"]
    high = layout["yaxis"]["domain"]
    assert low[1] < high[0]
    shapes = {s["name"]: s for s in layout["shapes"]}
    own = tree.nodes[0].split.threshold
    assert {shapes[name]["x0"] for name in ("cut", "reach")} == {own}
    assert (shapes["cut"]["y0"], shapes["cut"]["y1"]) == (high[0], 1)
    assert shapes["reach"]["y0"] == 0
    assert low[1] < shapes["reach"]["y1"] < high[0]
    wrong = int((tree.predict(X) != codes).sum())
    assert (shapes["now"]["xanchor"], shapes["now"]["yanchor"]) == (own, wrong)
    # The page has a legend of its own, so the figure gets lower.
    assert without_legend(figure)["layout"]["height"] < layout["height"]


def test_title_names_lowest_point_and_axis_shows_both_ends():
    *_, figure = drawn()
    meta = figure["layout"]["meta"]
    layout = figure["layout"]
    fewest = min(meta["wrong"])
    at = meta["cuts"][meta["wrong"].index(fewest)]
    words = next(a["text"] for a in layout["annotations"] if a.get("name") == "wrong")
    assert words.startswith(f"Wrong rows if you move the line: fewest, {fewest}, at ")
    assert float(words.rsplit(" ", 1)[1].replace("−", "-")) == at
    assert layout["yaxis2"]["tickvals"] == [fewest, max(meta["wrong"])]
    assert figure["data"][-1]["y"] == [fewest]


def test_moved_threshold_shows_counts_of_the_rows():
    tree, X, codes, figure = drawn(3)
    meta, (yes, no) = json.loads(json.dumps(figure["layout"]["meta"])), (tree.nodes[v].label for v in (1, 2))
    values = X[:, 0]
    assert (meta["rows"], meta["known"]) == (len(X), int(np.isfinite(values).sum()))
    for i in range(0, len(meta["cuts"]), 7):
        for cut in (meta["cuts"][i], meta["low"][i]):
            left = values <= cut
            assert meta["yes"][i] == left.sum()
            assert meta["wrong"][i] == (np.where(left, yes, no) != codes).sum()
    assert meta["nobody"] == (codes != no).sum()
    assert meta["everybody"] == (np.where(np.isfinite(values), yes, no) != codes).sum()


def test_a_very_long_column_has_few_stops_and_they_are_exact():
    tree, X, codes, figure = drawn(n=6000)
    meta = figure["layout"]["meta"]
    assert MOST_STOPS <= len(meta["cuts"]) <= MOST_STOPS + 2
    assert meta["cuts"][meta["at"]] == tree.nodes[0].split.threshold == meta["own"]
    assert min(meta["wrong"]) == threshold_costs(tree, 0, X, codes).wrong.min()
    for i in range(0, len(meta["cuts"]), 97):
        assert meta["yes"][i] == (X[:, 0] <= meta["cuts"][i]).sum()


@pytest.mark.parametrize(("values", "curve"), [((0, 1), False), ((0, 1, 2), True)])
def test_a_question_with_a_single_threshold_has_no_curve(values, curve):
    tree, X, codes = one_split("threshold")
    X[:, 0] = np.resize(values, len(X))
    draft = DraftBranch(split=replace(tree.nodes[0].split, threshold=0.5), left=DraftLeaf(), right=DraftLeaf())
    figure = split_figures(grow(draft, X, codes, schema=tree.schema, classes=tree.classes), 0, X, codes)[0]["figure"]
    assert ("meta" in figure["layout"]) == ("yaxis2" in figure["layout"]) == curve


def test_threshold_beyond_all_rows_is_labelled():
    tree, X, codes = one_split("threshold")
    for threshold, at, wrong in ((-99.0, -1, "nobody"), (99.0, "last", "everybody")):
        split = replace(tree.nodes[0].split, threshold=threshold)
        found = threshold_costs(
            replace(tree, nodes=(replace(tree.nodes[0], split=split), *tree.nodes[1:])), 0, X, codes
        )
        assert found.at == (len(found.cuts) if at == "last" else at)
        assert found.now == getattr(found, wrong)
        assert found.wrong[found.best] == found.wrong.min()


def test_curve_title_keeps_end_of_long_name_and_integer_ticks():
    tree, X, codes, _ = drawn()
    costs = threshold_costs(tree, 0, X, codes)
    layout = _valid(threshold_figure(costs, "share_of_households_with_cars_in_the_whole_region_04")).layout
    assert len(layout.xaxis.title.text) <= LENGTH
    assert layout.xaxis.title.text.endswith("region_04")
    assert layout.yaxis.dtick == int(layout.yaxis.dtick) >= 1


@pytest.mark.parametrize(("name", "shift", "words"), [("build year", 2500.0, "2"), ("metres", 2500.0, "2,")])
def test_a_year_has_no_comma_in_the_words_of_the_curve(name, shift, words):
    tree, X, codes = one_split("threshold")
    X[:, 0] += shift
    schema = (replace(tree.schema[0], name=name), *tree.schema[1:])
    draft = DraftBranch(split=replace(tree.nodes[0].split, threshold=shift), left=DraftLeaf(), right=DraftLeaf())
    layout = split_figures(grow(draft, X, codes, schema=schema, classes=tree.classes), 0, X, codes)[0]["figure"][
        "layout"
    ]
    assert layout["meta"]["year"] == ("," not in words)
    assert re.fullmatch(rf"fewest, \d+, at {words}\d\d\d(\.\d+)?", layout["meta"]["lowest"])


@pytest.mark.parametrize("side", ["left", "right"])
def test_empty_cells_have_a_bar_on_the_side_they_go_to(side):
    tree, X, codes = one_split("threshold", n=200)
    feature = tree.nodes[0].split.feature
    X[::5, feature] = np.nan
    empty = int(np.isnan(X[:, feature]).sum())
    split = tree.nodes[0].split.with_empty(EmptySide(side))
    draft = DraftBranch(split=split, left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, X, codes, schema=tree.schema, classes=tree.classes)
    picture = split_figures(tree, 0, X, codes)[0]
    _valid(picture["figure"])
    answer = "yes" if side == "left" else "no"
    assert f"{empty} rows with an empty cell answer {answer}." in picture["note"]
    bars = [t for t in picture["figure"]["data"] if t["type"] == "bar"]
    place = 0 if side == "left" else -1
    assert sum(t["y"][place] for t in bars) == empty
    assert any(a["text"] == "empty" for a in picture["figure"]["layout"]["annotations"])
    costs = threshold_costs(tree, 0, X, codes)
    for at, cut in enumerate(costs.cuts):
        moved = grow(
            replace(draft, split=replace(split, threshold=cut)), X, codes, schema=tree.schema, classes=tree.classes
        )
        assert costs.wrong[at] == (moved.predict(X) != codes).sum()
        assert costs.yes[at] == moved.nodes[1].rows


def test_a_question_about_emptiness_shows_both_groups():
    tree, X, codes = one_split("threshold", n=200)
    feature = tree.nodes[0].split.feature
    X[::5, feature] = np.nan
    empty = int(np.isnan(X[:, feature]).sum())
    draft = DraftBranch(split=Missing(feature=feature), left=DraftLeaf(label=0), right=DraftLeaf(label=1))
    tree = grow(draft, X, codes, schema=tree.schema, classes=tree.classes)
    picture = split_figures(tree, 0, X, codes)[0]
    _valid(picture["figure"])
    bars = [t for t in picture["figure"]["data"] if t["type"] == "bar"]
    assert sum(t["y"][0] for t in bars) == empty
    assert sum(sum(t["y"]) for t in bars) == 200


def test_thresholds_of_ranks_are_words():
    """A line between the ranks 1 and 2 is at the lower word; Plotly shows the words as they are."""
    n = np.arange(1.0, 3.0)
    costs = CutCosts(
        column="grade",
        low=n,
        high=n + 1,
        yes=np.array([3, 6]),
        wrong=np.array([4, 1]),
        own=1.5,
        nobody=5,
        everybody=6,
        known=9,
        rows=9,
        ranks=("low", "<b>mid", "high"),
    )
    assert [costs.written(place) for place in (0, 1)] == ["low", "<b>mid"]
    assert lowest_words(costs) == "fewest, 1, at &lt;b&gt;mid"
    assert rank_ticks(costs.ranks) == {"tickvals": [1, 2, 3], "ticktext": ["low", "&lt;b&gt;mid", "high"]}
    assert rank_ticks(()) == {}
    assert rank_choices(costs) == [
        {"value": "1.5", "word": "low", "is_own": True},
        {"value": "2.5", "word": "<b>mid", "is_own": False},
    ]
    line, lowest = threshold_figure(costs, "grade")["data"]
    assert (line["customdata"], lowest["customdata"]) == (["low", "&lt;b&gt;mid"], ["&lt;b&gt;mid"])
    assert all("%{x" not in trace["hovertemplate"] for trace in (line, lowest))


def test_hover_of_ranks_names_the_word_of_each_bar():
    values = np.array([1.0, 2.0, 3.0, 3.0, np.nan])
    codes = np.zeros(5, np.int32)
    figure = histogram_figure(
        values, codes, ("no",), title="grade", cuts=[1.5], empty_left=False, ranks=("low", "<b>mid", "high")
    )
    (bars,) = figure["data"]
    assert bars["customdata"] == ["low", "&lt;b&gt;mid", "high", "empty"]
    assert "%{x" not in bars["hovertemplate"]
    ranks = tuple(f"r{k}" for k in range(1, 31))
    values = np.arange(1.0, 31.0)
    (bars,) = histogram_figure(values, np.zeros(30, np.int32), ("no",), title="grade", cuts=[7.5], ranks=ranks)["data"]
    assert [word for word, rows in zip(bars["customdata"], bars["y"], strict=True) if rows] == list(ranks)
