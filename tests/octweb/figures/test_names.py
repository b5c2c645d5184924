"""Shortened names stay different from each other."""

from __future__ import annotations

import random

from tests.seeds import seeds
from trainer.tree.render.names import short_names


def test_common_prefix_and_suffix_are_removed():
    names = [f"share_of_households_with_cars_region_{j:02d}_in_percent_of_all" for j in range(60)]
    found = short_names(names)
    assert len(set(found)) == 60
    assert all(f"region_{j:02d}" in name for j, name in enumerate(found))
    assert all(len(name) <= 24 for name in found)


def test_short_names_stay_as_they_are():
    assert short_names(["age", "income", "x" * 22]) == ["age", "income", "x" * 22]
    assert short_names([]) == []


def test_a_long_name_alone_loses_its_middle():
    (name,) = short_names(["a column that nobody could ever call a short one"])
    assert name.startswith("a column")
    assert name.endswith("short one")
    assert len(name) == 22


def test_names_that_begin_differently_are_cut_at_their_end():
    names = ["agrees with the question as asked", "does not agree with the question"]
    assert short_names(names, 16) == ["agrees with the…", "does not agree…"]


@seeds(200)
def test_different_names_stay_different(seed):
    rng = random.Random(seed)
    parts = ["region", "share", "of", "a", "b", "xxxxxxxxxxxxxxxxxxxx", "14", "24", "é", "_", " ", "-"]
    names = list({"".join(rng.choice(parts) + rng.choice("_ -") for _ in range(rng.randint(1, 12))) for _ in range(12)})
    found = short_names(names)
    assert len(set(found)) == len(names)
