"""Cases and oracles of `test_good_trees_costs.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.trainer.oracles.good_trees import columns_of, weigh_rows_that_meet
from tests.trainer.oracles.workbench import shapes


class CostedTrees:
    """All trees over a session's questions with their costs. Each leaf has the answer that costs least."""

    def __init__(self, session, costs, depth, least, price):
        questions = session.bench.space.questions
        table = session.problem.table
        self.columns = questions.columns
        self.answers = session.problem.binary.bits(table).astype(bool).T
        assert len(self.answers) == questions.encoded
        self.costs = costs
        self.weights = session.problem.row_weights
        everywhere = np.ones(len(table), bool)
        self.trees = list(shapes(self.answers, {}, everywhere, "", depth, least, self.weights))
        self.total = [self._cost(t, everywhere, price) for t in self.trees]

    def _cost(self, tree, rows, price):
        if tree is None:
            return min(self.costs[rows].sum(axis=0)) + price
        yes = self.answers[tree[0]]
        return self._cost(tree[1], rows & yes, price) + self._cost(tree[2], rows & ~yes, price)

    def said(self, tree, asked=None):
        """Return the answer for each row. `asked` are the answers to the questions that rows show, if not their own."""
        shown = self.answers if asked is None else asked
        out = np.zeros(len(self.costs), int)

        def visit(part, own, seen):
            if part is None:
                sums = self.costs[own].sum(axis=0)
                out[seen] = min(range(len(sums)), key=lambda k: (sums[k], k))
                return
            visit(part[1], own & self.answers[part[0]], seen & shown[part[0]])
            visit(part[2], own & ~self.answers[part[0]], seen & ~shown[part[0]])

        everywhere = np.ones(len(out), bool)
        visit(tree, everywhere, everywhere)
        return out

    def asked(self, tree):
        return columns_of(tree, self.columns)

    def met(self, tree, column):
        return weigh_rows_that_meet(tree, column, self.columns, self.answers, self.weights)

    def loss(self, tree, column):
        """Return the mean cost that shuffling a column adds."""
        n = int(self.weights.sum())
        mine = np.array(self.columns) == column
        own = sum(self.costs[np.arange(len(self.costs)), self.said(tree)])
        total = Fraction(0)
        for donor, weight in enumerate(self.weights.tolist()):
            shown = self.answers.copy()
            shown[mine] = self.answers[mine][:, [donor]]
            total += weight * sum(self.costs[np.arange(len(self.costs)), self.said(tree, shown)])
        return total / n - own
