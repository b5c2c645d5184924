"""Count rows by class between the possible thresholds of each node.

A page can then move a threshold without a search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.tree.nodes import Tree
from trainer.tree.numbers import decimal_text
from trainer.tree.splits import goes_left
from trainer.workbench.requests import WorkbenchSession

MOST_VALUES = 500  # limit on the stops of a slider; with more values, only some are stops, but the counts stay exact


def spreads(session: WorkbenchSession, tree: Tree) -> dict[str, dict[str, Any]]:
    """Return, for each node with a threshold split, the possible thresholds and the training rows by class between them.

    The keys are places, such as "root" or "yn". The last entry of `counts` are the rows above every threshold; `empty`
    are the rows with an empty cell.
    """
    problem = session.problem
    spread_by_place: dict[str, dict[str, Any]] = {}
    stack = [(0, "root", np.arange(len(problem.matrix)))]
    while stack:
        number, place, rows = stack.pop()
        split = tree.nodes[number].split
        if split is None:
            continue
        path = "" if place == "root" else place
        yes = goes_left(split, problem.matrix[rows])
        stack += [(tree.nodes[number].left, path + "y", rows[yes]), (tree.nodes[number].right, path + "n", rows[~yes])]
        name = tree.schema[split.used[0]].name
        empty = np.isnan(problem.matrix[rows, split.used[0]])
        values = problem.matrix[rows[~empty], split.used[0]].astype(np.float64)
        plain = split.cut is not None and split.wish(tree.schema).startswith(f"{name} <= ")
        if not plain or len(np.unique(values)) < 2:
            continue
        stops = np.unique(values)[:-1]
        stops = stops[np.unique(np.linspace(0, len(stops) - 1, min(len(stops), MOST_VALUES)).astype(int))]
        counts = np.zeros((len(stops) + 1, len(tree.classes)), np.int64)
        present = rows[~empty]
        np.add.at(counts, (np.searchsorted(stops, values), problem.y[present]), 1)
        without = np.zeros(len(tree.classes), np.int64)
        np.add.at(without, problem.y[rows[empty]], 1)
        spread_by_place[place] = {
            "column": name,
            "values": [decimal_text(v) for v in stops.tolist()],
            "counts": counts.tolist(),
            "empty": without.tolist(),
        }
    return spread_by_place
