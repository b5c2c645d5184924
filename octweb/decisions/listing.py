"""Filter the decisions of a model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import time
from typing import Any

from django.db.models import Q, QuerySet
from rest_framework.exceptions import ValidationError

from octweb.core.filters import parse_moment
from octweb.decisions.models import ChainEntry, Kind
from octweb.decisions.reading import class_text, later_by_decision, models_of, moment_of, nanoseconds_of, standing_of
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import subject_digest

OUTCOME = str(Kind.OUTCOME)
OVERRIDE = str(Kind.OVERRIDE)
OBJECTION = str(Kind.OBJECTION)
ALL = "all"
YES_NO = {"yes": True, "no": False}
OUTCOMES = {"known": True, "unknown": False}
OBJECTIONS = ("open", "upheld", "refused")
FILTERS = {
    "since": "a date, which means its beginning, or a time; without a zone in that of the site",
    "until": "a date, which means its end, or a time",
    "answer": "a class of the model",
    "refused": "`yes`: rows without an answer; `no`: only answers",
    "leaf": "number of the leaf",
    "version": "another version of the same name, by its number, or `all`",
    "outcome": "`known` or `unknown`",
    "overridden": "`yes` or `no`: a person decided, too",
    "objection": "`open`, `upheld` or `refused`: the state of the last objection",
}


def decisions_of(user: Any, model: TreeModel, query: Mapping[str, str], subject: str = "") -> QuerySet[ChainEntry]:
    """Return the decisions of a model that pass the filters of `query`, unordered.

    `subject` is the caller's reference to a person. Raises ValidationError, which names the invalid filter.
    """
    models = versions_of(user, model, query.get("version", ""))
    entries = ChainEntry.objects.filter(kind=Kind.DECISION, model__in=[m.pk for m in models])
    for condition in _conditions(models, query):
        entries = entries.filter(condition)
    return entries.filter(subject=subject_digest(subject)) if subject else entries


def versions_of(user: Any, model: TreeModel, version: str) -> list[TreeModel]:
    """Return the versions that `version` names: the model itself if empty. Raises ValidationError."""
    if not version:
        return [model]
    versions = list(models_of(user).filter(family=model.family_id).order_by("version"))
    chosen = [m for m in versions if version in (ALL, str(m.version))]
    if not chosen:
        numbers = ", ".join(str(m.version) for m in versions)
        raise ValidationError({"version": f"'{version[:20]}' is not a version. Use {numbers} or {ALL}."})
    return chosen


def _conditions(models: Sequence[TreeModel], query: Mapping[str, str]) -> Iterable[Q]:
    if text := query.get("since", ""):
        yield Q(at__gte=_nanoseconds("since", text, time.min))
    if text := query.get("until", ""):
        yield Q(at__lte=_nanoseconds("until", text, time.max))
    if answer := query.get("answer", ""):
        yield _answer(models, answer)
    if text := query.get("leaf", ""):
        yield Q(leaf=_number("leaf", text))
    is_refused = _choice("refused", query, YES_NO)
    if is_refused is not None:
        yield Q(leaf=None) & ~Q(payload="") if is_refused else Q(leaf__isnull=False)
    for name, kind, choices in (("outcome", OUTCOME, OUTCOMES), ("overridden", OVERRIDE, YES_NO)):
        wanted = _choice(name, query, choices)
        if wanted is not None:
            is_known = Q(key__in=_about(models, kind).values("about"))
            yield is_known if wanted else ~is_known
    state = query.get("objection", "")
    if state:
        _choice("objection", query, dict.fromkeys(OBJECTIONS, True))
        yield Q(key__in=_objections(models, state))


def _about(models: Sequence[TreeModel], kind: str) -> QuerySet[ChainEntry]:
    return ChainEntry.objects.filter(
        kind=kind, model__in=[m.pk for m in models], about__isnull=False, label__isnull=False
    ).order_by()


def _objections(models: Sequence[TreeModel], state: str) -> list[uuid.UUID]:
    """Return the decisions whose last objection has this state. There are few objections."""
    entries = ChainEntry.objects.filter(kind=OBJECTION, model__in=[m.pk for m in models]).exclude(payload="")
    last = dict(entries.order_by("number").values_list("about", "payload"))
    return [about for about, payload in last.items() if about and json.loads(payload)["state"] == state]


def _answer(models: Sequence[TreeModel], answer: str) -> Q:
    """Return the condition for a class. Its code may differ between versions."""
    condition = Q(pk__in=())
    classes: dict[str, None] = {}
    for model in models:
        names = model_file(model).tree.classes
        classes |= dict.fromkeys(names)
        if answer in names:
            condition |= Q(model=model.pk, label=names.index(answer))
    if answer not in classes:
        raise ValidationError({"answer": f"'{answer[:60]}' is not a class of the model. It has {', '.join(classes)}."})
    return condition


def _choice(name: str, query: Mapping[str, str], choices: Mapping[str, bool]) -> bool | None:
    text = query.get(name, "")
    if text and text not in choices:
        raise ValidationError({name: f"'{text[:20]}' is not one of {', '.join(choices)}."})
    return choices.get(text)


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValidationError({name: f"'{text[:20]}' is not a whole number."})
    return int(text)


def _nanoseconds(name: str, text: str, clock: time) -> int:
    """Return a time as ns since 1970. A date gets the time `clock` in the site's zone. Raises ValidationError."""
    return nanoseconds_of(parse_moment(name, text, clock)) + (999 if clock == time.max else 0)


def summaries(entries: Sequence[ChainEntry], models: Mapping[uuid.UUID, TreeModel]) -> list[dict[str, Any]]:
    """Return the entries of a list: answer and state of each decision, without the values of its row."""
    later = later_by_decision(entry.key for entry in entries)
    found = []
    for entry in entries:
        assert entry.model is not None
        model = models[entry.model]
        payload = json.loads(entry.payload) if entry.payload else {}
        is_same_file = bool(payload) and payload["version_sha256"] == model.sha256
        tree = model_file(model).tree if is_same_file else None
        standing = standing_of(later.get(entry.key, ()))
        found.append(
            {
                "decision": str(entry.key),
                "at": moment_of(entry.at),
                "model": str(model.pk),
                "version": model.version,
                "leaf": entry.leaf,
                "label": class_text(tree, entry.label),
                "refused": payload.get("refused", ""),
                "erased": not payload,
                "outcome": class_text(tree, standing.get(OUTCOME, {}).get("label")),
                "override": class_text(tree, standing.get(OVERRIDE, {}).get("label")),
                "objection": standing.get(OBJECTION, {}).get("state"),
            }
        )
    return found
