"""Labels in the figure of an experiment never cover a candidate."""

import pytest

from octweb.figures.experiment import experiment_figure


def point(name, leaves, accuracy, **more):
    base = {"name": name, "leaves": leaves, "mean": accuracy, "error": 0.004, "proved": False, "id": name}
    return base | {"recommended": False, "highest": False} | more


def words_of(figure, start):
    return next(a for a in figure["layout"]["annotations"] if start in a["text"])


def test_recommended_label_is_below_overlapped_candidate():
    shown = [
        point("small", 4, 0.800, recommended=True),
        point("in the way", 5, 0.795),
        point("far below, far away", 200, 0.700),
        point("best", 60, 0.803, highest=True),
    ]
    figure = experiment_figure(shown)
    assert words_of(figure, "recommended")["y"] == pytest.approx(79.1)
    assert words_of(figure, "<b>recommended")["yanchor"] == "top"
    leader = [s for s in figure["layout"]["shapes"] if s["type"] == "line"]
    assert [(s["x0"], s["y0"]) for s in leader] == [(4, 80.0)]
    assert leader[0]["line"] == {
        "color": "var(--ink-2)",
        "width": 1.5,
        "dash": "dot",
    }  # the line is faint like the grid, but differs from it


def test_labels_without_overlap_stay_at_their_bars():
    figure = experiment_figure([point("small", 2, 0.8, recommended=True), point("best", 500, 0.803, highest=True)])
    assert words_of(figure, "recommended")["y"] == pytest.approx(79.6)
    assert all(s["type"] == "rect" for s in figure["layout"]["shapes"])


def test_tied_candidates_of_one_size_share_a_label():
    tied = [point(name, 4, 0.8, highest=True, tied=True) for name in "abc"]
    figure = experiment_figure([*tied, point("small", 2, 0.79, recommended=True)])
    assert sum("tied for the highest" in a["text"] for a in figure["layout"]["annotations"]) == 1
