"""Write the letter about a recorded decision, and the context of its page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from octweb.decide.actions import guidance_of
from octweb.decide.page import context as decide_context
from octweb.decisions.erasing import USER_REASONS
from octweb.decisions.explaining import request_of
from octweb.decisions.later import MAX_REASON, MAX_REFERENCE
from octweb.decisions.listing import OBJECTIONS
from octweb.decisions.models import Kind
from octweb.decisions.reading import DecisionRecord, decision_json, names_of, record_look
from octweb.dossier import pdf

MAX_CHANGES = 4  # maximum number of smallest changes in a letter
NOTED_WORDS = {
    "empty": "was empty",
    "unknown": "has a value that training did not have",
    "below": "is below the range of training",
    "above": "is above the range of training",
    "value": "has a value of the wrong kind",
    "column": "has a column that the model does not have",
    "row": "has no column names",
}


def letter_file(record: DecisionRecord, form: str, *, user: Any, by: str) -> bytes:
    """Return the letter as a file, "html" or "pdf", and record this access."""
    html = render_to_string("decisions/letter_document.html", letter_context(record, user, by))
    if form == "pdf":
        return pdf.to_pdf(html, title=f"Letter about the decision {record.entry.key}")
    return html.encode()


def letter_context(record: DecisionRecord, user: Any, by: str) -> dict[str, Any]:
    """Return the context of the letter, and record this access."""
    context = record_context(record, user)
    record_look(record, by, "letter")
    flips = (context["explained"] or {}).get("flips", ())
    return context | {"guidance": guidance_of(record.model), "changes": flips[:MAX_CHANGES]}


def record_context(record: DecisionRecord, user: Any) -> dict[str, Any]:
    """Return the context of a recorded decision: its record, its explanation as on the decision page, and who acted."""
    facts = decision_json(record)
    asked = request_of(record, user)
    explained = decide_context(*asked) if asked is not None else None
    names = names_of([facts["by"] or "", *(later.get("by", "") for later in facts["later"])])
    for entry in [facts, *facts["later"]]:
        entry["who"] = names.get(entry.get("by") or "", "")
    for entry in [facts["objection"] or {}, *facts["later"]]:
        for text, day in (("received", "received_on"), ("known_at", "known_on")):
            entry[day] = _day(entry.get(text) or "")
    history = [later for later in facts["later"] if later["kind"] != Kind.LOOK]
    return {
        "model": record.model,
        "facts": facts,
        "cells": _cells(facts["values"], explained["asked"].values if explained else {}),
        "explained": explained,
        "shown": explained["decision"] if explained else None,
        "tree_classes": record.tree.classes if record.tree is not None else (),
        "history": history[::-1],
        "looks": [later for later in facts["later"] if later["kind"] == Kind.LOOK][::-1],
        "noted": [f"{n['column'] or 'The row'} {NOTED_WORDS.get(n['kind'], n['kind'])}" for n in facts["noted"]],
        "objections": OBJECTIONS,
        "erasure_reasons": USER_REASONS,
        "max_reason": MAX_REASON,
        "max_reference": MAX_REFERENCE,
        "inside": asked is not None
        and asked[0].inside,  # _certainty.html explains less to users who may not see the training rows
    }


def _day(text: str) -> date | None:
    """Return the day of a recorded date or time, in the zone of the site. None without one."""
    moment = parse_datetime(text) if "T" in text else None
    if moment is not None:
        return timezone.localtime(moment).date() if timezone.is_aware(moment) else moment.date()
    return parse_date(text)


def _cells(values: Mapping[str, Any], typed: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return name and value of each recorded cell, as people type it.

    The value is None if the cell is empty or unknown.
    """
    return [(name, None if value is None else typed.get(name, value)) for name, value in values.items()]
