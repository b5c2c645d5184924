"""Small tree pictures show each node once, widths by rows, and nothing outside the picture."""

from __future__ import annotations

from octweb.workbench.minis import THICK, THIN, WIDTH, legend, picture


def test_a_picture_has_every_node_at_its_place():
    split = {"feature": "a"}
    nodes = [
        {"split": split, "left": 1, "right": 2, "counts": [6, 4]},
        {"class": "x", "counts": [5, 0]},
        {"split": split, "left": 3, "right": 4, "counts": [1, 4]},
        {"class": "x", "counts": [1, 0]},
        {"class": "y", "counts": [0, 4]},
    ]
    drawn = picture(nodes)
    assert [(float(x) + 6, float(y) + 6, own) for x, y, own in drawn["leaves"]] == [
        (30.0, 40.0, "1"),
        (90.0, 72.0, "1"),
        (150.0, 72.0, "2"),
    ]
    assert drawn["dots"] == [("75.0", "8.0"), ("120.0", "40.0")]
    widths = [float(width) for _, width in drawn["lines"]]
    assert widths == [THIN + (THICK - THIN) * share for share in (0.5, 0.5, 0.1, 0.4)]
    assert legend([{"nodes": nodes}]) == [("1", "x"), ("2", "y")]
    assert drawn["lines"][0][0].startswith("M75.0 8.0C75.0 24.0 30.0 24.0")


def test_a_tree_of_one_leaf_is_one_square_in_the_middle():
    assert picture([{"class": "x", "counts": [3, 1]}]) == {
        "lines": [],
        "dots": [],
        "leaves": [(f"{WIDTH / 2 - 6:.1f}", "2.0", "1")],
    }
