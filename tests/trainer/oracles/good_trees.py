"""Oracle of good trees: all trees of a small problem, enumerated from the definitions."""

from __future__ import annotations

import numpy as np

from tests.trainer.oracles.workbench import cost, random_table, shapes
from trainer.families.exact.workbench import Workbench


class Every:
    """All trees of a problem with their costs, in units of 1/Q rows."""

    def __init__(self, problem, bench, depth, min_leaf):
        q = bench.space.questions
        self.columns = q.columns
        self.problem = problem
        self.answers = (
            np.array([q.answers(k) for k in range(q.encoded)]).reshape(q.encoded, len(problem.table)).astype(bool)
        )
        self.y = problem.y
        self.w = problem.row_weights
        everywhere = np.ones(len(self.y), bool)
        self.trees = list(shapes(self.answers, {}, everywhere, "", depth, min_leaf, self.w))
        penalty = problem.leaf_penalty * problem.n
        self.costs = [
            cost(t, [], self.answers, self.y, self.w, problem.n_classes, penalty) * penalty.denominator
            for t in self.trees
        ]

    def said(self, tree):
        out = np.empty(len(self.y), int)

        def visit(part, rows):
            if part is None:
                out[rows] = max(range(self.problem.n_classes), key=lambda k: (self.w[rows & (self.y == k)].sum(), -k))
                return
            visit(part[1], rows & self.answers[part[0]])
            visit(part[2], rows & ~self.answers[part[0]])

        visit(tree, np.ones(len(self.y), bool))
        return out

    def parted(self, tree):
        """Return the partition of the rows by a tree, which does not depend on how its splits are written."""

        def visit(part, rows):
            if part is None:
                return None
            sides = ((part[1], rows & self.answers[part[0]]), (part[2], rows & ~self.answers[part[0]]))
            return frozenset((side.tobytes(), visit(below, side)) for below, side in sides)

        return visit(tree, np.ones(len(self.y), bool))

    def idle(self, tree):
        def visit(part, rows):
            if part is None:
                return False
            yes = rows & self.answers[part[0]]
            no = rows & ~self.answers[part[0]]
            if part[1] is None and part[2] is None:
                tops = [
                    max(range(self.problem.n_classes), key=lambda k: (self.w[r & (self.y == k)].sum(), -k))
                    for r in (yes, no)
                ]
                return tops[0] == tops[1]
            return visit(part[1], yes) or visit(part[2], no)

        return visit(tree, np.ones(len(self.y), bool))

    def asked(self, tree):
        return columns_of(tree, self.columns)

    def met(self, tree, column):
        return weigh_rows_that_meet(tree, column, self.columns, self.answers, self.w)


def columns_of(tree, columns):
    """Return the columns on which a tree splits. `columns` are those of the questions."""
    return set() if tree is None else {columns[tree[0]]} | columns_of(tree[1], columns) | columns_of(tree[2], columns)


def weigh_rows_that_meet(tree, column, columns, answers, weights):
    """Return the weight of the rows on whose path the tree splits on a column.

    `answers` are the sides of the rows by question, bool (n,).
    """

    def visit(part, rows):
        if part is None:
            return 0
        if columns[part[0]] == column:
            return int(weights[rows].sum())
        return visit(part[1], rows & answers[part[0]]) + visit(part[2], rows & ~answers[part[0]])

    return visit(tree, np.ones(len(weights), bool))


def leaves(tree):
    return 1 if tree is None else leaves(tree[1]) + leaves(tree[2])


def instance(seed, table=random_table):
    rng = np.random.default_rng(seed + 1000)
    problem = table(seed)
    depth = int(rng.integers(0, 4)) if seed % 5 == 0 else int(rng.integers(2, 4))
    min_leaf = 2 if seed % 6 == 0 else 1
    bench = Workbench(problem, depth=depth, min_leaf=min_leaf)
    return problem, bench, Every(problem, bench, depth, min_leaf), rng
