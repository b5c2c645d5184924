"""Cases and oracles of `test_good_trees.py` that other tests use, too."""

from __future__ import annotations

from collections import Counter


def check_levels(levels, trees, columns):
    """Compare the counts of splits at the root and below with an enumeration."""
    first = Counter(columns[t[0]] for t in trees if t is not None)
    assert {column: found.trees for column, found in levels.items()} == first
    for s, side in ((1, "yes"), (2, "no")):
        then = Counter((columns[t[0]], None if t[s] is None else columns[t[s][0]]) for t in trees if t is not None)
        assert {(a, b): n for a, found in levels.items() for b, n in getattr(found, side).items()} == then
