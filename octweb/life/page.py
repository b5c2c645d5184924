"""Build the Life page of a model, and handle its forms."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from rest_framework.exceptions import APIException

from octweb.core.problems import flatten
from octweb.life import actions
from octweb.life.parts import parts
from octweb.life.record import life_record, unusual_cells
from octweb.life.watches import QUESTIONS, WRONG
from octweb.life.words import day_text
from octweb.registry.models import TreeModel
from octweb.registry.page.scene import ModelScene
from octweb.registry.prediction.recording import is_recorded
from trainer.errors import list_names
from trainer.tree.render.palette import swatch
from trainer.tree.rules import rules_of

NAMED_LEAVES = 8  # leaves of a class that the legend names
SPANS = {"90": "90 days", "365": "Year", "1095": "3 years"}


def page_context(scene: ModelScene) -> dict[str, Any]:
    """Return the template context: the record of the model, its leaves and its alarms."""
    days = scene.query.get("days", "365")
    days = days if days in SPANS else "365"
    record = life_record(scene.model, int(days), timezone.now())
    open_alarms = [
        alarm | {"leaf": _leaf_of(alarm["watch"])} for alarm in record["alarms"] if alarm["closed_at"] is None
    ]
    leaves = _leaves(scene, record)
    begin = next((i for i, rows in enumerate(record["rows"]) if rows), 0)
    return {
        "life": record,
        "days": days,
        "spans": SPANS,
        "leaves": leaves,
        "open_alarms": [alarm for alarm in open_alarms if not alarm["folded"]],
        "folded": [alarm for alarm in open_alarms if alarm["folded"]],
        "legend": _legend(scene, leaves),
        "closed": [
            alarm | {"found_on": day_text(date.fromisoformat(alarm["found"]))}
            for alarm in record["alarms"]
            if alarm["closed_at"] is not None
        ],
        "recorded": is_recorded(scene.model),
        "came_in": unusual_cells(record),
        "dry_runs": record["dry_runs"],
        "cells": [w | {"question": QUESTIONS[w["kind"]]} for w in record["watches"] if w["kind"] in QUESTIONS],
        "promises": _promises(record),
        "per_day": record["decisions"] / max(1, len(record["rows"]) - begin),
        "parts": [part.template for part in parts],
        **{name: value for part in parts for name, value in part.context(scene).items()},
    }


def _leaves(scene: ModelScene, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a table row for each watched leaf."""
    tree = scene.tree
    rules = {str(rule.leaf): rule for rule in rules_of(tree)}
    alarms = {alarm["watch"]: alarm for alarm in record["alarms"] if alarm["closed_at"] is None}
    leaves = []
    for watch in record["watches"]:
        if watch["kind"] != "rows":
            continue
        node = tree.nodes[int(watch["name"])]
        open_alarm = alarms.get(watch["watch"])
        leaves.append(
            watch
            | {
                "answer": tree.classes[node.label],
                "look": swatch(node.label, len(tree.classes)),
                "who": rules[watch["name"]],
                "open": open_alarm,
                "found": day_text(date.fromisoformat(open_alarm["found"])) if open_alarm is not None else "",
                "change": _change(watch),
            }
        )
    return leaves


def _promises(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a table row for each watch of wrong answers."""
    found = {a["watch"]: day_text(date.fromisoformat(a["found"])) for a in record["alarms"] if a["closed_at"] is None}
    return [
        watch | {"answer": record["answers"].get(watch["name"], ""), "found": found.get(watch["watch"], "")}
        for watch in record["watches"]
        if watch["kind"] == WRONG
    ]


def _leaf_of(watch: str) -> str:
    """Return the leaf of a watch. "" for one of cells."""
    return watch.removeprefix("leaf ") if watch.startswith("leaf ") else ""


def _legend(scene: ModelScene, leaves: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the classes with their leaves, in the order of the bars from below."""
    return [
        {
            "label": label,
            "look": swatch(k, len(scene.tree.classes)),
            "leaves": f"{'leaf' if len(own) == 1 else 'leaves'} {list_names(own, NAMED_LEAVES)}",
        }
        for k, label in enumerate(scene.tree.classes)
        if (own := [leaf["name"] for leaf in leaves if leaf["answer"] == label])
    ]


def _change(watch: dict[str, Any]) -> float | None:
    """Return the share of the last 28 days minus the reference share. None if one of them is unknown."""
    if watch["recent"] is None or watch["reference"] is None:
        return None
    return float(watch["recent"] - watch["reference"]["share"])


def own_model(request: HttpRequest, pk: uuid.UUID) -> TreeModel:
    """Return a model of the user, or any model for administrators. Raises Http404."""
    return TreeModel.objects.select_related("family", "owner", "dataset").get_for(request, pk)


def back_to_life(pk: uuid.UUID) -> HttpResponse:
    """Return a redirect to the model's Life page."""
    return redirect(f"{reverse('registry:detail', args=[pk])}?mode=life")


@contextmanager
def refusals_as_messages(request: HttpRequest) -> Iterator[None]:
    """Convert refusals of an action to messages on the next page."""
    try:
        yield
    except APIException as error:
        messages.error(request, "; ".join(e["detail"] for e in flatten(error.detail)))


@login_required
@require_POST
def close_alarm(request: HttpRequest, pk: uuid.UUID, alarm: int) -> HttpResponse:
    """Close an alarm with the reason from the form."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        closed = actions.close_alarm(model, alarm, by=request.user, reason=request.POST.get("reason", ""))
        messages.success(request, f"The alarm of {closed.watch} is closed. It is watched again from tomorrow on.")
    return back_to_life(pk)


@login_required
@require_POST
def set_limit(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Set the largest share of a watch in percent. An empty field removes the limit."""
    model = own_model(request, pk)
    watch = request.POST.get("watch", "")
    text = request.POST.get("percent", "").strip().replace(",", ".")
    try:
        share = float(text) / 100 if text else None
    except ValueError:
        messages.error(request, f"'{text[:20]}' is not a number. Write the largest share in percent, such as 35.")
        return back_to_life(pk)
    with refusals_as_messages(request):
        actions.set_limit(model, watch, share, by=request.user)
        words = "has no limit any more" if share is None else f"may have at most {text} %"
        messages.success(request, f"From tomorrow on {watch} {words}.")
    return back_to_life(pk)


@login_required
@require_POST
def look_now(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Evaluate the counts of the model now."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        fresh = actions.look_now(model)
        messages.success(request, f"Looked at all days up to yesterday. New alarms: {len(fresh)}.")
    return back_to_life(pk)
