"""Count exactly how many good trees predict each class for each row.

The inside count is the number of subtrees of a key at a node. The outside count is the number of good trees that
contain one given
subtree of this key there; it is computed from the root down. A leaf is in as many good trees as its outside count.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from trainer.editing.space import SearchStopped
from trainer.families.exact.rashomon.count import MOST_INT64, CountedTrees
from trainer.families.exact.rashomon.listing import Lister, SidePair

Outside = dict[int, int]  # for each key, the number of good trees that contain one given subtree of this key
Layer = dict[int, tuple[CountedTrees, np.ndarray, Outside]]


class Votes:
    """A count of the predictions of the good trees, row by row."""

    def __init__(self, lister: Lister) -> None:
        self.lister = lister
        self.space = lister.space

    def of(self, entry: CountedTrees, rows: np.ndarray, levels: list[tuple[int, int, int]]) -> np.ndarray:
        """Count the trees of the keys in `levels` (cost, key, count) by row and predicted class.

        Returns int64 or Python integers (rows, classes). Raises SearchStopped.
        """
        large = sum(n for _, _, n in levels) >= MOST_INT64
        self.votes = np.zeros((len(rows), self.space.instance.n_classes), object if large else np.int64)
        layer: Layer = {id(entry): (entry, rows, {key: 1 for _, key, _ in levels})}
        while layer:
            below: Layer = {}
            for part, part_rows, outside in layer.values():
                self._expand(part, part_rows, outside, below)
            layer = below
        return self.votes

    def _expand(self, entry: CountedTrees, rows: np.ndarray, outside: Outside, below: Layer) -> None:
        """Distribute the outside counts of a subproblem over the choices at its root."""
        if self.space.stopped():
            raise SearchStopped
        choices = self.lister.choices(entry, rows)
        leaf = 0
        small: dict[tuple[int, int], dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
        deep: dict[int, list[tuple[SidePair, int]]] = defaultdict(list)
        for key, number in outside.items():
            for choice in choices.get(key, ()):
                if choice is None:
                    leaf += number
                elif choice.flat:
                    _spread(choice, number, small)
                else:
                    deep[choice.question].append((choice, number))
        if leaf:
            self._leaf(rows, leaf)
        for (question, side), parts in small.items():
            self._parts(self.space.split(rows, question)[side], parts)
        for question, pairs in deep.items():
            self._deep(self.space.split(rows, question), pairs, below)

    def _deep(self, sides: tuple[np.ndarray, np.ndarray], pairs: list[tuple[SidePair, int]], below: Layer) -> None:
        counts = [
            dict(zip(e.keys.tolist(), e.counts.tolist(), strict=True))
            for e in (pair[0] for pair in pairs[0][0].entries)
        ]
        for pair, number in pairs:
            entries = pair.entries
            for s in (0, 1):
                (entry, key), (_, other) = entries[s], entries[1 - s]
                outside = below.setdefault(id(entry), (entry, sides[s], {}))[2]
                outside[key] = outside.get(key, 0) + number * counts[1 - s][other]

    def _parts(self, rows: np.ndarray, parts: dict[int | None, int]) -> None:
        """Add the subtrees of a child of a lowest split: leaves, or splits with two leaves."""
        for question, number in parts.items():
            for leaf_rows in (rows,) if question is None else self.space.split(rows, question):
                self._leaf(leaf_rows, number)

    def _leaf(self, rows: np.ndarray, number: int) -> None:
        self.votes[rows, int(self.space.counts(rows).argmax())] += number


def _spread(pair: SidePair, number: int, small: dict[tuple[int, int], dict[int | None, int]]) -> None:
    sides = pair.shapes
    for s in (0, 1):
        times = number * len(sides[1 - s])
        for shape in sides[s]:
            small[pair.question, s][None if shape is None else shape[0]] += times
