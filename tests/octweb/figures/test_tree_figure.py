"""The tree figure draws each node once without overlap, and is valid for Plotly."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import pytest

from octweb.figures.tree_map import tree_map
from tests.octweb.figures.specimens import tree_of
from tests.octweb.figures.tree_figure_cases import _valid
from trainer.tree.numbers import read_number
from trainer.tree.render.figure import tree_figure
from trainer.tree.render.layout import FONT, leaves_below, place
from trainer.tree.render.outline import counts_text
from trainer.tree.render.palette import escape, text_width, wrap
from trainer.tree.render.words import leaf_share
from trainer.tree.splits import Interval, Linear, Threshold


def _outlines(trace):
    """Return the outlines of a filled trace as lists of points."""
    found = [[]]
    for x, y in zip(trace["x"], trace["y"], strict=True):
        if x is None:
            found.append([])
        else:
            found[-1].append((x, y))
    return found


def _words(figure):
    return next(t for t in figure["data"] if t["name"] == "words")


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 6, 7, 12, 16, 17, 33, 64])
@pytest.mark.parametrize("classes", [1, 2, 4, 9, 20])
def test_every_node_is_drawn_once_and_apart(leaves, classes):
    tree = tree_of(leaves, classes=classes, seed=leaves)
    figure = tree_figure(tree)
    _valid(figure)
    layout = figure["layout"]
    nodes = figure["layout"]["meta"]["nodes"]
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
    cards = [o for t in figure["data"] if t["name"] in ("leaves", "questions") for o in _outlines(t)]
    assert len(cards) == len(tree.nodes)
    for node in nodes:
        if node["left"] >= 0:
            x = [nodes[i]["box"][0] + nodes[i]["box"][2] / 2 for i in (node["left"], node["right"])]
            assert x[0] < x[1]
            assert sum(x) / 2 == pytest.approx(node["box"][0] + node["box"][2] / 2, abs=0.3)


@pytest.mark.parametrize("leaves", [2, 12, 33, 64])
def test_first_view_is_readable(leaves):
    tree = tree_of(leaves, classes=4, seed=leaves)
    for room in ((1032.0, 676.0), (1192.0, 676.0), (700.0, 500.0)):
        layout = tree_figure(tree, room=room)["layout"]
        _valid(tree_figure(tree, room=room))
        if len(layout["meta"]["nodes"]) > 3:
            assert 0.8 * layout["width"] <= room[0] + 1
            assert 0.8 * layout["height"] <= room[1] + 1


def test_collapsed_subtree_is_a_card_with_its_leaf_count():
    tree = tree_of(20, classes=3, seed=5)
    figure = tree_figure(tree, levels=2)
    records = figure["layout"]["meta"]["nodes"]
    assert max(v["level"] for v in records) == 2
    assert figure["layout"]["meta"]["closed"] == [v["id"] for v in records if v["closed"]]
    shown = [v for v in records if v["closed"]]
    assert shown
    for v in shown:
        words = _words(figure)["text"]
        assert f"{len(leaves_below(tree, v['id']))} leaves" in words
        left, top, width, height = v["box"]
        strip = [
            o
            for t in figure["data"]
            if t["name"] in {escape(c) for c in tree.classes}
            for o in _outlines(t)
            if left < o[0][0] < left + width and o[2][1] - o[0][1] == 12 and top < o[0][1] < top + height
        ]
        assert len(strip) == sum(leaf.rows > 0 for leaf in leaves_below(tree, v["id"]))
    one = tree_figure(tree, closed=[tree.nodes[0].left])["layout"]["meta"]["nodes"]
    assert not any(v["id"] != tree.nodes[0].left and tree.nodes[0].left in tree.path_to(v["id"]) for v in one)


@pytest.mark.parametrize("leaves", [3, 8, 16])
def test_a_leaf_keeps_class_share_and_rows_at_every_size(leaves):
    tree = replace(tree_of(leaves, classes=2), classes=("not enrolled", "on probation"))
    words = _words(tree_figure(tree))
    for record in tree_figure(tree)["layout"]["meta"]["nodes"]:
        v = tree.nodes[record["id"]]
        if not v.is_leaf:
            continue
        left, top, width, height = record["box"]
        near = [
            text
            for text, x, y in zip(words["text"], words["x"], words["y"], strict=True)
            if left - 90 < x < left + width + 90 and top - 12 < y < top + height
        ]
        assert any(text.startswith(("<b>not", "<b>on")) for text in near)
        assert f"<b>{leaf_share(v)}</b>" in near
        assert any(f"{v.rows:,}" in text for text in near)


@pytest.mark.parametrize(
    ("right", "n", "said"),
    [
        (3, 4, "75.0\u202f% of 4"),
        (6, 6, "100\u202f% of 6"),
        (0, 3, "0\u202f% of 3"),
        (4999, 5000, "99.98\u202f% of 5,000"),
    ],
)
def test_leaves_say_how_many_unseen_rows_are_right(right, n, said):
    tree = tree_of(4, classes=2)
    figure = tree_figure(tree, unseen={leaf.id: (right, n) for leaf in tree.leaves})
    assert _words(figure)["text"].count(f"unseen {said}") == 4


def test_bars_add_up_to_the_rows_of_each_class():
    tree = tree_of(5, classes=4)
    figure = tree_figure(tree)
    inner = {v["id"]: v["box"][2] - 20 for v in figure["layout"]["meta"]["nodes"]}
    for k, label in enumerate(tree.classes):
        trace = next((t for t in figure["data"] if t["name"] == escape(label)), None)
        bars = [] if trace is None else [o for o in _outlines(trace) if o[2][1] - o[0][1] == pytest.approx(6, abs=0.11)]
        ordered = sorted(o[1][0] - o[0][0] for o in bars)
        share = sorted(inner[v.id] * v.counts[k] / v.rows for v in tree.nodes if v.rows and v.counts[k])
        assert ordered == pytest.approx(share, abs=0.11)


def test_bands_are_as_wide_as_their_rows():
    tree = tree_of(4, classes=2)
    bands = [o for t in tree_figure(tree)["data"] if t["name"].startswith("rows: ") for o in _outlines(t)]
    widths = sorted(o[-1][0] - o[0][0] for o in bands)
    ordered = sorted(max(0.8, 104 * n / tree.nodes[0].rows) for v in tree.nodes[1:] for n in v.counts if n)
    assert widths == pytest.approx(ordered, abs=0.11)


@pytest.mark.parametrize("leaves", [1, 17, 64])
def test_the_map_shows_every_leaf(leaves):
    tree = tree_of(leaves, classes=20, seed=leaves)
    figure = tree_map(tree)
    _valid(figure)
    assert sum(len(t["x"]) for t in figure["data"] if t["mode"] == "markers") == leaves
    layout = figure["layout"]
    for v in layout["meta"]["nodes"]:
        assert 0 <= v["x"] <= layout["width"]
        assert 0 <= v["y"] <= layout["height"]


def test_counts_are_distinguished_from_numeric_classes():
    tree = tree_of(1, classes=2, n=50)
    a, b = tree.nodes[0].counts
    assert counts_text(tree, tree.nodes[0]) == f"{a} benign · {b} malignant"
    assert counts_text(replace(tree, classes=("0", "1")), tree.nodes[0]) == f"0: {a} · 1: {b}"
    assert counts_text(replace(tree, classes=("-1", "high")), tree.nodes[0]) == f"-1: {a} · high: {b}"


def test_hover_has_the_whole_rule_and_every_count_without_markup():
    tree = tree_of(9, classes=4, seed=2)
    hovers = tree_figure(tree)["data"][-1]["hovertext"]
    for v, text in zip(tree.nodes, hovers, strict=True):
        assert ("1 row in all" if v.rows == 1 else f"{v.rows:,} rows in all") in text
        assert all(f"{n:,} row" in text for n in v.counts if n)
        assert "<script>" not in text
        assert "<i>" not in text
        assert "<b>bold" not in text
    long = "a_very_long_column_name_that_never_seems_to_end"
    used = [v for v in tree.branches if 1 in v.split.used]
    assert used
    assert all(long in hovers[v.id].replace("</b><br><b>", "") for v in used)


def test_names_are_text_and_not_markup():
    figure = tree_figure(tree_of(6, classes=4, seed=1))
    del figure["layout"]["meta"]  # the page inserts these as text, not as markup
    text = json.dumps(figure)
    assert "<script" not in text
    assert "<i>" not in text


def test_path_and_chosen_node_stand_out():
    tree = tree_of(6, classes=2, seed=3)
    path = tree.path_to(tree.leaves[-1].id)
    data = {t["name"]: t for t in tree_figure(tree, path=path, chosen=1)["data"]}
    assert len(_outlines(data["path"])) == len(path)  # one outline for each band, and one for the leaf
    assert len(_outlines(data["chosen"])) == 1
    assert len(_outlines(data["on the path"])) == len(set(path) - {1})
    assert data["on the path"]["line"]["color"] == "var(--ink)"


def test_threshold_label_shares_its_line():
    assert wrap("the_number_of_cars ≤ 0", 12 * 13, 12, 3)[-1].endswith("≤ 0")
    for width in range(30, 200, 5):
        assert wrap("a_column_with_a_long_name ≤ 0", width, 12, 9)[-1] != "0"


def test_small_leaves_shorten_class_names_to_their_differences():
    tree = tree_of(40, classes=20, seed=3)
    tree = replace(tree, classes=tuple(f"species {k:02d}" for k in range(20)))
    words = " ".join(_words(tree_figure(tree, room=(900, 600), closed=()))["text"])
    for leaf in tree.leaves:
        assert f"<b>…{leaf.label:02d}</b>" in words
    assert "species…" not in words


@pytest.mark.parametrize("name", ["MSinceMostRecentInqexcl7days", "number_of_satisfactory_trades"])
def test_card_shows_full_name_if_it_takes_no_more_lines(name):
    tree = tree_of(2, classes=2)
    schema = (replace(tree.schema[0], name=name, unit=""), *tree.schema[1:])
    nodes = (replace(tree.nodes[0], split=Threshold(feature=0, threshold=0.5)), *tree.nodes[1:])
    lines = place(replace(tree, schema=schema, nodes=nodes)).boxes[0].lines
    assert len(lines) == 2
    assert "".join(lines).replace(" ", "") == f"{name}≤0.5"
    assert not re.search("[a-z]$", lines[0]) or lines[1][0].isupper(), "a word is not broken"


NUMBERS = ("0.00000000000000000011", "−3.6999999999999984", "655,604,658,758,059.2", "6.445452249693526E+24")


@pytest.mark.parametrize("closed", [(), (0,)])
@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_of_questions_stand_in_one_piece_on_cards(text, closed):
    value = read_number(text)
    tree = tree_of(3, classes=2, seed=3)
    for split in (
        Threshold(feature=0, threshold=value),
        Interval(feature=0, low=value, high=abs(2 * value)),
        Linear(features=(0, 1), coefficients=(value, -1.5 * value), threshold=value / 3, levels=(-1, -1)),
    ):
        shown = replace(tree, nodes=(replace(tree.nodes[0], split=split), *tree.nodes[1:]))
        box = place(shown, closed=closed).boxes[0]
        numbers = [word for word in split.text(shown.schema).split() if read_or_none(word) is not None]
        assert text.removeprefix("−") in " ".join(numbers)
        for number in numbers:
            assert any(number in line.split() for line in box.lines), box.lines
        assert all(text_width(line, FONT) <= box.inner for line in box.lines)


@pytest.mark.parametrize("width", range(60, 300, 7))
def test_a_line_that_is_cut_ends_before_a_number(width):
    text = "1.25 × income − 0.000123456 × age + 98,765.4321 × score ≤ −3.6999999999999984"
    last = wrap(text, width, 12, 2)[-1]
    for number in re.findall(r"\d[\d.,]*\d", last):
        assert last.endswith("…")
        assert number in re.findall(r"\d[\d.,]*\d", text), last


def read_or_none(word):
    try:
        return read_number(word)
    except ValueError:
        return None


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


@pytest.mark.parametrize(("leaves", "closed", "shown"), [(3, None, True), (3, [0], False), (12, None, False)])
def test_small_trees_show_notes_on_their_cards(leaves, closed, shown):
    tree = tree_of(leaves, classes=2, seed=leaves)
    notes = {0: ("weight  61\u202f%", "a name that is far too long for any card whatever  39\u202f%", "+ 57 more")}
    plain = tree_figure(tree, closed=closed)
    figure = tree_figure(tree, closed=closed, notes=notes)
    words = _words(figure)
    assert ("+ 57 more" in words["text"]) is shown
    box, before = (f["layout"]["meta"]["nodes"][0]["box"] for f in (figure, plain))
    if not shown:
        assert figure == plain
        return
    places = [words["y"][words["text"].index(t)] for t in ("weight  61\u202f%", "+ 57 more")]
    assert box[1] < places[0] < places[1] < box[1] + box[3]
    assert box[3] == before[3] + 15 * 3
    assert next(text_width(t, 11.0) for t in words["text"] if t.startswith("a name")) <= box[2] - 20


@pytest.mark.parametrize("leaves", [2, 17, 64])
def test_nearly_level_bands_are_wider_and_stay_apart(leaves):
    tree = tree_of(leaves, classes=1, seed=leaves)
    figure = tree_figure(tree)
    bands = [o for t in figure["data"] if t["name"].startswith("rows: ") for o in _outlines(t)]
    for outline in bands:
        half = len(outline) // 2
        left = outline[:half]
        right = outline[half:][::-1]
        widths = [b[0] - a[0] for a, b in zip(left, right, strict=True)]
        across, down = (left[-1][k] + right[-1][k] - left[0][k] - right[0][k] for k in (0, 1))
        inner = [x if across > 0 else -x for x, _ in (left if across > 0 else right)]
        assert all(
            y - x > -0.3 for x, y in itertools.pairwise(inner)
        )  # the side towards the other band never turns back
        assert min(widths) == pytest.approx(widths[0], abs=0.3)
        if 2 * abs(across) <= 3.9 * down:
            assert max(widths) == pytest.approx(widths[0], abs=0.3)
    if leaves == 64:
        widest = max(o[len(o) * 3 // 4][0] - o[len(o) // 4][0] for o in bands)
        assert widest > 2 * 104


def _lopsided(leaves, larger):
    """Return a tree that keeps nearly all rows on one side, `larger` times as many as the specimen has."""
    tree = tree_of(leaves, classes=2, seed=leaves)
    rows = {v.id: v.rows for v in tree.nodes}
    most = max(rows, key=lambda i: rows[i] if tree.nodes[i].is_leaf else -1)
    extra = {most}
    at = most
    while (at := tree.parents[at]) >= 0:
        extra.add(at)
    more = 20 * rows[0]
    nodes = [
        replace(v, counts=tuple(larger * (c + more * (v.id in extra and k == 0)) for k, c in enumerate(v.counts)))
        for v in tree.nodes
    ]
    return replace(tree, nodes=tuple(nodes))


@pytest.mark.parametrize("leaves", [2, 3, 4, 6, 9, 16])
@pytest.mark.parametrize("larger", [1, 10_000])
@pytest.mark.parametrize("room", [None, (340.0, 500.0), (1000.0, 700.0)])
def test_words_beside_bands_stay_in_the_picture_and_apart(leaves, larger, room):
    figure = tree_figure(_lopsided(leaves, larger), closed=(), room=room)
    words = _words(figure)
    found = []
    for x, y, text, side in zip(words["x"], words["y"], words["text"], words["textposition"], strict=True):
        if text.startswith(("yes · ", "no · ")):
            wide = text_width(text, 11)
            found.append((y, x - wide, x) if side.endswith("left") else (y, x, x + wide))
    assert found
    for y, left, right in found:
        assert left >= 0
        assert right <= figure["layout"]["width"]
        assert all(b <= left or right <= a for at, a, b in found if at == y and (a, b) != (left, right))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("MSinceMost…excl7days ≤ 0.5", ["MSinceMost", "…excl7days", "≤ 0.5"]),
        ("…cars_region_24_in… ≤ 0", ["…cars_", "region_24_", "in… ≤ 0"]),
    ],
)
def test_shortened_name_keeps_its_neighbouring_text(text, lines):
    assert wrap(text, 96, FONT, 12) == lines
