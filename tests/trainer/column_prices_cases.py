"""Cases and oracles of `test_column_prices.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.trainer.goal_cases import ALL_THRESHOLDS
from trainer.registry import get
from trainer.solver_common.problem_setup import pose


def least_cost(answers, columns, prices, costs, weights, depth, price, limits):
    """Return the least cost of all trees over `columns` of answers (rows, features). A row pays for a column once."""
    known = {}
    least = limits.get("min_leaf", 1)

    def best(rows, height, paid, leaves):
        leaves = min(leaves, 2**height)
        key = rows.tobytes(), height, paid, leaves
        if key not in known:
            found = min(costs[rows].sum(axis=0)) + price
            size = int(weights[rows].sum())
            for q in range(answers.shape[1]) if leaves > 1 else ():
                yes = answers[rows, q]
                if min(weights[rows[yes]].sum(), weights[rows[~yes]].sum()) < least:
                    continue
                column = int(columns[q])
                charge = 0 if column in paid else prices.get(column, Fraction(0)) * size
                inner = paid | {column}
                for count in range(1, leaves):
                    sides = (
                        best(rows[yes], height - 1, inner, count),
                        best(rows[~yes], height - 1, inner, leaves - count),
                    )
                    found = min(found, charge + sum(sides))
            known[key] = found
        return known[key]

    return best(np.arange(len(costs)), depth, frozenset(), limits.get("max_leaves", 64))


def cost_of(tree, table, prices, costs, weights, price):
    """Return the cost of a tree, row by row."""
    matrix = table.matrix()
    total = price * tree.n_leaves
    leaf = tree.apply(matrix)
    for i, path in enumerate(tree.decision_path(matrix).tolist()):
        asked = {j for v in path if v >= 0 and tree.nodes[v].split for j in tree.nodes[v].split.used}
        total += sum((prices.get(j, Fraction(0)) for j in asked), Fraction(0)) * int(weights[i])
        total += costs[i, tree.labels[leaf[i]]]
    return total


def random_prices(rng, columns):
    """Return prices by column. Some are zero or equal, and some columns have none."""
    texts = rng.choice(["", "0", "0.1", "0.1", "0.25", "0.03", "1.5"], len(columns))
    return {j: str(text) for j, text in enumerate(texts) if text}


def priced_text(prices, names):
    return "; ".join(f"{names[j]}={text}" for j, text in prices.items())


def questions_of(table, labels, weights):
    encoding = pose(table, labels, get("exact").settings(ALL_THRESHOLDS), weights=weights).binary
    return encoding.bits(table).astype(bool), np.array([f.column for f in encoding.features])
