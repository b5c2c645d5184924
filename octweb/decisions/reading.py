"""Read recorded decisions and the later records about them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404

from octweb.audit.models import SEALED, Record
from octweb.core.ownership import CHANGING_ROLES, may_change
from octweb.decisions import hashing
from octweb.decisions.adding import add_later
from octweb.decisions.collecting import ANCHORED
from octweb.decisions.erasing import ranges_of
from octweb.decisions.models import Block, ChainEntry, DecisionHead, Kind
from octweb.decisions.replaying import differences, row_of
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import APIS
from octweb.serving.models import ApiToken
from trainer.dtypes import FloatArray
from trainer.errors import TrainerError
from trainer.tree.nodes import Tree

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STANDING_KINDS = (Kind.OUTCOME, Kind.OVERRIDE, Kind.OBJECTION)  # of these kinds, the last record counts
MAX_LOOKS = 50  # at most this many accesses to a decision are listed
CHUNK_KEYS = 500  # keys per SQL statement
ABSENT = "There is no decision with this id, or it is not yours. A decision can be read some seconds after its answer."


@dataclass(frozen=True)
class DecisionRecord:
    """A recorded decision with its model and later records, except accesses. If it was erased, it has no payload."""

    entry: ChainEntry
    model: TreeModel
    payload: Mapping[str, Any]
    later: list[ChainEntry]

    @property
    def standing(self) -> dict[str, dict[str, Any]]:
        """The last outcome, override and objection, by kind."""
        return standing_of(self.later)

    @property
    def is_erased(self) -> bool:
        return not self.payload

    @property
    def tree(self) -> Tree | None:
        """The tree that answered. None if the stored model file has changed or cannot be read."""
        if self.is_erased or self.model.sha256 != self.payload["version_sha256"]:
            return None
        try:
            return model_file(self.model).tree
        except TrainerError:
            return None

    @property
    def row(self) -> FloatArray | None:
        """The row as the kernel received it, float64 (columns,). None if refused, erased or unreadable."""
        tree = self.tree
        return None if tree is None or self.payload["refused"] else row_of(tree, self.payload["values"])


def moment_of(nanoseconds: int) -> datetime:
    """Convert the time of a record to a datetime in UTC."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def nanoseconds_of(moment: datetime) -> int:
    """Convert a time to ns since 1970, as records have it."""
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def models_of(user: Any) -> Any:
    """Return the models whose decisions the user may read: own ones and those shared for it, or all for administrators.

    Deleted ones are included, except those that are only shared.
    """
    return TreeModel.objects.with_records_for(user).select_related("family", "owner", "dataset")


def completable_models_of(user: Any) -> Any:
    """Return the models whose decisions the user may complete and erase: own ones, or all for administrators."""
    return TreeModel.objects.open_to(user, CHANGING_ROLES).select_related("family", "owner", "dataset")


def find_model(user: Any, pk: uuid.UUID) -> TreeModel:
    """Return a model whose decisions the user may read, or raise Http404.

    The error is the same whether it does not exist or the user may not read it.
    """
    model: TreeModel | None = models_of(user).filter(pk=pk).first()
    if model is None:
        raise Http404("There is no model with this id, or it is not yours. Check the id.")
    return model


def find_decision(user: Any, key: uuid.UUID) -> DecisionRecord:
    """Return a recorded decision, or raise Http404.

    The error is the same whether it does not exist or the user may not read it.
    """
    entry = ChainEntry.objects.filter(key=key, kind=Kind.DECISION).first()
    model = None if entry is None else models_of(user).filter(pk=entry.model).first()
    if entry is None or model is None:
        raise Http404(ABSENT)
    payload = json.loads(entry.payload) if entry.payload else {}
    return DecisionRecord(entry, model, payload, list(ChainEntry.objects.filter(about=key).exclude(kind=Kind.LOOK)))


def refuse_to_complete(user: Any, model: TreeModel) -> None:
    """Raise PermissionDenied if the user may read the records of a model, but not complete or erase them."""
    if not may_change(user, model):
        raise PermissionDenied("You may read the records of this model, but not change them. Ask its owner.")


def record_look(record: DecisionRecord, by: str, page: str) -> None:
    """Record who read a decision. `page` is api, page or letter."""
    if not record.is_erased:
        add_later(str(Kind.LOOK), by, about=record.entry, page=page)


