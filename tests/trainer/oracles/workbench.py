"""Oracle of the workbench: constraints and good trees by enumeration from the definitions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table


def random_table(seed: int, *, max_rows: int = 12, weights: bool = True) -> Problem:
    """Return a problem of few rows in numeric, binary and categorical columns.

    It may have ties, equal and constant columns, weights, and one class only.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, max_rows + 1))
    classes = int(rng.integers(1, 4)) if seed % 9 == 0 else int(rng.integers(2, 4))
    columns = []
    questions = 0
    for j in range(int(rng.integers(1, 5))):
        kind = rng.choice(["binary", "numeric", "categorical", "copy", "constant"], p=[0.45, 0.25, 0.15, 0.1, 0.05])
        levels: tuple[str, ...] = ()
        if kind == "copy" and columns:
            kind = str(columns[-1].kind)
            values = columns[-1].values.copy()
            levels = columns[-1].schema.categories
        elif kind == "numeric" and questions <= 3:
            values = rng.integers(0, 3, n).astype(float)
        elif kind == "categorical" and questions <= 3:
            levels = ("a", "b", "c d") if seed % 2 else ("a", "b")
            values = rng.integers(0, len(levels), n).astype(float)
        elif kind == "constant":
            kind = "numeric"
            values = np.full(n, 2.0)
        else:
            kind = "binary"
            values = rng.integers(0, 2, n).astype(float)
        questions += 1 if kind == "binary" else 2 if kind == "numeric" else 3
        if questions > 6:
            break
        schema = ColumnSchema(name=f"c {j}", kind=ColumnKind(kind), categories=levels)
        columns.append(Column(schema=schema, cells=values))
    y = rng.integers(0, classes, n).astype(np.int32)
    return Problem(
        table=Table(columns=tuple(columns), row_numbers=np.arange(1, n + 1)),
        labels=Labels(name="class", classes=("no", "yes", "may be")[:classes], codes=y),
        leaf_penalty=[Fraction(0), Fraction(1, 20), Fraction(1, 100), Fraction(1, 7)][rng.integers(4)],
        weights=rng.integers(1, 5, n) if weights and rng.random() < 0.4 else None,
        scheme=Scheme.ALL_THRESHOLDS,
    )


def empty_table(seed: int, *, max_rows: int = 9) -> Problem:
    """Return a problem of few rows with empty cells in numeric columns.

    Thresholds are at all values, or there are few bins.
    """
    rng = np.random.default_rng(seed)
    problem = coarse_table(seed, max_rows=max_rows)
    columns = []
    for column in problem.table.columns:
        if column.kind is ColumnKind.CATEGORICAL:
            columns.append(column)
            continue
        values = column.values % 3
        values[rng.random(len(values)) < rng.uniform(0.1, 0.6)] = np.nan
        columns.append(Column(schema=replace(column.schema, missing=MissingPolicy.LEARN), cells=values))
    scheme = [Scheme.ALL_THRESHOLDS, problem.scheme][rng.integers(2)]
    return replace(problem, table=replace(problem.table, columns=tuple(columns)), scheme=scheme)


