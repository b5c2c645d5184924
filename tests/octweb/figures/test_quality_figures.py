"""Titles of any length stay inside the quality figures."""

import numpy as np
import pytest

from octweb.figures.quality import TITLE, recall_figure, roc_figure
from trainer.evaluate.curves import curve

LONG = ("does not agree with the last question <of all>", "agrees with the last question <of all>")


@pytest.fixture(scope="module")
def cuts():
    return curve(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 2, 1, 3]), np.array([3, 1, 2, 0]))


@pytest.mark.parametrize("draw", [roc_figure, recall_figure])
def test_only_titles_of_long_classes_are_wrapped(draw, cuts):
    for names, lines in ((LONG, 2), (("yes", "no"), 1)):
        layout = draw(cuts, *names, own=(1, 1))["layout"]
        texts = [layout[a]["title"]["text"] for a in ("xaxis", "yaxis")]
        assert max(t.count("<br>") + 1 for t in texts) == lines
        for line in "<br>".join(texts).replace("&lt;", "<").replace("&gt;", ">").split("<br>"):
            assert len(line) <= TITLE
