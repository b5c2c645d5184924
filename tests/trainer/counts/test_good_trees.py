"""Good trees from counts, within filters and listed, are those of the rows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.counts.tables import KEY, TARGET, counted, random_rows, write_rows
from trainer.counts.good_trees import count_good_trees
from trainer.data.reader import load
from trainer.errors import ParameterError
from trainer.training.run import TrainRequest
from trainer.workbench.good_trees import GoodRequest
from trainer.workbench.requests import WorkbenchSession

LISTED = 60


def filters_of(rng: np.random.Generator, seed: int) -> dict[str, Any]:
    """Return random filters, often none."""
    found: dict[str, Any] = {}
    if seed % 3 == 1:
        found["must"] = [str(name) for name in rng.choice(["a", "b", "c", "colour"], 1 + seed % 2, replace=False)]
    if seed % 4 == 1:
        found["without"] = ["colour"]
    if seed % 5 < 2:
        found["max_leaves"] = int(rng.integers(1, 6))
    return found


def compare(folder: Path, seed: int) -> tuple[int, int]:
    """Compare counts and lists from counts with those from rows; return the number of trees, and of listed ones."""
    rng = np.random.default_rng([seed, 17])
    path = write_rows(random_rows(rng, classes=2 + seed % 2, empty=seed % 2 == 1), folder / "rows.csv")
    settings: dict[str, Any] = {"depth": 1 + seed % 3, "leaf_penalty": float(rng.choice([0, 0.01, 0.03]))}
    if seed % 4 == 2:
        settings["min_leaf"] = 3
    filters = filters_of(rng, seed)
    table, labels, _ = load(path, target=TARGET, ignore=[KEY])
    session = WorkbenchSession(
        TrainRequest(table=table, labels=labels, method="exact", parameters=settings | {"bins": 4})
    )
    request = GoodRequest(slack_rows="1.5", listed=LISTED, disputed=0, **filters)
    expected = session.good_trees(request, session.monitor(), None)
    counts = counted(path, folder / "counts", depth=settings["depth"])
    found = count_good_trees(counts, settings, slack_rows=Fraction("1.5"), listed=LISTED, **filters)
    assert (found.count, found.count_without_idle) == (expected["count"], expected["count_without_idle"]), seed
    assert {name: of["trees"] for name, of in found.columns.items()} == {
        name: of["trees"] for name, of in expected["columns"].items()
    }, seed
    own = [round(tree["objective"], 10) for tree in found.trees]
    assert own == [round(tree["objective"], 10) for tree in expected["trees"]], seed
    assert own == sorted(own, reverse=True)
    assert len({str(tree["nodes"]) for tree in found.trees}) == len(found.trees) == min(LISTED, found.count)
    if found.count <= LISTED:
        assert sorted(tree["leaves"] for tree in found.trees) == sorted(tree["leaves"] for tree in expected["trees"])
    return found.count, len(found.trees)


def test_chosen_good_trees_are_those_of_rows(tmp_path):
    assert any(number for number, _ in (compare(tmp_path / str(seed), seed) for seed in range(3)))


@pytest.mark.slow
def test_many_chosen_good_trees_are_those_of_rows(tmp_path, count):
    numbers = [compare(tmp_path / str(seed), seed) for seed in range(3, 3 + 12 * count)]
    assert any(listed < number for number, listed in numbers)
    assert any(number == 0 for number, _ in numbers)


def test_filters_that_counts_do_not_know_are_refused(tmp_path):
    counts = counted(write_rows(random_rows(np.random.default_rng(1)), tmp_path / "rows.csv"), tmp_path / "counts")
    for choice, name in (({"must": ["x"]}, "must"), ({"without": ["x"]}, "without"), ({"listed": -1}, "list")):
        with pytest.raises(ParameterError) as caught:
            count_good_trees(counts, {}, slack=Fraction(0), **choice)
        assert list(caught.value.errors) == [name]
