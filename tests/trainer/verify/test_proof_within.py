"""Proofs within wishes, recalls, limits of columns and monotone columns, beside brute force over all trees."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tests.seeds import seeds
from tests.trainer.verify.test_proofs import accepted
from trainer.verify.proof_space import Space
from trainer.verify.wishes import Wish

FAR = 1 << 60


class Brute:
    """All trees of a space, one by one: their cost, errors by class, leaves, columns; no bound, no table of results."""

    def __init__(self, space: Space, unit: int, leaf: int) -> None:
        self.space, self.unit, self.leaf = space, unit, leaf

    def trees(self, rows, height, wishes, banned, path_columns, span):
        """(cost, errors of each class, leaves, columns) of each tree that keeps the wishes and all that binds on a path."""
        s = self.space
        here = [w for w in wishes if not w.place]
        banned = banned | {w.column for w in here if w.verb == "forbid"}
        height = min([height, *(w.height for w in here if w.verb == "depth")])
        asks = any(w.verb == "ask" for w in wishes)
        named = {w.label for w in here if w.verb == "leaf"}
        found = []
        sizes = np.bincount(s.labels[rows], s.weights[rows], s.classes).astype(int)
        for k in range(span[0], span[1] + 1):
            if not asks and (not named - {-1} or named - {-1} == {k}):
                wrong = [0 if c == k else int(sizes[c]) for c in range(s.classes)]
                found.append((self.leaf + self.unit * sum(wrong), tuple(wrong), 1, frozenset()))
        if named or not height:
            return found
        for q in range(s.X.shape[1]):
            column, own = int(s.column_of[q]), [w for w in here if w.verb == "ask"]
            if column in banned or not s.allowed[q] or any(s.apart is not None and s.apart[q, p] for p in path_columns):
                continue
            if any(w.column != column or w.number not in (-1, q) for w in own):
                continue
            if q >= s.encoded and not any(w.number == q for w in own):
                continue
            yes = rows & s.X[:, q]
            no = rows & ~s.X[:, q]
            if min(s.weights[yes].sum(), s.weights[no].sum()) < max(1, s.min_leaf):
                continue
            letters = ("n", "y") if s.left[q] else ("y", "n")
            parts = [tuple(replace(w, place=w.place[1:]) for w in wishes if w.place[:1] == x) for x in letters]
            rise = 0 if s.rising is None else int(s.rising[q])
            spans = [(span, span)]
            if rise:
                spans = [((span[0], k), (k, span[1])) for k in range(span[0], span[1] + 1)]
                spans = spans if rise > 0 else [(b, a) for a, b in spans]
            for a, b in spans:
                inner = (*path_columns, q)
                sides = [
                    self.trees(side, height - 1, part, banned, inner, own)
                    for side, part, own in ((no, parts[0], a), (yes, parts[1], b))
                ]
                found += [
                    (x[0] + y[0], tuple(map(sum, zip(x[1], y[1], strict=True))), x[2] + y[2], x[3] | y[3] | {column})
                    for x, y in itertools.product(*sides)
                ]
        return list(set(found))

    def least(self) -> int:
        s = self.space
        every = self.trees(np.ones(len(s.X), bool), s.depth, s.wishes, frozenset(), (), (0, s.classes - 1))
        kept = [
            t[0]
            for t in every
            if all(t[1][k] <= most for k, most in s.recalls)
            and (s.max_leaves is None or t[2] <= s.max_leaves)
            and (s.max_columns is None or len(t[3]) <= s.max_columns)
        ]
        return min(kept, default=FAR)


def some_wishes(rng: np.random.Generator, m: int, held: int, column: np.ndarray, classes: int) -> tuple[Wish, ...]:
    found = [
        Wish("", "ask", str(rng.choice(["", "y", "n"])), int(column[q]), ("<=", q), number=q)
        for q in range(m - held, m)
    ]
    for _ in range(int(rng.integers(0, 3))):
        place, verb = str(rng.choice(["", "y", "n", "yn"])), str(rng.choice(["ask", "forbid", "leaf", "depth"]))
        if verb == "leaf":
            found.append(Wish("", "leaf", place or "n", label=int(rng.integers(-1, classes))))
        elif verb == "depth":
            found.append(Wish("", "depth", place, height=int(rng.integers(0, 3))))
        else:
            found.append(Wish("", verb, place, int(column[rng.integers(m)])))
    return tuple(found)


def table(seed: int, depth: int = 2) -> Space:
    """A random table with any mixture of restrictions."""
    rng = np.random.default_rng(seed)
    m, n, classes = int(rng.integers(3, 5)), int(rng.integers(6, 13)), int(rng.integers(2, 4))
    X = rng.integers(0, 2, (n, m)) > 0
    X[:, 1] = X[:, 0] if seed % 5 == 0 else X[:, 1]
    y = ((X.sum(axis=1) + (rng.random(n) < 0.3)) % classes).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 4 == 0 else np.ones(n, np.int64)
    column = np.sort(rng.integers(0, 3, m))
    kind = seed % 7
    held = int(rng.integers(0, 2)) if kind in (0, 1, 2) else 0
    apart = (column[:, None] == 0) & (column[None, :] == 1)
    apart = apart | apart.T
    recalls = ()
    if kind in (1, 3, 4):
        sizes = np.bincount(y, weights, classes).astype(int)
        recalls = tuple((k, int(sizes[k] * rng.random() * 0.7)) for k in range(int(rng.integers(1, 3))))
    return Space(
        "questions", X, y, weights, classes, depth, Fraction(int(rng.integers(0, 3)), int(rng.integers(1, 4))),
        1 + (seed % 6 == 0), int(rng.integers(2, 4)) if kind in (2, 4) else None, np.ones(m, bool),
        apart if kind in (0, 3) and apart.any() else None, "rows", columns=column, yes_left=rng.random(m) < 0.5, held=held,
        wishes=some_wishes(rng, m, held, column, classes) if kind in (0, 1, 2) else (), recalls=recalls,
        max_columns=int(rng.integers(0, 3)) if kind == 5 else None,
        rising=np.where(column == 1, int(rng.choice([-1, 1])), 0) if kind in (6, 4) else None,
    )  # fmt: skip


def lines(space: Space, steps: list[dict[str, Any]], goal: int) -> list[dict[str, Any]]:
    return [{"format": "octweb-proof", "version": 2, "rows": "rows", "scale": 1, "goal": goal}, *steps]


@seeds(210)
def test_one_step_shows_the_optimum_within_restrictions_and_nothing_more(seed):
    space = table(seed)
    unit, leaf = space.penalty.denominator, space.penalty.numerator
    best = Brute(space, unit, leaf).least()
    if space.max_columns is not None:
        space = replace(space, max_columns=None)
        best = Brute(space, unit, leaf).least()
    if best >= FAR:
        best = 10_000
        step = {"path": [], "height": space.depth, "bound": best, "by": "within"}
        assert accepted(space, lines(space, [step], best)) is not None
        return
    step = {"path": [], "height": space.depth, "bound": best, "by": "within"}
    assert accepted(space, lines(space, [step], best)) == Fraction(best, unit)
    assert accepted(space, lines(space, [step | {"bound": best + 1}], best + 1)) is None
    assert accepted(space, lines(space, [step], best + 1)) is None
    for by in ("floor", "count", "split"):  # what holds without the restrictions holds with them
        for bound in (best, best + 1):
            shown = accepted(space, lines(space, [step | {"by": by, "bound": bound}], bound))
            assert shown is None or shown <= Fraction(best, unit)
