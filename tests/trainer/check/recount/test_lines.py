"""All lines over two columns: their separations, and what the checker proves and refutes with them."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.recount.files import findings
from trainer.check.recount.search import impurity
from trainer.check.recount.search.lines import as_integers, sides
from trainer.check.recount.search.planes import line_separations
from trainer.data.reader import load
from trainer.training.run import TrainRequest, train

ROWS = 150


def ways(points):
    """Return all separations, each as the side without the first point."""
    found = set()
    for part in sides(points, np.eye(len(points))):
        found |= {((row > 0) ^ (row[0] > 0)).tobytes() for row in part}
    return found


@seeds(300)
def test_every_separation_of_points_is_found(seed):
    rng = np.random.default_rng(seed)
    points = np.unique(rng.integers(0, rng.integers(2, 8), (rng.integers(2, 10), 2)), axis=0)
    wanted = {side.tobytes() for side in line_separations([(int(x), int(y)) for x, y in points])}
    assert ways(points) == wanted == ways(points.astype(object) * 10**30)


def test_angles_equal_in_floats_are_distinguished():
    far = 10**17
    points = np.array([[0, 0], [far, far + 1], [far + 1, far + 2], [-far, -far], [far, far - 1]], dtype=object)
    exact = {side.tobytes() for side in partings_of_whole_numbers(points.tolist())}
    assert ways(points) == exact
    order = np.arctan2(points[1:3, 1].astype(float), points[1:3, 0].astype(float))
    assert order[0] == order[1]


def partings_of_whole_numbers(points):
    """Return all sets that slightly moved lines through two points separate, in exact integers."""
    found = {np.zeros(len(points), bool).tobytes()}
    for a in points:
        for b in points:
            if a == b:
                continue
            turn = [(b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) for p in points]
            along = [(b[0] - a[0]) * (p[0] - a[0]) + (b[1] - a[1]) * (p[1] - a[1]) for p in points]
            for cut in {x for t, x in zip(turn, along, strict=True) if t == 0}:
                for below in (True, False):
                    side = [t > 0 or (t == 0 and (x <= cut) == below) for t, x in zip(turn, along, strict=True)]
                    found.add((np.array(side) ^ side[0]).tobytes())
    return [np.frombuffer(side, bool) for side in found]


def test_columns_become_integers_exactly():
    assert as_integers(np.array([0.1, 0.3, 0.2])).tolist() == [0, 2, 1]
    assert as_integers(np.array([5.0, -5.0])).tolist() == [1, 0]
    wide = as_integers(np.array([1e-9, 1.0, 1e9]))
    assert wide.dtype == object
    assert Fraction(wide[1], wide[2]) == Fraction(10**9 - 1, 10**18 - 1)
    # As decimals, numbers this close have other proportions than the floats that trees compare.
    assert as_integers(np.array([0.1, np.nextafter(0.1, 1)])) is None


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """Provide document and file of a tree of lines, with more rows than a search of all pairs of points can handle."""
    folder = tmp_path_factory.mktemp("plane")
    rng = np.random.default_rng(11)
    points = rng.normal(size=(ROWS, 2)).round(3)
    flipped = rng.random(ROWS) < 0.1
    answers = (points.sum(axis=1) > 0) ^ flipped
    lines = [f"{x},{y},{'ab'[int(k)]}" for (x, y), k in zip(points.tolist(), answers, strict=True)]
    data = folder / "plane.csv"
    data.write_text("\n".join(["x,y,class", *lines]) + "\n")
    table, labels, *_ = load(data, target="class")
    request = TrainRequest(
        table=table, labels=labels, method="bivariate", parameters={"depth": 1}, test_share=0, folds=0
    )
    return json.loads(json.dumps(train(request).model.to_json())), data, points, answers


def of(claim, found):
    return next(f for f in found if f.claim == claim)


def test_a_split_of_many_rows_is_proved_again(plane, tmp_path, monkeypatch):
    document, data, *_ = plane
    assert document["certificate"]["splits_proved"] == 1
    assert of("splits", findings(document, data, tmp_path)).verdict == "proved"
    monkeypatch.setattr(impurity, "WORK", ROWS**2 - 1)
    assert of("splits", findings(document, data, tmp_path)).verdict == "cannot be judged"


def test_threshold_falsely_called_best_is_refuted(plane, tmp_path):
    document, data, points, answers = plane
    document = json.loads(json.dumps(document))

    def gini(rows):
        share = answers[rows].mean()
        return rows.sum() * 2 * share * (1 - share)

    best, column, cut = min(
        (gini(points[:, j] <= c) + gini(points[:, j] > c), j, float(c))
        for j in (0, 1)
        for c in np.unique(points[:, j])[:-1]
    )
    root = document["nodes"][0]
    assert best > root["impurity"] + 1
    left = points[:, column] <= cut
    counts = [[int((side & (answers == k)).sum()) for k in (False, True)] for side in (left, ~left)]
    heavier = {"missing": "left" if 2 * left.sum() >= ROWS else "right", "missing_seen": False}
    root |= {"impurity": best, "impurity_bound": best,
             "split": {"kind": "threshold", "feature": "xy"[column], "threshold": cut} | heavier}  # fmt: skip
    document["nodes"] = [root, *({"id": i + 1, "counts": c, "class": "ab"[c[1] > c[0]]} for i, c in enumerate(counts))]
    document.pop("training_rows", None)
    document["metrics"] = {}
    correct = sum(max(c) for c in counts)
    document["certificate"] |= {"correct": correct, "objective": correct / ROWS}
    found = of("splits", findings(document, data, tmp_path))
    assert (found.verdict, "a line has" in found.detail) == ("refuted", True), found
