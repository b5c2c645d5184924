"""List what the installation stores about persons, until when, and how it is erased."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from octweb.audit.models import Record
from octweb.batch.models import BatchPrediction
from octweb.core.idempotency import LIFE as ANSWER_LIFE
from octweb.core.models import StoredAnswer
from octweb.core.ownership import SEEING_ROLES, Owned
from octweb.core.spool import used_bytes
from octweb.datasets.actions import UPLOAD_LIFE
from octweb.datasets.models import Dataset, Upload
from octweb.decisions.models import ChainEntry, Kind
from octweb.dossier.models import ModelDossier
from octweb.experiments.models import Experiment
from octweb.jobs.reaper import KEEP_TASKS
from octweb.notify.delivery import KEEP as MESSAGE_LIFE
from octweb.notify.models import Delivery
from octweb.registry.models import TreeModel
from octweb.runs.models import TrainingRun
from octweb.serving.models import ApiToken
from octweb.sources.actions import KEPT as COUNTS_KEPT
from octweb.sources.models import SourceCount
from octweb.workbench.models import Workbench

MAX_COUNT = 10_000  # more rows are not counted, because counting a million records takes seconds
MAX_SESSIONS = 2_000  # sessions that are decoded to find those of one user
MAX_ITEMS = 50  # objects that the page lists
USERS = "users"
PERSONS = "persons in rows"


@dataclass(frozen=True, kw_only=True)
class HeldItem:
    """An object with rows about persons: name, contents, expiry, and URLs of its page and of its erasure."""

    name: str
    what: str
    until: str
    url: str
    erase_url: str = ""


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A kind of stored personal data.

    `about` says whose data it is. `count` is None if it was not counted, and at most MAX_COUNT + 1. `until` and
    `erased` are sentences: when it expires, and how it is erased earlier.
    """

    key: str
    title: str
    about: str
    what: str
    count: int | None
    until: str
    erased: str
    items: list[HeldItem] = field(default_factory=list)

    @property
    def is_more(self) -> bool:
        return self.count is not None and self.count > MAX_COUNT

    def to_json(self) -> dict[str, Any]:
        """Return the members, with `count` limited to MAX_COUNT and `more` if there are more."""
        return {
            "key": self.key,
            "title": self.title,
            "about": self.about,
            "what": self.what,
            "count": min(self.count, MAX_COUNT) if self.count is not None else None,
            "more": self.is_more,
            "until": self.until,
            "erased": self.erased,
            "items": [vars(item) for item in self.items],
        }


def holdings(user: Any | None) -> list[Holding]:
    """Return what is stored about one user and in this user's objects, or in the whole installation (None)."""
    now = timezone.now()
    return [source(user, now) for source in SOURCES]


def _days(count: float) -> str:
    return "1 day" if count == 1 else f"{round(count):,} days"


def _count(rows: QuerySet) -> int:
    return len(rows.order_by().values_list("pk", flat=True)[: MAX_COUNT + 1])


def _owned(model: Any, user: Any | None) -> QuerySet:
    if user is None:
        return model.objects.all()
    own = model.objects.filter(owner=user)
    return own.open_to(user, SEEING_ROLES) if issubclass(model, Owned) else own


def _accounts(user: Any | None, now: datetime) -> Holding:
    users = get_user_model().objects.all() if user is None else get_user_model().objects.filter(pk=user.pk)
    return Holding(
        key="accounts",
        title="Accounts",
        about=USERS,
        what="User name, name, e-mail address, hash of the password, last sign-in, the key at a sign-on service, what messages the user wants, and roles in teams.",
        count=_count(users),
        until="Until an administrator deletes the account. A visitor's account of the demo ends after a day.",
        erased="An administrator deletes the account under Administration. The user's objects go with it, except those of teams, which another owner gets.",
    )


def _administration(user: Any | None, now: datetime) -> Holding:
    entries = LogEntry.objects.all()
    if user is not None:
        kind = ContentType.objects.get_for_model(get_user_model())
        entries = entries.filter(Q(user=user) | Q(content_type=kind, object_id=str(user.pk)))
    return Holding(
        key="administration",
        title="Log of the administration",
        about=USERS,
        what="Which administrator changed which account or object under Administration, its name, and when.",
        count=_count(entries),
        until="Until the administrator's account is deleted.",
        erased="It goes with that account.",
    )


def _logins(user: Any | None, now: datetime) -> Holding:
    count = 0
    for model in (AccessLog, AccessAttempt, AccessFailureLog):
        rows = model.objects.all() if user is None else model.objects.filter(username=user.get_username())
        count += _count(rows)
    return Holding(
        key="logins",
        title="Sign-ins",
        about=USERS,
        what="User name, address, browser and time of each sign-in, and of each wrong password.",
        count=count,
        until=f"{_days(settings.KEEP_LOGINS_DAYS)} after the sign-in (OCTWEB_KEEP_LOGINS_DAYS).",
        erased="A worker removes them when they expire.",
    )


