"""Summarise the records of a model for its page Life: outcomes by leaf, decisions by people, objections, replays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count
from rest_framework import serializers

from octweb.decisions.models import Block, ChainEntry, Kind
from octweb.decisions.reading import CHUNK_KEYS, moment_of, nanoseconds_of
from octweb.oversight.due import oversight_of
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.page.scene import ModelScene
from octweb.registry.prediction.recording import is_recorded

DAYS = 60  # decisions of so many days are compared with their outcomes
MAX_LATER = 10_000  # outcomes and overrides that a page reads; the newest ones if there are more
MAX_OBJECTIONS = 10_000


class PromiseSerializer(serializers.Serializer):
    """Wrong answers of a leaf on held-out rows, with the 95 % interval of their share."""

    wrong = serializers.IntegerField()
    rows = serializers.IntegerField()
    share = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class LeafOutcomesSerializer(serializers.Serializer):
    """Decisions of a leaf, and how many of its answers turned out to be wrong."""

    leaf = serializers.CharField()
    answer = serializers.CharField()
    decisions = serializers.IntegerField()
    known = serializers.IntegerField(help_text="decisions with a known outcome")
    wrong = serializers.IntegerField()
    unknown = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True, help_text="of wrong answers among those with a known outcome")
    promised = PromiseSerializer(allow_null=True)
    knowable = serializers.BooleanField(help_text="false: no decision with this answer has an outcome, others have")


class ReplaySerializer(serializers.Serializer):
    """The last replay of recorded answers, of all models."""

    at = serializers.DateTimeField()
    same = serializers.IntegerField()
    different = serializers.IntegerField()


class StandingSerializer(serializers.Serializer):
    """What the records of a model say about its decisions of the last days."""

    recorded = serializers.BooleanField(help_text="each answer is recorded now")
    keep_days = serializers.IntegerField()
    first = serializers.DateTimeField(help_text="`decisions` to `leaves` are about answers from here on …")
    last = serializers.DateTimeField(help_text="… to here: `outcome_days` ago, so that their outcomes are due")
    decisions = serializers.IntegerField(help_text="recorded answers")
    capped = serializers.BooleanField(help_text=f"only the newest {MAX_LATER:,} outcomes were read")
    known = serializers.IntegerField()
    unknown = serializers.IntegerField(help_text="decisions whose outcome is due and not known")
    right = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True, help_text="of right answers among those with a known outcome")
    right_at_least = serializers.FloatField(
        allow_null=True, help_text="share, if all unknown outcomes were wrong answers"
    )
    right_at_most = serializers.FloatField(
        allow_null=True, help_text="share, if all unknown outcomes were right answers"
    )
    overridden = serializers.IntegerField(help_text="decided otherwise by a person")
    leaves = LeafOutcomesSerializer(many=True)
    objections_open = serializers.IntegerField()
    oldest_objection = serializers.DateTimeField(allow_null=True)
    erased = serializers.IntegerField()
    sealed_at = serializers.DateTimeField(allow_null=True, help_text="the last sealed block of the chain")
    replayed = ReplaySerializer(allow_null=True)


class _Recent(NamedTuple):
    """Due decisions by leaf, those with a known outcome, and those with another outcome; how many people overrode."""

    decisions: Counter[int]
    known: Counter[int]
    wrong: Counter[int]
    overridden: int
    is_capped: bool


def standing_record(model: TreeModel, now: datetime) -> dict[str, Any] | None:
    """Summarise the records of a model. None if its answers are not recorded and never were."""
    own = ChainEntry.objects.filter(model=model.pk).order_by()
    recorded = is_recorded(model)
    if not recorded and not own.filter(kind=Kind.DECISION).exists():
        return None
    due = now - timedelta(days=oversight_of(model).outcome_days or 0)
    recent = _recent(model, due)
    decisions = recent.decisions.total()
    right = recent.known.total() - recent.wrong.total()
    opened = _open_objections(own)
    erased = own.filter(kind=Kind.DECISION, leaf=None, payload="")
    block = Block.objects.order_by("-number").first()
    return {
        "recorded": recorded,
        "keep_days": model.days_of_records,
        "first": due - timedelta(days=DAYS),
        "last": due,
        "decisions": decisions,
        "capped": recent.is_capped,
        "known": recent.known.total(),
        "unknown": decisions - recent.known.total(),
        "right": right,
        "share": right / recent.known.total() if recent.known else None,
        "right_at_least": right / decisions if decisions and not recent.is_capped else None,
        "right_at_most": (decisions - recent.wrong.total()) / decisions if decisions and not recent.is_capped else None,
        "overridden": recent.overridden,
        "leaves": _leaves(model, recent),
        "objections_open": len(opened),
        "oldest_objection": min(opened, default=None),
        "erased": erased.count(),
        "sealed_at": None if block is None else moment_of(block.last_at),
        "replayed": _last_replay(),
    }


def _recent(model: TreeModel, due: datetime) -> _Recent:
    """Count the decisions of the DAYS days up to `due`. Of several outcomes of a decision, the last record counts."""
    times = (nanoseconds_of(due - timedelta(days=DAYS)), nanoseconds_of(due))
    entries = ChainEntry.objects.filter(model=model.pk, kind=Kind.DECISION, leaf__isnull=False, at__range=times)
    by_leaf = entries.order_by().values_list("leaf").annotate(Count("number"))
    recent = _Recent(Counter(dict(by_leaf)), Counter(), Counter(), 0, False)
    outcomes, decided = _last_by_decision(model, times, str(Kind.OUTCOME))
    for key, (leaf, label) in decided.items():
        recent.known[leaf] += 1
        recent.wrong[leaf] += outcomes[key] != label
    overrides, overridden = _last_by_decision(model, times, str(Kind.OVERRIDE))
    changed = sum(overrides[key] != label for key, (_, label) in overridden.items())
    return recent._replace(overridden=changed, is_capped=len(outcomes) == MAX_LATER)


def _last_by_decision(
    model: TreeModel, times: tuple[int, int], kind: str
) -> tuple[dict[Any, int], dict[Any, tuple[int, int]]]:
    """Return the class of the last record of this kind by decision, and leaf and class of the decisions in `times`."""
    first, last_at = times
    later = ChainEntry.objects.filter(model=model.pk, kind=kind, about__isnull=False, label__isnull=False)
    newest = later.order_by("-at", "-number")[:MAX_LATER]
    last: dict[Any, int] = {}
    for about, label in newest.values_list("about", "label"):
        last.setdefault(about, label)
    keys = list(last)
    decided: dict[Any, tuple[int, int]] = {}
    for start in range(0, len(keys), CHUNK_KEYS):
        # by key alone: with the days in the query, SQLite reads all decisions of these days
        part = ChainEntry.objects.filter(key__in=keys[start : start + CHUNK_KEYS]).values_list(
            "key", "leaf", "label", "at"
        )
        decided |= {key: (leaf, label) for key, leaf, label, at in part if leaf is not None and first <= at <= last_at}
    return last, decided


def _leaves(model: TreeModel, recent: _Recent) -> list[dict[str, Any]]:
    """Return the outcomes of each leaf, next to the wrong answers on its held-out rows."""
    tree = model_file(model).tree
    scene = ModelScene(model=model, user=None, inside=True)
    heard = {tree.labels[leaf] for leaf, number in recent.known.items() if number}
    leaves = []
    for leaf in tree.leaves:
        right, rows = scene.unseen_of(leaf)
        ends = scene.unseen_interval_of(leaf) if rows else None
        promised = {
            "wrong": rows - right,
            "rows": rows,
            "share": (rows - right) / max(1, rows),
            "low": None if ends is None else 1 - ends[1],
            "high": None if ends is None else 1 - ends[0],
        }
        leaves.append(
            {
                "leaf": str(leaf.id),
                "answer": tree.classes[leaf.label],
                "decisions": recent.decisions[leaf.id],
                "known": recent.known[leaf.id],
                "wrong": recent.wrong[leaf.id],
                "unknown": recent.decisions[leaf.id] - recent.known[leaf.id],
                "share": recent.wrong[leaf.id] / recent.known[leaf.id] if recent.known[leaf.id] else None,
                "promised": promised if rows else None,
                "knowable": not heard or leaf.label in heard,
            }
        )
    return leaves


def _open_objections(own: Any) -> list[datetime]:
    """Return the times of the first record of each objection that is open."""
    entries = own.filter(kind=Kind.OBJECTION).exclude(payload="").order_by("number")[:MAX_OBJECTIONS]
    first: dict[Any, datetime] = {}
    state: dict[Any, str] = {}
    for about, at, payload in entries.values_list("about", "at", "payload"):
        first.setdefault(about, moment_of(at))
        state[about] = json.loads(payload)["state"]
    return [at for about, at in first.items() if state[about] == "open"]


def _last_replay() -> dict[str, Any] | None:
    last = ChainEntry.objects.filter(model=None, kind=Kind.REPLAYED).order_by("-at").first()
    if last is None:
        return None
    payload = json.loads(last.payload)
    return {"at": moment_of(last.at), "same": payload["same"], "different": len(payload["different"])}


def standing_context(scene: ModelScene) -> Mapping[str, Any]:
    """Return the name under which the template finds out when the model was served."""
    return {"served_name": scene.model.family.name if scene.model.family.public else ""}
