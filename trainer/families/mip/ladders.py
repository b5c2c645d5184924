"""Order the thresholds of columns as ladders, with ranks of rows.

Numeric formulations choose a column and a threshold. The rungs of a ladder are the features x > c of one column with
rising c. A row has the value 1 in as many of them as its rank. It goes left at rung h if and only if its rank is at most h.
A feature of another kind is a ladder of one rung.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.data.encoding import Encoding, Test
from trainer.dtypes import COUNT, CountArray
from trainer.families.mip.instance import Instance


@dataclass(frozen=True, eq=False)
class Ladders:
    """`rungs[j]` are the features of ladder j by increasing threshold; `ranks` int64 (n, ladders)."""

    rungs: tuple[CountArray, ...]
    ranks: CountArray

    def place(self, f: int) -> tuple[int, int]:
        """Return the ladder and the rung of a feature."""
        for j, rungs in enumerate(self.rungs):
            positions = np.flatnonzero(rungs == f)
            if len(positions):
                return j, int(positions[0])
        raise ValueError(f"feature {f} is on no ladder")


def make_ladders(instance: Instance, groups: list[list[int]]) -> Ladders:
    """Make ladders from lists of features with decreasing sets of ones. Raises ValueError if they are not nested."""
    ranks = np.zeros((instance.n, len(groups)), COUNT)
    for j, rungs in enumerate(groups):
        ones = instance.X[:, rungs].astype(np.int8)
        if (np.diff(ones, axis=1) > 0).any():
            raise ValueError("the ones of a threshold must be among those of every smaller one")
        ranks[:, j] = ones.sum(axis=1)
    return Ladders(rungs=tuple(np.array(rungs, COUNT) for rungs in groups), ranks=ranks)


def column_ladders(instance: Instance, encoding: Encoding) -> Ladders:
    """Make a ladder for the thresholds of each numeric column, and one for every other feature.

    A column with empty cells has two: the thresholds that send them left, and those that send them right.
    """
    columns: dict[tuple[int, float | None], list[int]] = {}
    alone: list[list[int]] = []
    for f, source in enumerate(instance.features.tolist()):
        feature = encoding.features[source]
        if feature.test is Test.ABOVE:
            columns.setdefault((feature.column, feature.empty), []).append(f)
        else:
            alone.append([f])
    rising = [sorted(fs, key=lambda f: encoding.features[int(instance.features[f])].low) for fs in columns.values()]
    return make_ladders(instance, [*rising, *alone])