def later_by_decision(keys: Iterable[uuid.UUID]) -> dict[uuid.UUID, list[ChainEntry]]:
    """Return outcomes, overrides and objections of decisions in order, by decision id."""
    later: dict[uuid.UUID, list[ChainEntry]] = {}
    keys = list(keys)
    for start in range(0, len(keys), CHUNK_KEYS):
        part = keys[start : start + CHUNK_KEYS]
        for entry in ChainEntry.objects.filter(about__in=part, kind__in=STANDING_KINDS):
            assert entry.about is not None
            later.setdefault(entry.about, []).append(entry)
    return later


def standing_of(later: Iterable[ChainEntry]) -> dict[str, dict[str, Any]]:
    """Return the content of the last outcome, override and objection, by kind."""
    standing = {}
    for entry in sorted(later, key=lambda entry: entry.number):
        if entry.kind in STANDING_KINDS and entry.payload:
            standing[str(entry.kind)] = json.loads(entry.payload)
    return standing


def class_text(tree: Tree | None, label: int | None) -> str | None:
    """Return the name of a class, or None without a class or a tree."""
    return None if tree is None or label is None else tree.classes[label]


def values_of(record: DecisionRecord) -> dict[str, Any]:
    """Return the recorded cells by column name, as text or number. Empty cells and unknown categories are None.

    The result is empty if the tree or the row is not available.
    """
    tree = record.tree
    row = record.row
    if tree is None or row is None:
        return {}
    cells: dict[str, Any] = {}
    for j in tree.used_columns:
        column = tree.schema[j]
        value = float(row[j])
        if column.categories:
            cells[column.name] = column.categories[int(value)] if 0 <= value < len(column.categories) else None
        else:
            cells[column.name] = None if value != value else value
    return cells


def later_json(entry: ChainEntry, tree: Tree | None) -> dict[str, Any]:
    """Return a later record with class names instead of codes."""
    payload = json.loads(entry.payload) if entry.payload else {}
    words = {name: value for name, value in payload.items() if name not in ("decision", "label", "at", "id", "kind")}
    if "label" in payload:
        words["value" if entry.kind == Kind.OUTCOME else "label"] = class_text(tree, payload["label"])
    head = {"id": str(entry.key), "number": entry.number, "kind": str(entry.kind), "at": moment_of(entry.at)}
    return head | words


def decision_json(record: DecisionRecord) -> dict[str, Any]:
    """Return a recorded decision as the API does, without its explanation."""
    entry = record.entry
    payload = record.payload
    tree = record.tree
    standing = record.standing
    looks = ChainEntry.objects.filter(about=entry.key, kind=Kind.LOOK)
    listed = [*record.later, *looks.order_by("-number")[:MAX_LOOKS]]
    last = {later.kind: later for later in record.later if str(later.kind) in standing and later.payload}
    return {
        "decision": str(entry.key),
        "at": moment_of(entry.at),
        "model": str(record.model.pk),
        "name": record.model.family.name,
        "version": record.model.version,
        "version_sha256": payload.get("version_sha256"),
        "asked_as": payload.get("name"),
        "api": APIS[payload["api"]] if payload else None,
        "call": payload.get("call"),
        "row": payload.get("row"),
        "by": payload.get("by"),
        "has_subject": bool(payload.get("subject")),
        "values": values_of(record),
        "noted": [{"column": column, "kind": kind} for column, kind in payload.get("noted", ())],
        "refused": payload.get("refused", ""),
        "leaf": payload.get("leaf"),
        "label": class_text(tree, payload.get("label")),
        "probabilities": probabilities_of(payload, tree),
        "answered_again": answered_again(record),
        "challenger": [
            {"version_sha256": sha256, "leaf": leaf, "label": class_text(tree, label)}
            for sha256, leaf, label in payload.get("challenger", ())
        ],
        **{str(kind): later_json(last[kind], tree) if kind in last else None for kind in STANDING_KINDS},
        "later": [later_json(later, tree) for later in sorted(listed, key=lambda later: later.number)],
        "looks": looks.count(),
        "erased": erasure_of(entry),
        "chain": place_of(entry),
    }


