"""Compare two trees on the same rows, and test the difference.

Rows on which neither tree was trained represent new rows. Rows on which both were trained are counted separately. Rows
on which only one was trained are ignored, because they favour it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import DatasetRows, rows_of
from octweb.registry.models import TreeModel
from octweb.registry.page.rowsets import exact_text
from trainer.data.formats.spreadsheet import text_line
from trainer.evaluate.intervals import PairedDifference, difference, mcnemar, paired_difference

UNSEEN = "unseen"
TRAINING = "training"
LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class PairedRows:
    """Counts over rows of one kind: all, different answers, and rows that one or both trees classify correctly.

    The counts are numbers of rows. `p`, `interval` and `points` respect groups or weights, if the rows have them.
    """

    name: str
    n: int
    different: int
    both: int
    first: int
    second: int
    p: float
    interval: tuple[float, float] | None
    points: float  # accuracy of the first model minus that of the second
    over: str = ""  # "groups" or "weights" if `p` and `interval` take them into account

    @property
    def neither(self) -> int:
        return self.n - self.both - self.first - self.second


@dataclass(frozen=True, kw_only=True)
class TreePair:
    """Comparison of two trees on one data set. `parts` is empty if they share no readable rows."""

    first: TreeModel
    second: TreeModel
    parts: tuple[PairedRows, ...]

    @property
    def sentence(self) -> str:
        """The result in words. It names a winner only if the difference is more than chance explains."""
        return _describe_pair(self)


@dataclass(frozen=True, kw_only=True)
class _SharedRows:
    """Rows that both trees can predict: positions, kinds, actual classes and both predictions."""

    rows: DatasetRows
    at: np.ndarray
    kind: np.ndarray
    codes: np.ndarray
    first: np.ndarray
    second: np.ndarray


def compare_pair(first: TreeModel, second: TreeModel) -> TreePair:
    """Compare two models on their common rows. The caller checks that the user may see the rows of both."""
    shared = _match_rows(first, second)
    parts = [] if shared is None else [_compare_rows(shared, name) for name in (UNSEEN, TRAINING)]
    return TreePair(first=first, second=second, parts=tuple(p for p in parts if p.n))


def disagreement_lines(first: TreeModel, second: TreeModel) -> Iterator[str]:
    """Yield the rows with different answers as CSV: line, row, kind, classes, which tree is correct, and every column.

    The caller checks that the user may see the rows of both models.
    """
    shared = _match_rows(first, second)
    file = model_file(first)
    names = [c.name for c in file.tree.schema]
    titles = [f"{m.family.name} (version {m.version})" for m in (first, second)]
    yield text_line(["line", "row", "rows", "actual", *titles, "right", *names])
    if shared is None:
        return
    classes = file.tree.classes
    rows = shared.rows
    for i in np.flatnonzero(shared.first != shared.second).tolist():
        at = int(shared.at[i])
        right = [t for t, a in zip(titles, (shared.first[i], shared.second[i]), strict=True) if a == shared.codes[i]]
        line = int(rows.lines[at]) if rows.lines is not None else ""
        cells = [exact_text(file.tree.schema[j], float(rows.matrix[at, j])) for j in range(len(names))]
        answers = [classes[shared.codes[i]], classes[shared.first[i]], classes[shared.second[i]]]
        yield text_line(
            [line, int(rows.numbers[at]), shared.kind[i], *answers, right[0] if right else "neither", *cells]
        )


def _match_rows(first: TreeModel, second: TreeModel) -> _SharedRows | None:
    a = model_file(first)
    b = model_file(second)
    if first.dataset_id is None or first.dataset_id != second.dataset_id or a.target != b.target:
        return None
    rows = rows_of(first)
    other = rows_of(second)
    if rows is None or other is None:
        return None
    _, at, other_at = np.intersect1d(rows.numbers, other.numbers, return_indices=True)
    times_seen = np.isin(at, rows.training).astype(int) + np.isin(other_at, other.training).astype(int)
    kind = np.array([UNSEEN, "seen by one", TRAINING], dtype=object)[times_seen]
    code_of = {label: k for k, label in enumerate(a.tree.classes)}
    of_second = np.array([code_of.get(label, -1) for label in b.tree.classes])
    return _SharedRows(
        rows=rows,
        at=at,
        kind=kind,
        codes=rows.codes[at],
        first=a.tree.predict(rows.matrix[at]),
        second=of_second[b.tree.predict(other.matrix[other_at])],
    )


def _compare_rows(shared: _SharedRows, name: str) -> PairedRows:
    selected = shared.kind == name
    first, second = (answers[selected] == shared.codes[selected] for answers in (shared.first, shared.second))
    alone = int((first & ~second).sum())
    other = int((second & ~first).sum())
    n = int(selected.sum())
    weights, groups = (
        None if column is None else column[shared.at[selected]] for column in (shared.rows.weights, shared.rows.groups)
    )
    by_unit = None if weights is None and groups is None else paired_difference(first, second, weights, groups)
    if by_unit is None:
        points = (alone - other) / max(1, n)
        by_unit = PairedDifference(points, difference(alone, other, n), mcnemar(alone, other))
        groups = weights = None
    return PairedRows(
        name=name,
        n=n,
        different=int((shared.first[selected] != shared.second[selected]).sum()),
        both=int((first & second).sum()),
        first=alone,
        second=other,
        p=by_unit.p,
        interval=by_unit.interval,
        points=by_unit.points,
        over="groups" if groups is not None else "weights" * (weights is not None),
    )


def _describe_pair(trees: TreePair) -> str:
    part = next((p for p in trees.parts if p.name == UNSEEN), None)
    if part is None or part.interval is None:
        return "There are no rows that neither tree has seen, so nothing can be said about new rows."
    if part.different == 0:
        return f"The two trees give the same answer for all {part.n:,} rows that neither has seen."
    better, worse = (trees.first, trees.second) if part.points >= 0 else (trees.second, trees.first)
    points = 100 * abs(part.points)
    low, high = sorted(100 * end if part.points >= 0 else -100 * end for end in part.interval)
    span = f"95\u202f% interval {low:.1f} to {high:.1f}".replace("-", "−")
    where = f"On {part.n:,} rows that neither has seen"
    test_name = f"t test over {part.over}" if part.over else "McNemar's test"
    test = f"({test_name}, p = {part.p:.2g})"
    if part.points == 0:
        return f"{where}, both trees are right equally often ({span}) {test}: neither can be called better."
    ahead = f"{where}, the accuracy of {_name(better)} is {points:.1f} points above that of {_name(worse)} ({span})"
    if part.p > LEVEL:
        return f"{ahead}. That is within chance {test}: neither can be called better."
    return f"{ahead}. That is more than chance explains {test}."


def _name(model: TreeModel) -> str:
    return f"{model.title} (version {model.version})"
