"""Let a challenger silently answer the rows of a served tree, without delaying the answer."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from octweb.core import tally
from octweb.core.tally import SECONDS_OF_DAY, Key
from octweb.registry.document.model_files import model_file
from octweb.registry.hooks import challenger_of
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import is_recorded
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.values import plain_values
from trainer.data.rows import UNKNOWN_CODE, parse_rows
from trainer.dtypes import CodeArray, FloatArray
from trainer.errors import list_names
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.file import ModelFile

log = logging.getLogger(__name__)

SILENT = "challenger"  # kind of these counts
# replaces the class if the challenger has no answer, or a value that it tests is unknown
NOT_COMPARED = "none"
SKIPPED = "skipped"  # replaces the class if too many rows are waiting
MAX_WAITING_CELLS = 4_000_000  # 32 MB in each process
NO_ANSWER = -1


class SilentTree:
    """A challenger that parses rows like the served tree, and answers in its classes.

    `columns` are the columns of the served tree's matrix that the challenger tests.
    """

    def __init__(self, served: ModelFile, challenger: ModelFile) -> None:
        self._tree = challenger.tree
        place = {column.name: j for j, column in enumerate(served.tree.schema)}
        used = self._tree.used_columns
        self.columns = np.array([place[self._tree.schema[j].name] for j in used], np.intp)
        own = [self._tree.schema[j] for j in used]
        theirs = [served.tree.schema[j] for j in self.columns]
        reading = challenger.reading
        self._codes = [_codes_of(a, b, reading) for a, b in zip(theirs, own, strict=True)]
        self._is_tested = np.isin(self.columns, served.tree.used_columns)
        self._classes = np.array([served.tree.classes.index(label) for label in self._tree.classes], np.int32)

    @property
    def reads_tested_columns(self) -> bool:
        """Whether the served tree tests all columns of the challenger, so that its records contain them."""
        return bool(self._is_tested.all())

    def answers(self, cells: FloatArray) -> CodeArray:
        """Return the class of each row, in the numbering of the served tree, int32 (n,); NO_ANSWER as in `leaves`."""
        return self.classes_of(self.leaves(cells))

    def classes_of(self, leaves: CodeArray) -> CodeArray:
        """Return the class of each leaf of the challenger, in the numbering of the served tree, int32 (n,)."""
        has_answer = leaves != NO_ANSWER
        labels = self._classes[self._tree.labels[np.where(has_answer, leaves, 0)]]
        return np.where(has_answer, labels, NO_ANSWER).astype(np.int32)

    def leaves(self, cells: FloatArray) -> CodeArray:
        """Return the leaf of the challenger for each row, int32 (n,).

        `cells`, float64 (n, len(columns)), come from the served tree's matrix. NO_ANSWER marks rows that the challenger
        does not answer. It also marks rows with an empty cell in a column that the served tree does not test, because
        callers need not send it.
        """
        tree = self._tree
        matrix = np.full((len(cells), len(tree.schema)), np.nan)
        has_answer = ~np.isnan(cells[:, ~self._is_tested]).any(axis=1)
        for k, (j, codes) in enumerate(zip(tree.used_columns, self._codes, strict=True)):
            column = cells[:, k]
            if codes is not None:
                column, is_known = codes.translate(column)
                has_answer &= is_known
            if j in tree.refused_columns:
                has_answer &= ~np.isnan(column)
            if j in tree.unknown_refused:
                has_answer &= column != UNKNOWN_CODE
            matrix[:, j] = column
        return np.where(has_answer, tree.apply(matrix), NO_ANSWER).astype(np.int32)


class _Codes(NamedTuple):
    """Category codes of the challenger by code of the served tree. `empty` replaces NaN.

    `unknown_differs` says that the challenger may know a category that the served tree does not.
    """

    by_code: FloatArray
    empty: float
    unknown_differs: bool

    def translate(self, column: FloatArray) -> tuple[FloatArray, np.ndarray]:
        """Return the challenger's codes of a column, and the mask of cells whose code is known."""
        is_empty = np.isnan(column)
        codes = np.where(is_empty, UNKNOWN_CODE, column).astype(np.intp)
        known = codes >= 0
        translated = np.where(known, self.by_code[np.where(known, codes, 0)], UNKNOWN_CODE)
        return np.where(is_empty, self.empty, translated), known | is_empty | (not self.unknown_differs)


def _codes_of(served: ColumnSchema, challenger: ColumnSchema, reading: Mapping[str, Any] | None) -> _Codes | None:
    """Return the translation of a categorical column. None for others, whose numbers are the same.

    The challenger reads the categories of the served tree like those of a call: with its own spellings and words for
    empty cells.
    """
    if challenger.kind is not ColumnKind.CATEGORICAL:
        return None
    words = plain_values(reading, [{challenger.name: word} for word in served.categories])
    by_code = parse_rows((challenger,), (), words).matrix[:, 0]
    empty = np.nan if challenger.missing_code is None else float(challenger.missing_code)
    if served.missing_code is not None:
        by_code[served.missing_code] = empty
    others = set(range(len(challenger.categories))) - set(by_code[by_code >= 0].astype(int).tolist())
    others.discard(-1 if challenger.missing_code is None else challenger.missing_code)
    column = ColumnParsing.from_json(reading).columns.get(challenger.name)
    unknown_differs = bool(others) or (column is not None and column.special)
    return _Codes(by_code if len(by_code) else np.array([UNKNOWN_CODE]), empty, unknown_differs)


