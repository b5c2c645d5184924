"""The values of the column that a node asks, with rows by class: what the page needs to move a threshold without a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.tree.nodes import Tree
from trainer.tree.numbers import decimal_text
from trainer.tree.splits import goes_left
from trainer.workbench.requests import WorkbenchSession

MOST_VALUES = 500  # stops of a slider; of more values every k-th is one, and the counts stay exact


def spreads(session: WorkbenchSession, tree: Tree) -> dict[str, dict[str, Any]]:
    """By place: column, possible thresholds as decimals, and for each the training rows by class above the one before it.

    The last entry of `counts` is the rows above every threshold, and `empty` the rows whose cell is empty. Nodes with another question
    than `column <= value` have none.
    """
    problem = session.problem
    records: dict[str, dict[str, Any]] = {}
    todo = [(0, "root", np.arange(len(problem.matrix)))]
    while todo:
        number, place, rows = todo.pop()
        split = tree.nodes[number].split
        if split is None:
            continue
        prefix = "" if place == "root" else place
        yes = goes_left(split, problem.matrix[rows])
        todo += [
            (tree.nodes[number].left, prefix + "y", rows[yes]),
            (tree.nodes[number].right, prefix + "n", rows[~yes]),
        ]
        name = tree.schema[split.used[0]].name
        empty = np.isnan(problem.matrix[rows, split.used[0]])
        values = problem.matrix[rows[~empty], split.used[0]]
        plain = split.cut is not None and split.wish(tree.schema).startswith(f"{name} <= ")
        if not plain or len(np.unique(values)) < 2:
            continue
        stops = np.unique(values)[:-1]
        stops = stops[np.unique(np.linspace(0, len(stops) - 1, min(len(stops), MOST_VALUES)).astype(int))]
        counts = np.zeros((len(stops) + 1, len(tree.classes)), np.int64)
        present = rows[~empty]
        np.add.at(counts, (np.searchsorted(stops, values), problem.y[present]), problem.row_weights[present])
        without = np.zeros(len(tree.classes), np.int64)
        np.add.at(without, problem.y[rows[empty]], problem.row_weights[rows[empty]])
        records[place] = {
            "column": name,
            "values": [decimal_text(v) for v in stops.tolist()],
            "counts": counts.tolist(),
            "empty": without.tolist(),
        }
    return records