def coarse_table(seed: int, *, max_rows: int = 9) -> Problem:
    """Return few rows with more values than the encoding has thresholds, so that constraints can separate more."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, max_rows + 1))
    classes = int(rng.integers(2, 4))
    columns = []
    for j in range(int(rng.integers(1, 3))):
        values = rng.integers(0, 5, n).astype(float)
        columns.append(Column(schema=ColumnSchema(name=f"c {j}", kind=ColumnKind.NUMERIC), cells=values))
    if rng.random() < 0.5:
        levels = ("a", "b") if rng.random() < 0.5 else ("a", "b", "c d")
        schema = ColumnSchema(name="kind", kind=ColumnKind.CATEGORICAL, categories=levels)
        columns.append(Column(schema=schema, cells=rng.integers(0, len(levels), n).astype(float)))
    return Problem(
        table=Table(columns=tuple(columns), row_numbers=np.arange(1, n + 1)),
        labels=Labels(
            name="class", classes=("no", "yes", "may be")[:classes], codes=rng.integers(0, classes, n).astype(np.int32)
        ),
        leaf_penalty=[Fraction(0), Fraction(1, 20), Fraction(1, 100), Fraction(1, 7)][rng.integers(4)],
        weights=rng.integers(1, 5, n) if rng.random() < 0.3 else None,
        scheme=[Scheme.QUANTILE_THRESHOLDS, Scheme.QUANTILE_BUCKETS][rng.integers(2)],
        bins=int(rng.integers(2, 4)),
    )


def shapes(answers, held, rows, place, height, min_weight, w):
    """Yield every tree as None or (question, yes, no).

    `answers` is boolean (questions, rows), and `held[place]` are the further questions of a place.
    """
    yield None
    if not height:
        return
    common = len(answers) - sum(len(v) for v in held.values())
    for q in [*range(common), *held.get(place, ())]:
        yes = rows & answers[q]
        no = rows & ~answers[q]
        if not yes.any() or not no.any() or min(w[yes].sum(), w[no].sum()) < min_weight:
            continue
        left = list(shapes(answers, held, yes, place + "y", height - 1, min_weight, w))
        for other in shapes(answers, held, no, place + "n", height - 1, min_weight, w):
            for one in left:
                yield q, one, other


def places(shape, place=""):
    """Yield every place of a tree with its subtree."""
    yield place, shape
    if shape is not None:
        yield from places(shape[1], place + "y")
        yield from places(shape[2], place + "n")


def height(shape):
    return 0 if shape is None else 1 + max(height(shape[1]), height(shape[2]))


def kept(shape, wishes, columns):
    """Return whether a tree meets constraints (verb, place, split or some or None, column, label or None, number).

    For 'together', the number is the set of questions that separate the categories.
    """
    at = dict(places(shape))
    for verb, place, question, column, _, number in wishes:
        part = at.get(place, "absent")
        if verb == "ask" and (
            part in (None, "absent")
            or columns[part[0]] != column
            or (question is not None and part[0] not in (question if isinstance(question, tuple) else (question,)))
        ):
            return False
        if part == "absent":
            continue
        if verb == "forbid" and any(s is not None and columns[s[0]] == column for _, s in places(part)):
            return False
        if verb == "together" and any(s is not None and s[0] in number for _, s in places(part)):
            return False
        if verb == "avoid" and part is not None and columns[part[0]] == column:
            return False
        if verb == "leaf" and part is not None:
            return False
        if verb == "depth" and height(part) > number:
            return False
    labels = {}
    for verb, place, _, _, label, _ in wishes:
        if verb == "leaf" and place in at and label is not None and labels.setdefault(place, label) != label:
            return False
    return True


def cost(shape, wishes, answers, y, w, classes, penalty):
    """Return errors + penalty * leaves, with the classes that constraints fix and majority classes elsewhere."""
    named = {place: label for verb, place, _, _, label, _ in wishes if verb == "leaf" and label is not None}

    def visit(part, rows, place):
        if part is None:
            counts = [int(w[rows & (y == k)].sum()) for k in range(classes)]
            right = counts[named[place]] if place in named else max(counts)
            return sum(counts) - right + penalty
        return visit(part[1], rows & answers[part[0]], place + "y") + visit(
            part[2], rows & ~answers[part[0]], place + "n"
        )

    return visit(shape, np.ones(len(y), bool), "")


def plain(tree):
    """Return a labelled tree with its questions and sides, but without the classes of its leaves."""
    return (tree[0], plain(tree[1]), plain(tree[2])) if isinstance(tree, tuple) else None


def column_prices(brute, tree, place, spoken):
    """Return the price of the cheapest split of each column at the place, below the splits of `tree`.

    `spoken` are the constraints except those that fix the split or leaf at the place itself.
    """
    path = [dict(places(tree))[place[:k]][0] for k in range(len(place))]
    spoken = spoken + [("ask", place[:k], q, brute.columns[q], None, None) for k, q in enumerate(path)]
    trees = [(t, brute.cost(t, spoken)) for t in brute.trees if kept(t, spoken, brute.columns)]
    least = min(cost for _, cost in trees)
    found = {}
    for t, price in trees:
        part = dict(places(t)).get(place)
        if part is not None:
            column = brute.columns[part[0]]
            found[column] = min(found.get(column, price - least), price - least)
    return found


def check_stopped_lists(fresh, warm, texts, tree, place, want):
    """Check price lists that are stopped early or late, of new workbenches and of one that has searched before.

    A price that is called proved must be that of enumeration. Every other price must be a lower bound.
    """
    for patience in (0, 0, 1, 2, 3, 5, 8, 20, 60):
        bench = warm if patience == 0 and warm is not None else fresh()
        warm = None
        left = iter(range(patience))
        got = list(bench.price_list(place or "root", texts, tree=tree, stop=lambda left=left: next(left, None) is None))
        columns = [bench.space.questions.columns[line.question] for line in got]
        assert len(set(columns)) == len(columns)
        assert set(columns) >= set(want)
        for column, line in zip(columns, got, strict=True):
            if line.proved:
                assert line.price == want[column]
            elif column in want:
                assert line.price <= want[column]


def is_smallest_conflict(conflict, best, infinite) -> bool:
    """Return whether no tree meets all constraints, although some tree does if any one of them is dropped."""
    without = [[w for w in conflict if w is not left] for left in conflict]
    return best(conflict) == infinite and all(best(rest) < infinite for rest in without)