def probabilities_of(payload: Mapping[str, Any], tree: Tree | None) -> dict[str, float] | None:
    """Return the shares of the classes in the answer, or None without an answer or a tree."""
    bits = "".join(payload.get("probability", ()))
    if tree is None or not bits:
        return None
    return dict(zip(tree.classes, np.frombuffer(bytes.fromhex(bits), ">f8").tolist(), strict=True))


def answered_again(record: DecisionRecord) -> str | None:
    """Predict the recorded row again. Return "same" or "different", or None without an answer or a tree."""
    if record.row is None:
        return None
    return "different" if differences([dict(record.payload)]) else "same"


def unrecorded_of(model: TreeModel) -> dict[str, Any] | None:
    """Return how many rows of a model were answered without a record, and when: first and last. None if there are none."""
    entries = ChainEntry.objects.filter(model=None, kind=Kind.UNRECORDED)
    payloads = [json.loads(text) for text in entries.values_list("payload", flat=True)]
    own = [payload for payload in payloads if payload["model"] == str(model.pk)]
    if not own:
        return None
    return {
        "rows": sum(payload["rows"] for payload in own),
        "since": moment_of(min(payload["since"] for payload in own)),
        "until": moment_of(max(payload["at"] for payload in own)),
    }


def chain_facts() -> dict[str, Any]:
    """Return the details of the last signed and of the last anchored block, or None, and why it is not anchored."""
    sealed = Record.objects.filter(what=SEALED).last()
    anchored = Record.objects.filter(what=ANCHORED).last()
    head = DecisionHead.objects.first()
    return {
        "sealed": None if sealed is None else sealed.details | {"at": sealed.at},
        "anchored": None if anchored is None else anchored.details | {"at": anchored.at},
        "error": head.anchor_error if head is not None else "",
        "is_anchoring": bool(settings.ANCHOR_URL),
    }


def erasure_of(entry: ChainEntry) -> dict[str, Any] | None:
    """Return when and why the content of a record was erased, or None if it still exists.

    The first erasure that names the record counts, because the range of a retention also covers records erased before.
    """
    if entry.payload:
        return None
    for erased in ChainEntry.objects.filter(model=None, kind=Kind.ERASED, number__gt=entry.number).order_by("number"):
        payload = json.loads(erased.payload)
        is_in_range = any(first <= entry.number <= last for first, last in ranges_of(payload))
        if entry.number in payload.get("numbers", ()) or is_in_range:
            return {"at": moment_of(erased.at), "why": payload["why"], "number": erased.number}
    return {"at": None, "why": "unknown", "number": None}


def place_of(entry: ChainEntry) -> dict[str, Any]:
    """Return the position of a record in the chain, with the proof that its block contains it.

    The commitment, the hashes of `path` (RFC 9162) and the header are sufficient to check it without octweb.
    """
    place: dict[str, Any] = {
        "number": entry.number,
        "commitment": entry.commitment,
        "salt": entry.salt or None,
        "payload": entry.payload or None,
        "block": None,
    }
    block = Block.objects.filter(first__lte=entry.number).order_by("-first").first()
    if block is None or entry.number >= block.first + block.records:
        return place
    numbers = Q(number__gte=block.first, number__lt=block.first + block.records)
    commitments = list(ChainEntry.objects.filter(numbers).order_by("number").values_list("commitment", flat=True))
    head = DecisionHead.objects.first()
    place["block"] = {
        "number": block.number,
        "header": block.header,
        "sha256": block.digest,
        "index": entry.number - block.first,
        "path": hashing.inclusion(commitments, entry.number - block.first),
        "is_signed": head is not None and head.signed >= block.number,
    }
    return place


def names_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the user names of actors in records ("user 5", "token abc"), with two queries."""
    texts = set(texts)
    ids = {int(text.removeprefix("user ")) for text in texts if text.startswith("user ") and text[5:].strip().isdigit()}
    keys = {text.removeprefix("token ") for text in texts if text.startswith("token ")}
    names = {f"user {user.pk}": user.get_username() for user in get_user_model().objects.filter(pk__in=ids)}
    for token in ApiToken.objects.filter(token_key__in=keys).select_related("user"):
        names[f"token {token.token_key}"] = f"{token.user.get_username()} (token {token.name or token.token_key})"
    return {text: names.get(text, text) for text in texts}
