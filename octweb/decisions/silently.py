"""Add the silent answers of challengers to the records of decisions."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from octweb.decisions.adding import EntryDraft
from octweb.registry.document.model_files import model_file
from octweb.registry.hooks import challenger_of
from octweb.registry.models import TreeModel
from octweb.registry.prediction.silent import NO_ANSWER, SilentTree
from trainer.dtypes import FloatArray

log = logging.getLogger(__name__)


class RecordedRows(NamedTuple):
    """Drafts of the rows of a frame, with the cells that the served tree tests, float64 (n, columns)."""

    model: uuid.UUID
    sha256: bytes
    drafts: list[EntryDraft]
    cells: FloatArray


class _Challenger(NamedTuple):
    """A challenger of a served file, and the places of its columns among those that the served tree tests."""

    tree: SilentTree
    places: np.ndarray
    sha256: str
    since: int


def add_silent_answers(frames: Iterable[RecordedRows]) -> None:
    """Add the member `challenger` to the payloads of rows whose model has a challenger.

    Its value is a list of [SHA-256 of the challenger's file, leaf, class as the served tree numbers it]. Leaf and class
    are null if the challenger has no answer. Rows from before the challenge, and models that test too few columns, get
    no such member.
    """
    by_model: dict[tuple[uuid.UUID, bytes], list[RecordedRows]] = {}
    for frame in frames:
        if not frame.sha256:
            continue
        by_model.setdefault((frame.model, frame.sha256), []).append(frame)
    for (model, sha256), parts in by_model.items():
        try:
            challenger = _challenger(model, sha256)
            if challenger is not None:
                _add(challenger, parts)
        except Exception:  # an unreadable challenger must not stop the records
            log.exception("the challenger of %s did not answer", model)


def _challenger(pk: uuid.UUID, sha256: bytes) -> _Challenger | None:
    """Return the challenger of a model, or None. The records of the model must hold all columns that it tests."""
    # without the document, because most models have no challenger, and the collector asks each second
    model = TreeModel.objects.filter(pk=pk, sha256=sha256.hex()).defer("document").first()
    named = None if model is None else challenger_of(model)
    if model is None or named is None:
        return None
    served = model_file(model)
    silent = SilentTree(served, model_file(named.challenger))
    if not silent.reads_tested_columns:
        return None
    place = {column: i for i, column in enumerate(served.tree.used_columns)}
    places = np.array([place[int(column)] for column in silent.columns], np.intp)
    return _Challenger(silent, places, named.challenger.sha256, named.since)


def _add(challenger: _Challenger, parts: list[RecordedRows]) -> None:
    parts = [part for part in parts if part.drafts and part.drafts[0].at >= challenger.since]
    if not parts:
        return
    cells = np.concatenate([part.cells for part in parts])
    leaves = challenger.tree.leaves(cells[:, challenger.places])
    classes = challenger.tree.classes_of(leaves).tolist()
    drafts = [draft for part in parts for draft in part.drafts]
    for draft, leaf, label in zip(drafts, leaves.tolist(), classes, strict=True):
        answer: list[Any] = [None, None] if leaf == NO_ANSWER else [leaf, label]
        draft.payload["challenger"] = [[challenger.sha256, *answer]]
