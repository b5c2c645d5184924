"""Write predictions in columns as JSON, Arrow and CSV."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from django.http import HttpResponse
from drf_orjson_renderer.renderers import ORJSONRenderer
from rest_framework.request import Request

from octweb.core.parsers import BytesParser
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import DECISION, MISSING, OUTSIDE, UNSEEN, Predictions
from octweb.registry.prediction.request_bodies import ARROW_FILE, ARROW_STREAM, CSV
from octweb.registry.prediction.retired import retired_headers
from trainer.data.reader import empty_cell_notes
from trainer.prediction.form_report import outside_notes
from trainer.prediction.output_file import CsvWriter, Piece

MAX_HEADER_CHARACTERS = 1_000  # characters of the header with notes


def column_names(classes: tuple[str, ...]) -> list[str]:
    """Return the column names of a response."""
    return ["label", *(f"probability {c}" for c in classes), "leaf"]


def columns_record(predictions: Predictions) -> dict[str, list[Any]]:
    """Return the predictions as column → values."""
    tree = predictions.tree
    leaves = predictions.leaves
    shares = tree.probabilities[leaves]
    labels = np.array(tree.classes, object)[tree.labels[leaves]]
    columns = [labels.tolist(), *(shares[:, k].tolist() for k in range(shares.shape[1])), leaves.tolist()]
    record = dict(zip(column_names(tree.classes), columns, strict=True))
    if predictions.marks:
        mark_keys = {key for mark in predictions.marks for key in mark}
        keys = [*((MISSING, UNSEEN) if MISSING in mark_keys else ()), *((OUTSIDE,) if OUTSIDE in mark_keys else ())]
        record |= {key: [mark.get(key, []) for mark in predictions.marks] for key in keys}
    if predictions.decisions:
        record[DECISION] = list(predictions.decisions)
    return record


def table_response(model: TreeModel, predictions: Predictions, media_type: str) -> HttpResponse:
    """Return a response with an Arrow stream or CSV text. Model, version and notes are in headers."""
    content = _write_arrow(predictions) if media_type == ARROW_STREAM else _write_csv(predictions)
    response = HttpResponse(content, content_type=media_type)
    response["Octweb-Model"] = model.family.name
    response["Octweb-Model-Version"] = str(model.version)
    for name, value in retired_headers(model).items():
        response[name] = value
    for name, value in notes_header(predictions).items():
        response[name] = value
    return response


def notes_header(predictions: Predictions) -> dict[str, str]:
    """Return the header with the notes, for a response whose body has no place for them. {} without notes."""
    notes = [*predictions.notes, *mark_notes(predictions)]
    return {"Octweb-Notes": _shorten_notes(notes)} if notes else {}


def _shorten_notes(notes: list[str]) -> str:
    """Return a JSON list of the notes that fit into a header. If some do not fit, the last entry counts them."""
    text = json.dumps(notes)
    count = len(notes)
    while len(text) > MAX_HEADER_CHARACTERS and count:
        count -= 1
        text = json.dumps([*notes[:count], f"and {len(notes) - count:,} more."])
    return text


def mark_notes(predictions: Predictions) -> list[str]:
    """Return notes on the numbers of unusual cells, for responses without marks in each row."""
    columns = {name for mark in predictions.marks for name in mark.get(UNSEEN, ())}
    notes = empty_cell_notes(sum(MISSING in mark for mark in predictions.marks), predictions.unseen, columns)
    return [*notes, *outside_notes(predictions.tree, predictions.matrix)]


def _write_arrow(predictions: Predictions) -> bytes:
    tree = predictions.tree
    leaves = predictions.leaves
    labels = pa.array([tree.classes[int(k)] for k in tree.labels], pa.string())
    shares = [pa.array(tree.probabilities[:, k]).take(pa.array(leaves)) for k in range(len(tree.classes))]
    more = [pa.array(predictions.decisions, pa.string())] if predictions.decisions else []
    names = [*column_names(tree.classes), *([DECISION] if more else [])]
    batch = pa.record_batch([labels.take(pa.array(leaves)), *shares, pa.array(leaves), *more], names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


class _DecisionColumn:
    """Additional column of a CSV text: the record ids."""

    fields: tuple[tuple[str, Any], ...] = ((DECISION, pa.string()),)
    piece = 0

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = list(ids)

    def of(self, matrix: Any, usable: Any) -> list[list[Any]]:
        return [self.ids]

    def notes(self) -> list[str]:
        return []


def _write_csv(predictions: Predictions) -> str:
    text = io.StringIO()
    usable = np.ones(len(predictions.leaves), bool)
    column = _DecisionColumn(predictions.decisions) if predictions.decisions else None
    ids = column.of(predictions.matrix, usable) if column else []
    CsvWriter(predictions.tree, text, more=column).write(Piece(1, predictions.leaves, usable, ids))
    return text.getvalue()


class ArrowStreamParser(BytesParser):
    media_type = ARROW_STREAM


class ArrowFileParser(BytesParser):
    media_type = ARROW_FILE


class CsvParser(BytesParser):
    media_type = CSV


class CsvRenderer(ORJSONRenderer):
    """Renderer that negotiates `Accept: text/csv`. The view writes the table, and this renders only errors, as JSON."""

    media_type = CSV
    format = "csv"


class ArrowRenderer(ORJSONRenderer):
    """Renderer that negotiates Arrow streams, like `CsvRenderer` for CSV."""

    media_type = ARROW_STREAM
    format = "arrow"


def response_type(request: Request) -> str:
    """Return the media type of the response: from `Accept`, or else the type of the body."""
    accepted: str = request.accepted_renderer.media_type
    if accepted in (CSV, ARROW_STREAM) or request.headers.get("Accept", "*/*").strip() not in ("", "*/*"):
        return accepted
    sent = (request.content_type or "").partition(";")[0].strip().lower()
    return {CSV: CSV, ARROW_STREAM: ARROW_STREAM, ARROW_FILE: ARROW_STREAM}.get(sent, accepted)
