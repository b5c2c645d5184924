"""Report columns whose units, words or spellings changed since the training.

Callers with all rows in memory use `report_forms`. `predict_file`, which reads in pieces, feeds a `FormWatch`, and then
reads the file again for `count_changes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from trainer.data.changed_form import MIN_PART_SHARE, ChangedForm, WatchedColumn, propose_factor, propose_words
from trainer.data.reader import UNKNOWN_CODE, outside_words
from trainer.dtypes import BoolArray, FloatArray
from trainer.table import ColumnKind, ColumnSchema, UnknownPolicy
from trainer.tree.nodes import Tree
from trainer.tree.numbers import schema_number

FEWEST_ROWS = 20  # in a call with fewer rows, columns are not judged
EXAMPLES = 3  # number of unknown categories that a warning names
RANGE_MARGIN = 0.25  # share of the width of the training range; a number further outside gets a warning
ANSWERED_NO = "Every question about it is answered with no."

WordCounts = Mapping[str, Mapping[str, int]]  # for each column, the number of cells with each unknown word


@dataclass(frozen=True, kw_only=True)
class FormReport:
    """Proposed readings that fit the training better, and by column the cells with another spelling of a category."""

    proposals: tuple[ChangedForm, ...] = ()
    respelled: Mapping[str, int] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """The report in sentences."""
        return (
            *(entry.sentence for entry in self.proposals),
            *(respelled_words(*entry) for entry in self.respelled.items()),
        )


def respelled_words(column: str, cells: int) -> str:
    """Return a sentence on the `cells` of a column that have another spelling of a category."""
    have = "1 cell has" if cells == 1 else f"{cells:,} cells have"
    return f"Column '{column}': {have} another spelling of a category and {'counts' if cells == 1 else 'count'} as it."


def outside_notes(tree: Tree, matrix: FloatArray) -> list[str]:
    """Return a sentence per used column with cells of `matrix`, float64 (n, columns), outside its training range."""
    cells = zip(tree.used_columns, tree.outside(matrix).sum(axis=0).tolist(), strict=True)
    return [outside_words(tree.schema[j], n) for j, n in cells if n]


def unknown_cells_words(column: str, words: Mapping[str, int], cells: int) -> str:
    """Return a sentence on the unknown categories among the `cells` of a column, with examples."""
    examples = ", ".join(repr(word[:40]) for word in list(words)[:EXAMPLES])
    strange = sum(words.values())
    return (
        f"Column '{column}': {strange} of {cells} cells have a category that training did not have, such as {examples}."
    )


def warning_sentences(
    tree: Tree, schema: Sequence[ColumnSchema], matrix: FloatArray, unknown: WordCounts, report: FormReport
) -> list[str]:
    """Return the warnings for a caller in Python, at most one per column.

    Only columns that the tree asks get one. A column gets a warning for unknown categories, unless `schema` says 'branch', or for a changed form. A
    used binary column also gets one for numbers other than 0 and 1. Any other used column also gets one for
    numbers far outside its training range. Numbers just outside give no warning, because each fold of a
    cross-validation has some.
    """
    proposals = {column.column: column for column in report.proposals}
    sentences = []
    for j, column in enumerate(schema):
        proposal = proposals.get(column.name)
        if j not in tree.used_columns:
            continue
        if column.name not in unknown:
            if proposal is not None:
                sentences.append(proposal.sentence)
            else:
                sentences += _strange_numbers(tree.schema[j], matrix[:, j])
        elif column.unknown is not UnknownPolicy.BRANCH:
            text = f"{unknown_cells_words(column.name, unknown[column.name], len(matrix))} {ANSWERED_NO}"
            sentences.append(text if proposal is None else f"{text} {proposal.guess}")
    return sentences


def _strange_numbers(column: ColumnSchema, values: FloatArray) -> list[str]:
    if column.kind is ColumnKind.BINARY:
        return _other_than_binary(column.name, values)
    return _far_outside(column, values) if column.kind is ColumnKind.NUMERIC and column.range is not None else []


def _far_outside(column: ColumnSchema, values: FloatArray) -> list[str]:
    assert column.range is not None
    low, high = column.range
    values = np.asarray(values, np.float64)
    beyond = np.fmax(low - values, values - high)  # NaN for an empty cell
    if column.special:
        beyond[np.isin(values, column.special)] = np.nan
    if not (beyond > RANGE_MARGIN * (high - low)).any():
        return []
    farthest = schema_number(column, float(values[np.nanargmax(beyond)]))
    return [f"{outside_words(column, int((beyond > 0).sum())).rstrip('.')}; the farthest is {farthest}."]


def _other_than_binary(column: str, values: FloatArray) -> list[str]:
    strange = values[~np.isnan(values) & ~np.isin(values, (0.0, 1.0))]
    if not len(strange):
        return []
    have = "1 value is" if len(strange) == 1 else f"{len(strange):,} of {len(values):,} values are"
    return [f"Column '{column}': {have} neither 0 nor 1, such as {strange[0]:.10g}; they are compared as numbers."]


def report_forms(
    tree: Tree,
    matrix: FloatArray,
    unknown: WordCounts,
    reread: Callable[[tuple[ColumnSchema, ...]], FloatArray] | None = None,
    respelled: Mapping[str, int] | None = None,
) -> FormReport:
    """Report the changed forms in the rows of one call.

    Parameters
    ----------
    tree : Tree
        The predicting tree; its columns have their training range.
    matrix : array of shape (n, columns)
        The rows as the prediction kernel reads them, of any numeric type.
    unknown : mapping from str to mapping from str to int
        By column, the number of cells with each unknown word.
    reread : callable, optional
        Reads the same rows under another schema. It is called if words are proposed for categories; None: no column has categories.
    respelled : mapping from str to int, optional
        By column the cells with another spelling of a category.

    Returns
    -------
    FormReport
        Empty for fewer than 20 rows.
    """
    if len(matrix) < FEWEST_ROWS:
        return FormReport()
    proposals: tuple[ChangedForm, ...] = ()
    if unknown or _many_outside(tree, matrix):
        watch = FormWatch(tree)
        watch.add(matrix, unknown)
        proposals = watch.proposals()
    if proposals:
        renamed = reread(renamed_schema(tree.schema, proposals)) if reread and _has_words(proposals) else matrix
        answered = np.array(~np.isnan(matrix[:, list(tree.refused_columns)]).any(axis=1), bool)
        proposals = count_changes(tree, proposals, [Reread(matrix, answered, renamed)])
    return FormReport(proposals=proposals, respelled=dict(respelled or {}))


class FormWatch:
    """Gather evidence of changed forms in the columns that a tree uses, piece by piece."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.watched = {j: WatchedColumn() for j in tree.used_columns}

    def add(self, matrix: FloatArray, unknown: WordCounts) -> None:
        """Add rows and the unknown words in them."""
        for j, watched in self.watched.items():
            column = self.tree.schema[j]
            cells = matrix[:, j]
            if column.kind is ColumnKind.CATEGORICAL:
                present = ~np.isnan(cells) & (cells != column.missing_code)
                watched.add_words(unknown.get(column.name, {}), int(present.sum()))
            else:
                watched.add_numbers(np.asarray(cells, np.float64))

    def proposals(self) -> tuple[ChangedForm, ...]:
        """Return the readings of columns that fit the training better."""
        forms = []
        for j, watched in self.watched.items():
            column = self.tree.schema[j]
            if column.kind is ColumnKind.CATEGORICAL:
                forms.append(propose_words(column.name, watched.words, watched.cells, column.categories))
            elif column.kind is ColumnKind.NUMERIC and column.range is not None and watched.numbers:
                forms.append(
                    propose_factor(column.name, np.concatenate(watched.numbers), *column.range, codes=column.special)
                )
        return tuple(column for column in forms if column is not None)


