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
from octweb.core.tally import ROWS
from octweb.life import actions
from octweb.life.parts import parts
from octweb.life.record import life_record, unusual_cells
from octweb.life.watches import QUESTIONS, RECENT_DAYS, RECENT_DUE_DAYS, WRONG
from octweb.life.words import day_text
from octweb.registry.models import TreeModel
from octweb.registry.page.scene import ModelScene
from octweb.registry.prediction.recording import is_recorded
from trainer.errors import list_names
from trainer.evaluate.intervals import wilson
from trainer.tree.numbers import number_text
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
        alarm | {"leaf": _leaf_of(alarm["watch"]), "is_wrong": alarm["watch"].startswith(f"{WRONG}: ")}
        for alarm in record["alarms"]
        if alarm["closed_at"] is None
    ]
    leaves = _leaves(scene, record)
    begin = next((i for i, rows in enumerate(record["rows"]) if rows), 0)
    return {
        "life": record,
        "days": days,
        "spans": SPANS,
        "leaves": leaves,
        "together": next(
            (_promise(w, record) for w in record["watches"] if w["kind"] == WRONG and not w["name"]), None
        ),
        "shares_of": _reference_rows(record, ROWS),
        "promises_of": _reference_rows(record, WRONG),
        "recent_days": RECENT_DAYS,
        "recent_due_days": RECENT_DUE_DAYS,
        "banners": _banners([alarm for alarm in open_alarms if not alarm["folded"]]),
        "folded": [alarm for alarm in open_alarms if alarm["folded"]],
        "legend": _legend(scene, leaves),
        "closed": [
            alarm | {"found_on": day_text(date.fromisoformat(alarm["found"]))}
            for alarm in record["alarms"]
            if alarm["closed_at"] is not None
        ],
        "recorded": is_recorded(scene.model),
        "came_in": [entry | {"bars": _bars(entry["weeks"])} for entry in unusual_cells(record, _ranges(scene))],
        "dry_runs": record["dry_runs"],
        "limits": [w | {"question": _question(w)} for w in record["watches"]],
        "per_day": record["decisions"] / max(1, len(record["rows"]) - begin),
        "parts": [part.template for part in parts],
        **{name: value for part in parts for name, value in part.context(scene).items()},
    }


def _leaves(scene: ModelScene, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a table row for each watched leaf: its share, and its promised share if there are records."""
    tree = scene.tree
    rules = {str(rule.leaf): rule for rule in rules_of(tree)}
    alarms = {alarm["watch"]: alarm for alarm in record["alarms"] if alarm["closed_at"] is None}
    promises = {w["name"]: _promise(w, record) for w in record["watches"] if w["kind"] == WRONG}
    leaves = []
    for watch in record["watches"]:
        if watch["kind"] != ROWS:
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
                "beside": open_alarm["sentence"].partition(", ")[2].rstrip(".")
                if open_alarm and open_alarm["folded"]
                else "",
                "found": day_text(date.fromisoformat(open_alarm["found"])) if open_alarm is not None else "",
                "state": _state(watch, record),
                "change": _change(watch),
                "wrong": promises.get(watch["name"]) or _recorded(watch["name"], record),
            }
        )
    return leaves


def _state(watch: dict[str, Any], record: dict[str, Any]) -> str:
    """Return the state of a share without an alarm, in words."""
    if watch["recent"] is None:
        return "no decisions"
    if watch["reference"] is None and watch["limit"] is None:
        return "not watched"
    needed = watch["rows_for_double"]
    since = [rows for day, rows in zip(record["days"], record["rows"], strict=True) if day >= watch["since"]]
    if needed is not None and sum(since) < needed:
        return "too few to tell"
    return "as in training" if watch["limit"] is None else "as allowed"


def _promise(watch: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a watch of wrong answers."""
    found = {a["watch"]: a["found"] for a in record["alarms"] if a["closed_at"] is None}.get(watch["watch"])
    reference = watch["reference"]
    known = watch["outcomes"][-RECENT_DUE_DAYS:]
    return {
        "promised": None if reference is None else reference["share"],
        "interval": None if reference is None else wilson(reference["yes"], reference["rows"]),
        "share": watch["recent"],
        "wrong": sum(watch["counts"][-RECENT_DUE_DAYS:]),
        "known": sum(known),
        "state": watch["promise"] or "not watched without a limit",
        "found": "" if found is None else day_text(date.fromisoformat(found)),
    }


def _recorded(leaf: str, record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the cells of a leaf whose outcomes are recorded, but not watched. None without records."""
    records = record.get("records")
    if not records:
        return None
    own = next((entry for entry in records["leaves"] if entry["leaf"] == leaf), None)
    if own is None:
        return None
    promised = own["promised"]
    has_interval = promised is not None and promised["low"] is not None
    return {
        "promised": None if promised is None else promised["share"],
        "interval": (promised["low"], promised["high"]) if has_interval else None,
        "share": own["share"],
        "wrong": own["wrong"],
        "known": own["known"],
        "state": "not watched" if own["knowable"] else "cannot be known",
        "found": "",
    }


def _reference_rows(record: dict[str, Any], kind: str) -> int:
    """Return how many rows the references of a kind were counted on. 0 without a reference."""
    rows = [w["reference"]["rows"] for w in record["watches"] if w["kind"] == kind and w["reference"] is not None]
    return max(rows, default=0)


def _question(watch: dict[str, Any]) -> str:
    """Return what a limit of a watch is about."""
    if watch["kind"] == ROWS:
        return f"Decisions in leaf {watch['name']}"
    if watch["kind"] == WRONG:
        return f"Wrong answers of leaf {watch['name']}" if watch["name"] else "Wrong answers of all leaves together"
    return f"{watch['name']} {QUESTIONS[watch['kind']]}"


def _ranges(scene: ModelScene) -> dict[str, tuple[str, str]]:
    """Return the training range of each column that the tree tests, as text."""
    columns = [scene.tree.schema[j] for j in scene.tree.used_columns]
    return {
        c.name: (number_text(c.range[0], full=True), number_text(c.range[1], full=True))
        for c in columns
        if c.range is not None
    }


def _bars(weeks: Sequence[int]) -> list[dict[str, float]]:
    """Return the bars of a small chart, in a square of 100 units."""
    top = max(weeks)
    width = 100 / len(weeks)
    return [
        {
            "x": round(k * width, 2),
            "width": round(0.85 * width, 2),
            "y": round(100 - 100 * n / top, 1),
            "height": round(100 * n / top, 1),
        }
        for k, n in enumerate(weeks)
        if n
    ]


def _leaf_of(watch: str) -> str:
    """Return the leaf of a watch. "" for one of cells, or of all leaves."""
    _, is_leaf, leaf = watch.removeprefix(f"{WRONG}: ").rpartition("leaf ")
    return leaf if is_leaf and leaf.isdigit() else ""


def _banners(alarms: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the alarms in groups that share a banner: those of the same leaf, and each other one alone."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for alarm in alarms:
        groups.setdefault(alarm["leaf"] or alarm["watch"], []).append(alarm)
    return list(groups.values())


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
