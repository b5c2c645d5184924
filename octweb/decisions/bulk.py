"""Parse many outcomes, overrides or objections from a JSON or CSV body."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError, ValidationError

from octweb.core.names import is_storable
from octweb.core.parsers import BodyTooLarge
from octweb.decisions.later import MAX_ERRORS, MAX_ROWS, LaterRow
from octweb.decisions.models import Kind

# text members of each kind, in addition to `decision`
MEMBERS: dict[str, tuple[str, ...]] = {
    str(Kind.OUTCOME): ("value", "known_at", "source"),
    str(Kind.OVERRIDE): ("label", "reason"),
    str(Kind.OBJECTION): ("received", "reason", "text_ref", "state", "answer"),
}
MAX_HEADER = 80  # characters of a header that an error quotes
COLUMN_NAMES = {"outcome": "value"}  # CSV column → member


def rows_of_body(kind: str, body: Any) -> list[LaterRow]:
    """Return the rows of a body: `{"rows": [{"decision": …}]}`, or the bytes of a CSV file with a header.

    Raises ParseError, BodyTooLarge, and ValidationError, which names the rows.
    """
    records = _csv_records(body) if isinstance(body, bytes) else _json_records(body)
    if len(records) > MAX_ROWS:
        raise BodyTooLarge(f"{len(records):,} rows are too many; {MAX_ROWS:,} is the limit of one call.")
    errors: dict[str, str] = {}
    rows = []
    for place, record in enumerate(records):
        try:
            rows.append(_row(kind, record))
        except ValidationError as error:
            errors |= {f"rows[{place}].{name}": text for name, text in error.detail.items()}
        if len(errors) >= MAX_ERRORS:
            break
    if errors:
        raise ValidationError(errors)
    if not rows:
        raise ValidationError({"rows": "At least one row is needed."})
    return rows


def members_of(kind: str, body: Any) -> dict[str, str]:
    """Return the members of one record.

    Raises ParseError, and ValidationError for unknown members or values that are not texts.
    """
    if not isinstance(body, Mapping):
        raise ParseError(f"The body must be an object with the members {', '.join(MEMBERS[kind])}.")
    known = MEMBERS[kind]
    if unknown := sorted(set(body) - set(known)):
        raise ValidationError({str(unknown[0])[:60]: f"Not known. The members are {', '.join(known)}."})
    members = {}
    for name, value in body.items():
        if value is not None and (not isinstance(value, str) or not is_storable(value)):
            raise ValidationError({name: "A text is needed, without control characters."})
        members[name] = value or ""
    return members


def _row(kind: str, record: Any) -> LaterRow:
    if not isinstance(record, dict):
        raise ValidationError({"decision": "Each row must be an object."})
    members = dict(record)
    try:
        decision = uuid.UUID(members.pop("decision", None))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValidationError(
            {"decision": "The id of a decision is needed, as answers have it in `decision`."}
        ) from error
    return LaterRow(decision, members_of(kind, members))


def _json_records(body: Any) -> list[Any]:
    if not isinstance(body, dict) or set(body) != {"rows"} or not isinstance(body["rows"], list):
        raise ParseError('The body must be an object with one list: {"rows": [{"decision": …}]}.')
    return body["rows"]


def _csv_records(body: bytes) -> list[dict[str, str]]:
    try:
        reader = csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        names = [COLUMN_NAMES.get(name, name) for name in reader.fieldnames or ()]
        if len(names) > len(set(names)):
            raise ParseError("A column appears twice in the header.")
        if "decision" not in names:
            header = ", ".join(names)[:MAX_HEADER]
            raise ParseError(f"The header has no column 'decision', but '{header}'. Separate the columns with commas.")
        records = []
        for record in reader:
            if None in record or None in record.values():
                raise ParseError(f"Line {reader.line_num} has another number of cells than the header.")
            records.append(dict(zip(names, record.values(), strict=True)))
            if len(records) > MAX_ROWS:
                break
    except UnicodeDecodeError as error:
        raise ParseError("The file is not UTF-8 text.") from error
    except csv.Error as error:
        raise ParseError(f"The file is not valid CSV: {error}.") from error
    return records
