"""The live chart: what is known is drawn, what is not known is not."""

import plotly.graph_objects as go

from octweb.figures.progress import progress_figure


def names(figure):
    return [trace["name"] for trace in figure["data"]]


def test_nothing_known_is_said_in_words():
    figure = progress_figure([])
    assert figure["data"] == []
    assert "no tree" in figure["layout"]["annotations"][0]["text"]
    assert figure["layout"]["yaxis"]["range"] == [0, 1]


def test_a_bound_alone_has_no_gap():
    figure = progress_figure([{"t": 0.0, "bound": 1.0}, {"t": 2.0, "bound": 0.9}])
    assert names(figure) == ["bound"]
    assert figure["data"][0]["line"]["shape"] == "hv"


def test_the_tint_begins_with_the_first_incumbent():
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


def test_what_is_known_holds_until_now():
    records = [{"t": 1.0, "bound": 1.0, "incumbent": 0.5, "tree": [], "line": 0}]
    for now, end in ((12.0, 12.0), (0.5, 1.0)):
        traces = {t["name"]: t for t in progress_figure(records, now=now)["data"]}
        assert (traces["bound"]["x"][-1], traces["bound"]["y"][-1]) == (end, 1.0)
        assert (traces["incumbent"]["x"][-1], traces["incumbent"]["y"][-1]) == (end, 0.5)
        assert traces["new best tree"]["x"] == [1.0]
