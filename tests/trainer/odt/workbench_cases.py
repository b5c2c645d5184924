"""Cases and oracles of `test_workbench.py` that other tests use, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.trainer.exact.workbench_cases import INFINITE, Brute, _plain
from tests.trainer.oracles.workbench import (
    kept,
    places,
)
from trainer.data.problem import Problem
from trainer.families.odt.editing.bench import SubsetWorkbench
from trainer.families.odt.topology import parse
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table

NAMES = ("a", "b", "c d", "e")
EMPTY_CELLS = ("is empty", "<= 0.25", "<= 1 empty yes", "<= 1 empty no", "<= 1.25 empty yes", "<= 0 empty no")


def table(columns: list[tuple[np.ndarray, tuple[str, ...]]]) -> Table:
    """Return a table of columns of codes with their categories, of numbers where there are none."""
    made = [
        Column(
            schema=ColumnSchema(
                name=f"c {j}", kind=ColumnKind.CATEGORICAL if levels else ColumnKind.NUMERIC, categories=levels
            ),
            cells=np.asarray(values, float),
        )
        for j, (values, levels) in enumerate(columns)
    ]
    return Table(columns=tuple(made), row_numbers=np.arange(1, len(columns[0][0]) + 1))


def random_problem(rng: np.random.Generator, *, deep: bool) -> Problem:
    """Return few rows of columns with two to four categories or numbers.

    There are ties, weights, two or three classes, and categories that never occur.
    """
    n = int(rng.integers(5, 10))
    room = 6 if deep else 16
    columns: list[tuple[np.ndarray, tuple[str, ...]]] = []
    for _ in range(int(rng.integers(1, 4))):
        size = int(rng.integers(2, 5))
        numeric = rng.random() < 0.25
        room -= size - 1 if numeric else (1 << size) - 2
        if room < 0:
            break
        columns.append(
            (rng.integers(0, size, n), () if numeric else NAMES[: size + int(rng.random() < 0.2 and size < 4)])
        )
    columns = columns or [(rng.integers(0, 2, n), NAMES[:2])]
    classes = int(rng.integers(1, 4)) if rng.random() < 0.2 else 2
    return Problem(
        table=table(columns),
        labels=Labels(
            name="class", classes=("no", "yes", "may be")[:classes], codes=rng.integers(0, classes, n).astype(np.int32)
        ),
        weights=rng.integers(0, 4, n) + (np.arange(n) == 0) if rng.random() < 0.4 else None,
    )


def with_empty_cells(rng, problem: Problem) -> Problem:
    """Return the problem with one or more numeric columns that are partly empty, often all but one value."""
    columns = []
    for column in problem.table.columns:
        if len(columns) == 0 or column.kind is ColumnKind.NUMERIC:
            values = rng.integers(0, 3, len(column.values)).astype(float)
            values[rng.random(len(values)) < rng.uniform(0.1, 0.7)] = np.nan
            schema = ColumnSchema(name=column.name, kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN)
            column = Column(schema=schema, cells=values)
        columns.append(column)
    return replace(problem, table=replace(problem.table, columns=tuple(columns)))


def random_wishes(rng, problem, questions, card):
    """Return one to five constraints, which may contradict each other or exceed the bins or `max_card`."""
    texts = []
    for _ in range(int(rng.integers(1, 6))):
        place = rng.choice(["root", "root", "root", "y", "y", "n", "n", "yn", "ny", "nn"])
        column = problem.table.columns[int(rng.integers(len(problem.table.columns)))]
        name = column.name
        levels = column.schema.categories
        verb = rng.choice(
            ["ask", "any", "held", "forbid", "avoid", "avoid", "together", "together", "together", "leaf", "depth"]
        )
        if verb == "ask" and questions.encoded:
            texts.append(f"ask {place} {questions.wish(int(rng.integers(questions.encoded)))}")
        elif verb == "held" and levels:
            some = rng.permutation(len(levels))[: int(rng.integers(1, len(levels)))]
            texts.append(f"ask {place} {name} in {'|'.join(levels[k] for k in some)}")
        elif verb == "held" and column.missing.any():
            texts.append(f"ask {place} {name} {rng.choice(EMPTY_CELLS)}")
        elif verb == "held":
            texts.append(f"ask {place} {name} <= {rng.choice([0.25, 1.25])}")
        elif verb == "together" and not card:
            present = [levels[k] for k in np.unique(column.values).astype(int)] if levels else []
            if len(present) > 1:
                some = rng.permutation(len(present))[: int(rng.integers(2, len(present) + 1))]
                texts.append(f"together {place} {name} in {'|'.join(present[k] for k in some)}")
        elif verb in ("any", "forbid", "avoid"):
            texts.append(f"{'ask' if verb == 'any' else verb} {place} {name}")
        elif verb == "leaf":
            texts.append(f"leaf {place} {rng.choice(['', *problem.labels.classes])}".strip())
        elif verb == "depth":
            texts.append(f"depth {place} {rng.integers(3)}")
    return texts


class Enumerated(Brute):
    """All trees whose subsets `card` allows. For 'together', the words of the splits are searched."""

    def __init__(self, problem, bench, wishes, depth, card):
        super().__init__(problem, bench, wishes, depth)
        if card:
            self.trees = [
                t for t in self.trees if all(self.fits(part[0], card) for _, part in places(t) if part is not None)
            ]

    def fits(self, question, card):
        split = self.bench.space.questions.splits[question]
        if question >= self.common or not hasattr(split, "codes"):
            return True
        size = len(np.unique(self.problem.table.columns[split.feature].values))
        return min(len(split.codes), size - len(split.codes)) <= card

    def spoken(self, wish):
        if wish.item.verb != "together":
            return _plain(wish)
        named = set(wish.text.split(" in ", 1)[1].split("|"))
        questions = self.bench.space.questions
        schema = self.problem.table.schema
        parted = frozenset(
            q
            for q, split in enumerate(questions.splits)
            if split.used == (wish.item.column,)
            and hasattr(split, "codes")
            and 0 < len(named & set(split.names(schema))) < len(named)
        )
        return "together", wish.place, None, wish.item.column, None, parted

    def best(self, wishes):
        spoken = [self.spoken(w) for w in wishes]
        costs = [self.cost(t, spoken) for t in self.trees if kept(t, spoken, self.columns)]
        return min(costs, default=INFINITE)


UNEVEN = ("depth-2.5", "[.[..]]", "[[[..].].]", "[[..][[..].]]", "[[[..][..]].]", "[.[[..][..]]]")


def laid_out(tree, shape):
    """Return whether a tree fits into a topology, in either orientation and with idle splits above any part."""
    if tree is None or shape is None:
        return tree is None
    _, yes, no = tree
    a = shape.left
    b = shape.right
    straight = laid_out(yes, a) and laid_out(no, b)
    turned = laid_out(yes, b) and laid_out(no, a)
    return straight or turned or laid_out(tree, a) or laid_out(tree, b)


def uneven(seed):
    """Return a small problem, a topology with unequal sides, constraints, and all trees."""
    rng = np.random.default_rng(seed)
    shape = parse(UNEVEN[seed % len(UNEVEN)])
    problem = random_problem(rng, deep=shape.depth > 2)
    if seed % 3 == 2:
        problem = with_empty_cells(rng, problem)
    bench = SubsetWorkbench(problem, shape=shape, bins=4)
    texts = random_wishes(rng, problem, bench.space.questions, 0)[: 1 + seed % 3]
    wishes = bench.wishes(texts)
    brute = Enumerated(problem, bench, wishes, shape.depth, 0)
    brute.trees = [t for t in brute.trees if laid_out(t, shape)]
    return problem, bench, texts, wishes, brute, rng
