"""Figures of all good trees: widths add up, and names are escaped."""

from __future__ import annotations

import itertools
import random

from octweb.figures.good_trees import questions_figure, tolerance_figure
from tests.seeds import seeds


def random_columns(rng):
    """Return first columns with the columns below them, as a record has them."""
    names = ["age", "a <b>bold</b> name", *(f"column {j}" for j in range(20))]
    found = []
    for name in rng.sample(names, rng.randint(1, len(names))):
        yes, no = ({n: rng.choice([1, 3, 500]) for n in rng.sample(["", *names], 5)} for _ in range(2))
        trees = sum(yes.values())
        no = {**no, "": no.get("", 0) + max(0, trees - sum(no.values()))}
        yes = {**yes, "": yes.get("", 0) + max(0, sum(no.values()) - trees)}
        found.append({"column": name, "trees": sum(yes.values()), "yes": yes, "no": no})
    return found


@seeds(60)
def test_icicle_rows_have_equal_width_and_nest(seed):
    columns = random_columns(random.Random(seed))
    whole = sum(line["trees"] for line in columns)
    figure = questions_figure(columns)
    ends = None
    for trace in figure["data"]:
        spans = sorted((at, at + width) for at, width in zip(trace["base"], trace["x"], strict=True))
        assert spans[0][0] == 0
        assert spans[-1][1] == whole
        assert all(one[1] == other[0] for one, other in itertools.pairwise(spans))
        own = {end for _, end in spans}
        assert ends is None or ends <= own  # each part of a row ends where some part of the row below ends
        ends = ends or own
        assert not any("<b>" in text for text in (*trace["text"], *trace["hovertext"]))


def test_curve_has_step_per_tolerance_and_marks_the_last():
    figure = tolerance_figure([[0.0, 2], [0.01, 5], [0.05, 40]])
    assert figure["data"][0]["x"] == [0, 1, 5]
    assert figure["data"][0]["y"] == [2, 5, 40]
    assert (figure["data"][1]["x"], figure["data"][1]["y"]) == ([5], [40])
    assert figure["layout"]["yaxis"]["type"] == "log"
    assert tolerance_figure([])["data"][0]["x"] == []