class Reread(NamedTuple):
    """Rows as the kernel reads them, whether each gets an answer, and the same rows read with `renamed_schema`."""

    matrix: FloatArray
    answered: BoolArray
    renamed: FloatArray


def count_changes(tree: Tree, proposals: Sequence[ChangedForm], pieces: Iterable[Reread]) -> tuple[ChangedForm, ...]:
    """Return the proposals with the number of answers that each alone would change, and the number of answers."""
    places = {proposal.name: j for j, proposal in enumerate(tree.schema)}
    changed = Counter[str]()
    rows = 0
    for matrix, answered, renamed in pieces:
        labels = tree.labels[tree.apply(matrix)]
        rows += int(answered.sum())
        for proposal in proposals:
            j = places[proposal.column]
            other = matrix.astype(np.float64)  # a matrix of integers cannot hold converted numbers
            cells = other[:, j]
            if proposal.words:
                other[:, j] = np.where(cells == UNKNOWN_CODE, renamed[:, j], cells)
            else:
                other[:, j] = proposal.reread(cells, tree.schema[j].special)
            changed[proposal.column] += int((answered & (tree.labels[tree.apply(other)] != labels)).sum())
    return tuple(replace(proposal, changed=changed[proposal.column], rows=rows) for proposal in proposals)


def renamed_schema(schema: Sequence[ColumnSchema], proposals: Sequence[ChangedForm]) -> tuple[ColumnSchema, ...]:
    """Return the columns with each category replaced by the word that may represent it in the rows."""
    by_column = {column.column: {name: word for word, name in column.words.items()} for column in proposals}
    return tuple(
        replace(column, categories=tuple(by_column.get(column.name, {}).get(name, name) for name in column.categories))
        for column in schema
    )


def _many_outside(tree: Tree, matrix: FloatArray) -> bool:
    """Return whether at least a tenth of the numbers of a column may lie outside of its training range.

    Otherwise no factor is proposed. Ordinary calls end here, within a twentieth of the time of a full examination.
    """
    used = ((j, tree.schema[j]) for j in tree.used_columns)
    ranged = [(j, column.range) for j, column in used if column.kind is ColumnKind.NUMERIC and column.range is not None]
    if not ranged:
        return False
    cells = matrix[:, [j for j, _ in ranged]]
    low, high = np.array([ends for _, ends in ranged]).T
    inside = ((cells >= low) & (cells <= high)).sum(axis=0)
    if any(tree.schema[j].special for j, _ in ranged):
        return True  # special codes may look like values outside the range; only the full examination excludes them
    if not (inside <= (1 - MIN_PART_SHARE) * len(cells)).any():
        return False
    # empty cells are neither inside nor outside the range
    outside = ((cells < low) | (cells > high)).sum(axis=0)
    return bool(((outside >= MIN_PART_SHARE * (inside + outside)) & (outside > 0)).any())


def _has_words(proposals: Sequence[ChangedForm]) -> bool:
    return any(proposal.words for proposal in proposals)