def _sessions(user: Any | None, now: datetime) -> Holding:
    rows = Session.objects.filter(expire_date__gte=now)
    count: int | None = _count(rows)
    if user is not None:
        read = list(rows.order_by()[: MAX_SESSIONS + 1])
        mine = [s for s in read if s.get_decoded().get("_auth_user_id") == str(user.pk)]
        count = len(mine) if len(read) <= MAX_SESSIONS else None
    return Holding(
        key="sessions",
        title="Sessions",
        about=USERS,
        what="Who is signed in with which browser, by a random key. For some minutes, calls of each token or address by its keyed hash.",
        count=count,
        until=f"{_days(settings.SESSION_COOKIE_AGE / 86400)} after the sign-in.",
        erased="Signing out ends one; a new password ends all others.",
    )


def _tokens(user: Any | None, now: datetime) -> Holding:
    tokens = ApiToken.objects.all() if user is None else ApiToken.objects.filter(user=user)
    return Holding(
        key="tokens",
        title="API tokens",
        about=USERS,
        what="Digest, first characters, name and scope of each token; not the token.",
        count=_count(tokens),
        until="Until the day that its owner chose, if any; otherwise until it is deleted.",
        erased="Its owner deletes it under API.",
    )


def _messages(user: Any | None, now: datetime) -> Holding:
    return Holding(
        key="messages",
        title="Messages",
        about=USERS,
        what="Names of ended runs, and of models with an alarm or a due review, sent by e-mail or to an address of the user.",
        count=_count(_owned(Delivery, user)),
        until=f"{_days(MESSAGE_LIFE.days)} after they were sent.",
        erased="A worker removes them when they expire.",
    )


def _uploads(user: Any | None, now: datetime) -> Holding:
    items = [
        HeldItem(
            name=upload.source_name,
            what=f"{upload.source_bytes:,} bytes",
            until=_day(upload.created + UPLOAD_LIFE),
            url=reverse("datasets:preview", args=[upload.pk]),
        )
        for upload in _owned(Upload, user)[:MAX_ITEMS]
    ]
    return Holding(
        key="uploads",
        title="Uploads not confirmed",
        about=PERSONS,
        what="The uploaded file, or the sample of a source, and its rows as they were read.",
        count=_count(_owned(Upload, user)),
        until=f"{_days(UPLOAD_LIFE.days)} after the upload.",
        erased="Its owner discards it on the preview.",
        items=items,
    )


def _day(moment: datetime) -> str:
    local = timezone.localtime(moment)
    return f"{local.day} {local:%b %Y}"


def _datasets(user: Any | None, now: datetime) -> Holding:
    stored = _owned(Dataset, user).exclude(file="")
    shown = stored.defer("columns", "profile", "reading")[:MAX_ITEMS]
    return Holding(
        key="datasets",
        title="Data sets",
        about=PERSONS,
        what="All rows and columns of the uploaded table, and statistics of its columns.",
        count=_count(stored),
        until=f"Until their owner deletes them, and {_days(Dataset.back_within().days)} more in which they can be restored.",
        erased="“Erase rows” of a data set stores a version without them, and can remove the stored files of all versions that have them.",
        items=[_dataset_item(dataset) for dataset in shown],
    )


def _counts(user: Any | None, now: datetime) -> Holding:
    stored = _owned(Dataset, user).exclude(counts="")
    jobs = _count(_owned(SourceCount, user))
    return Holding(
        key="counts",
        title="Counts of sources",
        about=PERSONS,
        what="No rows. Numbers of rows with the same answers, thresholds and categories; the chosen table or query of a source.",
        count=_count(stored) + jobs,
        until=f"Data sets: until their owner deletes them, and {_days(Dataset.back_within().days)} more. Jobs: {_days(COUNTS_KEPT.days)} after their end.",
        erased="Their owner deletes the data set. Count again to leave rows out.",
    )


def _dataset_item(dataset: Dataset) -> HeldItem:
    if dataset.deleted_at is not None:
        until = f"deleted; {_day(dataset.deleted_at + Dataset.back_within())}"
        return HeldItem(name=dataset.name, what=f"{dataset.rows:,} rows", until=until, url=reverse("deleted"))
    return HeldItem(
        name=dataset.name,
        what=f"{dataset.rows:,} rows",
        until="until it is deleted",
        url=reverse("datasets:detail", args=[dataset.pk]),
        erase_url=reverse("privacy:erase-rows", args=[dataset.pk]),
    )


def _models(user: Any | None, now: datetime) -> Holding:
    return Holding(
        key="models",
        title="Models",
        about=PERSONS,
        what=(
            "No rows. Counts of training rows in each leaf, thresholds, categories, and the smallest and largest value of "
            "each column. A leaf of one row reveals the class of that row."
        ),
        count=_count(_owned(TreeModel, user)),
        until=f"Until their owner deletes them, and {_days(TreeModel.back_within().days)} more; longer while records name them.",
        erased="A model keeps what it learned from an erased row until it is trained again. “Erase rows” lists these models.",
    )


