"""Cases and oracles of `test_odt_goal.py` that other tests use, too."""

from __future__ import annotations

from tests.trainer.odt.odt_cases import partitions, random_problem


def reachable(problem, shape, card):
    """Return the Pareto front of correct positives and negatives of all trees of the topology (class 1 positive)."""
    tests = partitions(problem, card)
    known = {}

    def best(pairs):
        out = []
        top = -1
        for tp, tn in sorted(pairs, reverse=True):
            if tn > top:
                out.append((tp, tn))
                top = tn
        return out

    def pairs(shape, rows):
        if shape is None:
            positive = sum(problem.y[i] for i in rows)
            return best([(positive, 0), (0, len(rows) - positive)])
        key = (shape, rows)
        if key not in known:
            known[key] = best(
                {
                    (a + c, b + d)
                    for test in tests
                    for a, b in pairs(shape.left, rows & test)
                    for c, d in pairs(shape.right, rows - test)
                }
            )
        return known[key]

    return sorted(pairs(shape, frozenset(range(len(problem.y)))))


def two_classes(seed):
    problem = random_problem(seed)
    return problem if problem.n_classes == 2 and len(set(problem.y)) == 2 else two_classes(seed + 10_000)


def reached(problem, tree):
    labels = tree.predict(problem.matrix)
    return int(((labels == 1) & (problem.y == 1)).sum()), int(((labels == 0) & (problem.y == 0)).sum())
