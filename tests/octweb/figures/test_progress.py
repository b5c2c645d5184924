"""The live chart draws what is known, and nothing else."""

import plotly.graph_objects as go

from octweb.figures.growth import growth_figure
from octweb.figures.progress import progress_figure


def names(figure):
    return [trace["name"] for trace in figure["data"]]


def test_empty_history_is_described_in_words():
    figure = progress_figure([])
    assert figure["data"] == []
    assert "no tree" in figure["layout"]["annotations"][0]["text"]
    assert figure["layout"]["yaxis"]["range"] == [0, 1]


def test_a_bound_alone_has_no_gap():
    figure = progress_figure([{"t": 0.0, "bound": 1.0}, {"t": 2.0, "bound": 0.9}])
    assert names(figure) == ["bound"]
    assert figure["data"][0]["line"]["shape"] == "hv"
    assert figure["layout"]["yaxis"]["range"] == [0, 1.08]


def test_shading_starts_at_first_incumbent():
    records = [
        {"t": 0.0, "bound": 1.0},
        {"t": 1.0, "bound": 0.95, "incumbent": 0.5, "tree": [], "line": 1},
        {"t": 3.0, "bound": 0.9, "incumbent": 0.7, "tree": [], "line": 2},
        {"t": 4.0, "bound": 0.9, "incumbent": 0.7},
    ]
    figure = progress_figure(records)
    assert names(figure) == ["gap", "gap", "bound", "incumbent", "new best tree"]
    assert figure["data"][0]["x"][0] == figure["data"][1]["x"][0] == 1.0
    assert figure["data"][0]["y"][0] == 0.95
    assert figure["data"][4]["customdata"] == [1, 2]
    assert figure["data"][3]["x"][-1] == 4.0
    go.Figure(figure)


def test_last_known_values_extend_to_now():
    records = [{"t": 1.0, "bound": 1.0, "incumbent": 0.5, "tree": [], "line": 0}]
    for now, end in ((12.0, 12.0), (0.5, 1.0)):
        traces = {t["name"]: t for t in progress_figure(records, now=now)["data"]}
        assert (traces["bound"]["x"][-1], traces["bound"]["y"][-1]) == (end, 1.0)
        assert (traces["incumbent"]["x"][-1], traces["incumbent"]["y"][-1]) == (end, 0.5)
        assert traces["new best tree"]["x"] == [1.0]


def test_bracket_at_the_end_shows_the_gap():
    records = [{"t": 1.0, "bound": 1.0, "incumbent": 0.8, "tree": [], "line": 3}]
    layout = progress_figure(records, now=5.0, at=3)["layout"]
    texts = [a["text"] for a in layout["annotations"]]
    assert texts == ["best 0.8", "bound 1", "<b>gap 25\u202f%</b>", "shown: 1\u202fs"]
    assert {(s["x0"], s["x1"]) for s in layout["shapes"]} == {(5.0, 5.0), (1.0, 1.0)}
    assert layout["xaxis"]["range"] == [
        0.0,
        1.02 * 5,
    ]  # the labels are in the margin, so the axis needs no extra time for them
    closed = progress_figure([{"t": 1.0, "bound": 0.8, "incumbent": 0.8, "tree": [], "line": 3}])["layout"]
    assert "shapes" not in closed


def test_a_heuristic_is_drawn_as_it_grows():
    assert growth_figure([])["layout"]["annotations"][0]["text"] == "no question found yet"
    records = [{"t": 0.5, "leaves": 2, "correct": 60, "line": 0}, {"t": 1.0, "leaves": 4, "correct": 90, "line": 1}]
    figure = growth_figure(records, rows=120, now=2.0, at=1)
    found, right = figure["data"]
    assert (found["x"], found["y"]) == ([0.0, 0.5, 1.0, 2.0], [0, 1, 3, 3])
    assert right["y"] == [50.0, 75.0]
    assert right["customdata"] == [0, 1]
    assert figure["layout"]["xaxis"]["range"] == [0.0, 1.02 * 2]
    assert figure["layout"]["annotations"][0]["text"] == "shown: 1\u202fs"
    go.Figure(figure)