def refusal_of(served: ModelFile, challenger: ModelFile) -> str:
    """Return a sentence that says why a model cannot answer the rows of a served one. "" if it can."""
    if served.target != challenger.target:
        return f"It predicts '{challenger.target}', and the served model '{served.target}'."
    if set(served.tree.classes) != set(challenger.tree.classes):
        return f"Its classes are {list_names(list(challenger.tree.classes))}; those of the served model are {list_names(list(served.tree.classes))}."
    known = {column.name: column for column in served.tree.schema}
    for j in challenger.tree.used_columns:
        column = challenger.tree.schema[j]
        other = known.get(column.name)
        if other is None:
            return f"It tests '{column.name}', a column that the served model does not have."
        if (column.kind is ColumnKind.CATEGORICAL) != (other.kind is ColumnKind.CATEGORICAL):
            return f"It reads '{column.name}' as {column.kind}, and the served model as {other.kind}."
        if column.unit and other.unit and column.unit != other.unit:
            return f"It reads '{column.name}' in {column.unit}, and the served model in {other.unit}."
    return ""


class SilentChallenger(NamedTuple):
    """Challenger of a served model: the id of its challenge, and its tree."""

    key: str
    tree: SilentTree


class RowQueue(NamedTuple):
    """Queue that passes the rows of one served model to its challenger. `api` is that of the counts."""

    model: str
    api: str
    challenger: SilentChallenger

    def put(self, matrix: FloatArray, leaves: CodeArray) -> None:
        """Store the rows of a call until the counts are written. Nothing may change the arrays any more.

        If too many rows are waiting, these are counted as skipped.
        """
        day = int(time.time()) // SECONDS_OF_DAY
        with _waiting.lock:
            is_full = _waiting.cells + matrix.size > MAX_WAITING_CELLS
            _waiting.cells += 0 if is_full else matrix.size
            _waiting.calls.append(_Call(self, day, None if is_full else matrix, leaves))


class _Call(NamedTuple):
    """The rows of a call. There is no matrix if they are skipped."""

    queue: RowQueue
    day: int
    matrix: FloatArray | None
    leaves: CodeArray


class _Waiting:
    """Calls whose rows wait for the challenger."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: deque[_Call] = deque()
        self.cells = 0

    def drain(self) -> list[_Call]:
        with self.lock:
            calls = list(self.calls)
            self.calls.clear()
            self.cells = 0
        return calls


_waiting = _Waiting()


def silent_counts() -> dict[Key, int]:
    """Answer the waiting rows. Return their counts by leaf of the served tree and class of the challenger."""
    counts: Counter[Key] = Counter()
    for call in _waiting.drain():
        queue = call.queue
        for name, number in _names_of(call).items():
            counts[Key(queue.model, queue.api, call.day, SILENT, name)] += number
    return counts


def _names_of(call: _Call) -> Counter[str]:
    key = call.queue.challenger.key
    answers = _answers_of(call)
    if answers is None:
        return Counter(count_name(key, leaf, SKIPPED) for leaf in call.leaves.tolist())
    return count_names(key, call.leaves, answers)


def _answers_of(call: _Call) -> CodeArray | None:
    tree = call.queue.challenger.tree
    if call.matrix is None:
        return None
    try:
        return tree.answers(call.matrix[:, tree.columns])
    except Exception:  # an error of a challenger must not affect the served tree's counts
        log.exception("the challenger of %s failed", call.queue.model)
        return None


def count_names(key: str, leaves: CodeArray, answers: CodeArray) -> Counter[str]:
    """Count rows by the names of their counts: challenge, leaf, and challenger's class."""
    pairs = Counter(zip(leaves.tolist(), answers.tolist(), strict=True))
    return Counter(
        {
            count_name(key, leaf, NOT_COMPARED if answer == NO_ANSWER else str(answer)): n
            for (leaf, answer), n in pairs.items()
        }
    )


def count_name(key: str, leaf: int, answer: str) -> str:
    return f"{key} {leaf} {answer}"


def silent_challenger(model: TreeModel) -> SilentChallenger | None:
    """Return the challenger of an approved model, or None. It is cached on the instance, which lives for seconds."""
    if "_silent" not in model.__dict__:
        model.__dict__["_silent"] = _read_challenger(model)
    challenger: SilentChallenger | None = model.__dict__["_silent"]
    return challenger


def _read_challenger(model: TreeModel) -> SilentChallenger | None:
    try:
        challenge = challenger_of(model)
        if challenge is None:
            return None
        return SilentChallenger(challenge.key, SilentTree(model_file(model), model_file(challenge.challenger)))
    except Exception:  # an unreadable challenger must not prevent an answer
        log.exception("the challenger of %s cannot be read", model)
        return None


def queue_of(model: TreeModel, api: str) -> RowQueue | None:
    """Return the queue of a model's rows. None without a challenger, and if the challenger works on the records."""
    challenger = silent_challenger(model)
    if challenger is None or (is_recorded(model) and challenger.tree.reads_tested_columns):
        return None
    return RowQueue(str(model.pk), api, challenger)


def _forget() -> None:
    """Drop the copied rows in a forked process, because they belong to its parent."""
    global _waiting
    _waiting = _Waiting()


os.register_at_fork(after_in_child=_forget)
tally.add_source(silent_counts)
