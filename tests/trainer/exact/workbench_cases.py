"""Cases and oracles of `test_workbench.py` that other tests use, too."""

from __future__ import annotations

import numpy as np

from tests.trainer.oracles.workbench import (
    cost,
    kept,
    shapes,
)

INFINITE = 10**9


def random_wishes(rng, problem, questions):
    """Return one to five constraints, which may contradict each other or use splits outside the encoding."""
    between = [0.25, 0.5, 1.25, 1.5, 2.25, 2.5, 3.5]
    names = problem.table.names
    classes = problem.labels.classes
    texts = []
    for _ in range(int(rng.integers(1, 6))):
        place = rng.choice(["root", "root", "y", "n", "yn", "ny", "nn"])
        verb = rng.choice(["ask", "ask", "any", "held", "forbid", "avoid", "leaf", "depth"])
        column = int(rng.integers(len(names)))
        if verb == "ask" and questions.encoded:
            wish = questions.wish(int(rng.integers(questions.encoded)))
            if not wish.endswith("inf"):  # the column has one bucket only, without a threshold
                texts.append(f"ask {place} {wish}")
        elif verb == "held" and problem.table.columns[column].schema.categories:
            texts.append(f"ask {place} {names[column]} in {rng.choice(['a', 'b', 'a|b'])}")
        elif verb == "held":
            some = problem.table.columns[column].missing.any()
            side = rng.choice(["", " empty yes", " empty no"]) if some else ""
            texts.append(f"ask {place} {names[column]} <= {rng.choice(between)}{side}")
        elif verb == "any":
            some = problem.table.columns[column].missing.any() and rng.random() < 0.5
            texts.append(f"ask {place} {names[column]}{' is empty' if some else ''}")
        elif verb in ("forbid", "avoid"):
            texts.append(f"{verb} {place} {names[column]}")
        elif verb == "leaf":
            texts.append(f"leaf {place} {rng.choice(['', *classes])}".strip())
        elif verb == "depth":
            texts.append(f"depth {place} {rng.integers(3)}")
    return texts


class Brute:
    """All trees of a problem, including the fixed splits of constraints."""

    def __init__(self, problem, bench, wishes, depth, min_leaf=1):
        q = bench.space.questions
        self.problem = problem
        self.bench = bench
        self.answers = np.array([q.answers(k) for k in range(len(q.splits))]).reshape(len(q.splits), len(problem.table))
        self.columns = q.columns
        self.held = {}
        for w in wishes:
            if w.item.verb == "ask":
                self.held.setdefault(w.place, set()).update(k for k in w.item.questions if k >= q.encoded)
        # A held split may occur at several places. Each place has its own list, in which a split counts once.
        self.common = q.encoded
        # splits for the other category of a column with two categories; they are permitted anywhere
        self.mirrors = tuple(q.mirrors.values())
        self.y = problem.y
        self.w = problem.row_weights
        self.penalty = problem.leaf_penalty * problem.n
        everywhere = np.ones(len(self.y), bool)
        self.trees = list(_shapes(self, everywhere, "", depth, min_leaf))

    def best(self, wishes):
        """Return the least cost under the constraints, or INFINITE."""
        spoken = [_plain(w) for w in wishes]
        costs = [self.cost(t, spoken) for t in self.trees if kept(t, spoken, self.columns)]
        return min(costs, default=INFINITE)

    def cost(self, tree, spoken):
        classes = self.problem.n_classes
        return cost(tree, spoken, self.answers, self.y, self.w, classes, self.penalty)


def _shapes(brute, rows, place, depth, min_leaf):
    answers = brute.answers
    held = brute.held

    class Held(dict):
        def values(self):
            return [range(len(answers) - brute.common)]

        def get(self, place, default=()):
            return [*brute.mirrors, *(q for q in super().get(place, default) if q not in brute.mirrors)]

    return shapes(answers, Held(held), rows, place, depth, min_leaf, brute.w)


def _plain(wish):
    i = wish.item
    return (
        i.verb,
        i.place,
        (i.questions or None) if i.verb == "ask" else None,
        i.column,
        i.number if i.verb == "leaf" and i.number >= 0 else None,
        i.number if i.verb == "depth" else None,
    )


def check_mirrors(want, got, questions):
    """Compare price lists. They omit mirrored questions if these cost the same as the other one."""
    left_out = {m: q for q, m in questions.mirrors.items() if m not in got and m in want}
    assert all(want[m] == want[q] for m, q in left_out.items())
    assert got == {q: price for q, price in want.items() if q not in left_out}
