"""The tree picture: every node drawn once, nothing overlaps, every figure is a figure to Plotly."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from octweb.figures.outline import counts_text
from octweb.figures.palette import text_width, wrap
from octweb.figures.tree import tree_figure
from tests.octweb.figures.specimens import tree_of


def _valid(figure):
    """The figure as Plotly's own class, which refuses unknown attributes and values; it must be plain JSON."""
    return go.Figure(json.loads(json.dumps(figure, allow_nan=False)))


@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 6, 7, 12, 16, 17, 33, 64])
@pytest.mark.parametrize("classes", [1, 2, 4, 9, 20])
def test_every_node_is_drawn_once_and_apart(leaves, classes):
    tree = tree_of(leaves, classes=classes, seed=leaves)
    figure = tree_figure(tree)
    _valid(figure)
    layout, nodes = figure["layout"], figure["layout"]["meta"]["nodes"]
    centres = figure["data"][-1]
    assert centres["customdata"] == [v.id for v in tree.nodes]
    assert [v["parent"] for v in nodes] == list(tree.parents)
    for node in nodes:
        left, top, width, height = node["box"]
        assert left >= 0
        assert top >= 0
        assert left + width <= layout["width"]
        assert top + height <= layout["height"]
    for a, b in itertools.combinations((v["box"] for v in nodes), 2):
        assert a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
    edges = [s for s in layout["shapes"] if " C " in s["path"]]
    assert len(edges) == len(tree.nodes) - 1
    for node in nodes:
        if node["left"] >= 0:
            x = [nodes[i]["box"][0] + nodes[i]["box"][2] / 2 for i in (node["left"], node["right"])]
            assert x[0] < x[1]
            assert sum(x) / 2 == pytest.approx(node["box"][0] + node["box"][2] / 2, abs=0.3)


@pytest.mark.parametrize("leaves", [3, 8, 16])
def test_a_class_of_a_dozen_letters_is_never_cut(leaves):
    tree = replace(tree_of(leaves, classes=2), classes=("not enrolled", "on probation"))
    figure = tree_figure(tree)
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert sum(text in ("<b>not enrolled</b>", "<b>on probation</b>") for text in texts) == leaves
    boxes = {v.id: v for v in tree.nodes}
    for record in figure["layout"]["meta"]["nodes"]:
        if boxes[record["id"]].is_leaf:  # the words stand inside of their card, one below the other or side by side
            left, top, width, height = record["box"]
            inside = [
                n
                for n in figure["layout"]["annotations"]
                if left < n["x"] < left + width and top < n["y"] < top + height
            ]
            assert len({(n["xanchor"], n["y"]) for n in inside}) == len(inside) >= 2


def test_bars_add_up_to_the_rows_of_each_class():
    tree = tree_of(5, classes=4)
    bars = [t for t in tree_figure(tree)["data"] if t["type"] == "bar"]
    for k, trace in enumerate(bars):
        drawn = [x for x, w in zip(trace["x"], trace["width"], strict=True) if w == 7]
        share = [v.counts[k] / v.rows for v in tree.nodes if v.rows and v.counts[k]]
        assert drawn == pytest.approx([158 * s for s in share], abs=0.06)


def test_edges_are_as_wide_as_their_rows():
    tree = tree_of(4, classes=2)
    edges = [s["line"]["width"] for s in tree_figure(tree)["layout"]["shapes"] if " C " in s["path"]]
    wanted = sorted(1.5 + 17 * v.rows / tree.nodes[0].rows for v in tree.nodes[1:])
    assert sorted(edges) == pytest.approx(wanted, abs=0.01)


def test_counts_are_told_from_classes_that_are_numbers():
    tree = tree_of(1, classes=2, n=50)
    a, b = tree.nodes[0].counts
    assert counts_text(tree, tree.nodes[0]) == f"{a} benign · {b} malignant"
    assert counts_text(replace(tree, classes=("0", "1")), tree.nodes[0]) == f"0: {a} · 1: {b}"
    assert counts_text(replace(tree, classes=("-1", "high")), tree.nodes[0]) == f"-1: {a} · high: {b}"


def test_hover_has_the_whole_rule_and_every_count_without_markup():
    tree = tree_of(9, classes=4, seed=2)
    hovers = tree_figure(tree)["data"][-1]["hovertext"]
    for v, text in zip(tree.nodes, hovers, strict=True):
        assert f"{v.rows:,} rows in all" in text
        assert all(f"{n:,} " in text for n in v.counts if n)
        assert "<script>" not in text
        assert "<i>" not in text
        assert "<b>bold" not in text
    long = "a_very_long_column_name_that_never_seems_to_end"
    used = [v for v in tree.branches if 1 in v.split.used]
    assert used
    assert all(long in hovers[v.id].replace("</b><br><b>", "") for v in used)


def test_names_are_text_and_not_markup():
    figure = tree_figure(tree_of(6, classes=4, seed=1))
    del figure["layout"]["meta"]  # for the page, which sets it as text
    text = json.dumps(figure)
    assert "<script" not in text
    assert "<i>" not in text


def test_path_and_chosen_node_stand_out():
    tree = tree_of(6, classes=2, seed=3)
    path = tree.path_to(tree.leaves[-1].id)
    shapes = tree_figure(tree, path=path, chosen=1)["layout"]["shapes"]
    lit = [s for s in shapes if " C " in s["path"] and s["line"]["color"] == "var(--ink)"]
    assert len(lit) == len(path) - 1
    assert sum(s["line"]["width"] == 2.5 and " Q " in s["path"] for s in shapes) == 1


@pytest.mark.parametrize("text", ["x", "a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_p_q_r_s", "W" * 300, "one two " * 40, ""])
def test_wrapped_lines_keep_their_width(text):
    lines = wrap(text, 120, 12, 3)
    assert 1 <= len(lines) <= 3
    assert all(text_width(line, 12) <= 122 for line in lines)
    assert (
        "".join(lines).replace(" ", "").rstrip("…")
        == text.replace(" ", "")[: len("".join(lines).replace(" ", "").rstrip("…"))]
    )
    assert (len("".join(lines).replace(" ", "")) < len(text.replace(" ", ""))) == lines[-1].endswith("…")
