"""Cases and oracles of `test_costs_of_wishes.py` that other tests use, too."""

from __future__ import annotations

import numpy as np

from tests.trainer.costs_cases import text_of
from trainer.training.run import TrainRequest
from trainer.workbench.requests import WorkbenchSession

# With these settings, each method tries all thresholds of a small table.
MANY_BINS = {"exact": {"binarise": "all-thresholds"}, "exact-numeric": {}, "odt": {"bins": 60}}


def least_with_wishes(answers, costs, depth, price, *, root=None, banned=(), leaf=None, least=1):
    """Return the least cost of all trees over binary `answers` (rows, features), or None under infeasible constraints.

    The root has one of the questions `root`, and no node has one of `banned`. `leaf` is the place of a leaf and its
    answer.
    """

    def best(rows, place, height):
        own = costs[rows].sum(axis=0)
        if leaf is not None and place == leaf[0]:
            return own[leaf[1]] + price
        alone = (place or root is None) and (leaf is None or not leaf[0].startswith(place))
        found = [min(own) + price] if alone else []
        for q in range(answers.shape[1]) if height else ():
            yes = answers[rows, q]
            asks = q not in banned and (place or root is None or q in root)
            if asks and min(yes.sum(), (~yes).sum()) >= least:
                parts = best(rows[yes], place + "y", height - 1), best(rows[~yes], place + "n", height - 1)
                found += [] if None in parts else [sum(parts)]
        return min(found, default=None)

    return best(np.arange(len(costs)), "", depth)


def thresholds_of(table):
    """Return the answers to "column <= value?", bool (rows, questions), and the column of each."""
    cuts = [(j, c.values <= cut) for j, c in enumerate(table.columns) for cut in np.unique(c.values)[:-1]]
    return np.column_stack([yes for _, yes in cuts]), [j for j, _ in cuts]


def session_of(method, case, **parameters):
    table, labels, weights, costs, _ = case
    asked = {"costs": text_of(costs), "cost_unit": "EUR", "time_limit": 60, **parameters}
    return WorkbenchSession(TrainRequest(table=table, labels=labels, method=method, weights=weights, parameters=asked))