def _dossiers(user: Any | None, now: datetime) -> Holding:
    dossiers = ModelDossier.objects.exclude(file="")
    if user is not None:
        dossiers = dossiers.filter(model__owner=user)
    return Holding(
        key="dossiers",
        title="Dossiers",
        about=PERSONS,
        what="No rows. Counts of rows and the range of each column, texts of the owner, and names of the reviewers.",
        count=_count(dossiers),
        until="30 days after they were made; as long as the model: the last one of each model, and those of approvals.",
        erased="They are deleted with their model.",
    )


def _searches(user: Any | None, now: datetime) -> Holding:
    count = sum(_count(_owned(model, user)) for model in (TrainingRun, Experiment, Workbench))
    return Holding(
        key="searches",
        title="Runs, experiments and workbenches",
        about=USERS,
        what="Names, settings and progress, and trees with counts of rows; no rows.",
        count=count,
        until=f"Until their owner deletes them, and {_days(TrainingRun.back_within().days)} more. Tasks of ended jobs: {_days(KEEP_TASKS.days)}.",
        erased="Their owner deletes them.",
    )


def _predictions(user: Any | None, now: datetime) -> Holding:
    jobs = _owned(BatchPrediction, user).exclude(source="", result="")
    items = [
        HeldItem(
            name=job.source_name,
            what=f"{job.source_bytes:,} bytes",
            until="until it has ended" if job.kept_until is None else _day(job.kept_until),
            url=reverse("batch:detail", args=[job.pk]) if job.deleted_at is None else reverse("deleted"),
        )
        for job in jobs[:MAX_ITEMS]
    ]
    return Holding(
        key="predictions",
        title="Files of predictions",
        about=PERSONS,
        what="The uploaded rows until the job has ended. Then the file of answers, which includes the columns on request.",
        count=_count(jobs),
        until=f"{_days(settings.KEEP_PREDICTIONS_DAYS)} after the job has ended (OCTWEB_KEEP_PREDICTIONS_DAYS).",
        erased="Its owner deletes it.",
        items=items,
    )


def _records(user: Any | None, now: datetime) -> Holding:
    entries = ChainEntry.objects.filter(kind=Kind.DECISION).exclude(payload="")
    models = _owned(TreeModel, user).defer("document").select_related("family")
    recorded = ChainEntry.objects.filter(kind=Kind.DECISION)
    if user is not None:
        entries = entries.filter(model__in=list(models.values_list("pk", flat=True)))
    items = [
        HeldItem(
            name=str(model),
            what="more than 10,000 records"
            if (number := _count(entries.filter(model=model.pk))) > MAX_COUNT
            else f"{number:,} records",
            until=f"{_days(model.days_of_records)} after each answer",
            url=reverse("records:list", args=[model.pk]),
            erase_url=reverse("records:list", args=[model.pk]),
        )
        for model in models
        if recorded.filter(model=model.pk).exists()
    ][:MAX_ITEMS]
    return Holding(
        key="records",
        title="Records of decisions",
        about=PERSONS,
        what=(
            "Answer, tested values and time of each decision, who asked, later outcomes and objections; the caller's "
            "reference to the person only as a keyed hash. Only of models that were approved with records."
        ),
        count=_count(entries),
        until=f"{_days(settings.RECORD_KEEP_DAYS)} after the answer (OCTWEB_RECORD_KEEP_DAYS), unless the model has its own days.",
        erased="By decision or by person, in the records of the model or by the API. The chain stays whole.",
        items=items,
    )


def _spool(user: Any | None, now: datetime) -> Holding:
    words = "" if user is not None else f"{used_bytes():,} bytes on this host. "
    return Holding(
        key="spool",
        title="Records not collected yet",
        about=PERSONS,
        what=f"{words}The last answers of all models, before a worker stores their records.",
        count=None,
        until="Until a worker collects them, within about a minute.",
        erased="After they are collected, as records.",
    )


def _answers(user: Any | None, now: datetime) -> Holding:
    return Holding(
        key="answers",
        title="Answers of repeated calls",
        about=PERSONS,
        what="The answer to a call with an Idempotency-Key.",
        count=_count(_owned(StoredAnswer, user)),
        until=f"{_days(ANSWER_LIFE / timedelta(days=1))} after the call.",
        erased="A worker removes them when they expire.",
    )


def _chain(user: Any | None, now: datetime) -> Holding:
    records = Record.objects.all()
    if user is not None:
        name = user.get_username()
        records = records.filter(Q(by=name) | Q(details__user=name))
    return Holding(
        key="chain",
        title="Chain of the review",
        about=USERS,
        what="Who trained, asked for approval, approved, served, shared or exported which object, when, and why; no rows.",
        count=_count(records),
        until="For ever: it proves who decided what.",
        erased="Never. Names stay in it after an account was deleted.",
    )


SOURCES: tuple[Callable[[Any | None, datetime], Holding], ...] = (
    _accounts, _administration, _logins, _sessions, _tokens, _messages, _uploads, _datasets, _counts, _models,
    _dossiers, _searches, _predictions, _records, _spool, _answers, _chain,
)  # fmt: skip
