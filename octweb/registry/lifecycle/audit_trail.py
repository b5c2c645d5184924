"""Find changes of models and data sets that bypassed the application.

Compare them with the audit chain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model

from octweb.audit import actions as audit
from octweb.audit import chain
from octweb.audit.models import Record
from octweb.core.faults import StoreUnavailable
from octweb.core.models import Membership
from octweb.datasets.models import Dataset
from octweb.registry.document.derived_columns import columns_of
from octweb.registry.models import Doubt, Recording, ReviewEvent, TreeModel
from trainer.errors import ModelFileError
from trainer.tree.file import from_json

SERVES = {"served", "published"}  # earlier versions recorded "published"
ENDS = {"no longer served", "retire"}
MEMBER_STEPS = ("member added", "member role", "member removed")
NAMES_TEAM = {"trained", "uploaded", "team"}
REWRITTEN = "digests removed"  # the migration that removed digests of training rows wrote these records
# verdict of the last check → doubts that agree with it; a migration may have requested another check
DOUBTS_AFTER: dict[object, set[object]] = {
    "refuted": {Doubt.REFUTED, Doubt.PENDING},
    "proved": {"", Doubt.PENDING, Doubt.OPEN},
}
# maximum time between a step and its record; records of earlier versions lack the time of the step
TOLERANCE = timedelta(minutes=10)
CHUNK_BYTES = 1 << 20


class AuditFindings(NamedTuple):
    """Differences from the audit chain, and what old records do not allow to check."""

    problems: list[str]
    unchecked: list[str]


def record_step(what: str, event: ReviewEvent, **details: Any) -> None:
    """Append a step of a model's history to the audit chain."""
    audit.record(
        what,
        event.model,
        by=event.by,
        by_id=event.by_id,
        event=event.pk,
        event_at=chain.moment(event.at),
        before=event.before,
        after=event.after,
        reason=event.reason,
        **details,
    )


def audit_models(models: Iterable[TreeModel]) -> AuditFindings:
    """Compare history, state, file and columns of these models with the audit chain."""
    report = AuditFindings([], [])
    for model in models:
        records = list(Record.objects.filter(subject="model", subject_id=model.pk))
        _check_history(model, records, report)
        _check_serving(model, records, report)
        _check_training(model, next((r for r in records if r.what == "trained"), None), report)
        _check_document(model, records, report)
        _check_shares(model, records, report)
        _check_doubt(model, records, report)
        _check_recording(model, records, report)
        _check_team(model, records, report)
    return report


def audit_datasets(datasets: Iterable[Dataset]) -> AuditFindings:
    """Compare the stored files and the columns of these data sets with the audit chain."""
    report = AuditFindings([], [])
    for dataset in datasets:
        record = Record.objects.filter(subject="dataset", subject_id=dataset.pk, what="uploaded").first()
        if record is None:
            report.problems.append(f"The data set {dataset} ({dataset.pk}) has no record of its upload.")
            continue
        recorded = record.details
        stored = {"sha256": dataset.sha256, "rows": dataset.rows}
        if "file" in recorded:  # the chain omits names chosen by visitors of the demo
            stored["file"] = dataset.source_name
        wrong = [name for name, value in stored.items() if recorded.get(name) != value]
        if wrong:
            report.problems.append(
                f"record {record.number}: the data set {dataset} says something else ({', '.join(wrong)})."
            )
        _check_stored_file(dataset, record, report)
        _check_team(dataset, list(Record.objects.filter(subject="dataset", subject_id=dataset.pk)), report)
    return report


def audit_teams() -> AuditFindings:
    """Compare the members of all teams and their roles with the audit chain."""
    report = AuditFindings([], [])
    recorded: dict[tuple[Any, int], Record] = {}
    for record in Record.objects.filter(subject="team", what__in=MEMBER_STEPS):
        recorded[record.subject_id, record.details["user_id"]] = record
    for member in Membership.objects.select_related("team", "user"):
        last = recorded.get((member.team_id, member.user_id))
        if last is None or last.what == "member removed" or last.details["role"] != member.role:
            place = "" if last is None else f"record {last.number}: "
            report.problems.append(f"{place}{member} has the role {member.role}, but no record says so.")
    return report


def _check_stored_file(dataset: Dataset, record: Record, report: AuditFindings) -> None:
    digest = hashlib.sha256()
    if (
        not dataset.file
        and Record.objects.filter(subject="dataset", subject_id=dataset.pk, what="file erased").exists()
    ):
        return
    try:
        with (dataset.file or dataset.counts).open("rb") as stream:
            while piece := stream.read(CHUNK_BYTES):
                digest.update(piece)
    except (FileNotFoundError, ValueError):
        report.problems.append(f"record {record.number}: the stored file of the data set {dataset} is gone.")
        return
    except StoreUnavailable as error:
        report.unchecked.append(f"the stored file of the data set {dataset}: {error}")
        return
    if digest.hexdigest() != record.details.get("sha256"):
        report.problems.append(f"record {record.number}: the stored file of the data set {dataset} was changed.")


def _check_history(model: TreeModel, records: list[Record], report: AuditFindings) -> None:
    steps = {r.details["event"]: r for r in records if "event" in r.details}
    events = list(model.events.select_related("by"))
    existing = {event.pk for event in events}
    for event in events:
        record = steps.get(event.pk)
        if record is None:
            report.problems.append(f"{model}: step {event.pk} of its history ({event.after}) has no record.")
        else:
            _check_event(model, event, record, report)
    report.problems.extend(
        f"record {r.number}: the step is missing in the history of {model}."
        for pk, r in steps.items()
        if pk not in existing
    )
    last = max(steps.values(), key=lambda r: r.number, default=None)
    if last is None:
        return
    if last.details["after"] != model.state:
        report.problems.append(
            f"record {last.number}: {model} is {model.state}, but its last record says {last.details['after']}."
        )
    if " version " in last.name and not last.name.endswith(f" version {model.version}"):
        report.problems.append(f"record {last.number}: {model} had another version number ({last.name}).")


def _check_event(model: TreeModel, event: ReviewEvent, record: Record, report: AuditFindings) -> None:
    stored = {"before": event.before, "after": event.after, "reason": event.reason}
    wrong = [name for name, value in stored.items() if record.details.get(name) != value]
    same_user = _is_same_user(event.by, record.details.get("by_id"), record.by)
    if same_user is False:
        wrong.append("by")
    elif same_user is None:
        report.unchecked.append(
            f"record {record.number}: who took the step of {model}; no account is called {record.by}."
        )
    if not _is_same_time(event.at, record.details.get("event_at"), record):
        wrong.append("at")
    if wrong:
        report.problems.append(
            f"record {record.number}: the history of {model} says something else ({', '.join(wrong)})."
        )
    if "event_at" not in record.details:
        report.unchecked.append(
            f"record {record.number}: the time of the step of {model}, beyond {TOLERANCE.seconds // 60} minutes."
        )


def _is_same_user(user: Any, recorded_id: int | None, recorded_name: str) -> bool | None:
    """Return whether a user, who may have been renamed, is the recorded one. None if an old record cannot tell.

    Records of earlier versions contain only the name at that time. If another account has this name now, the users
    differ.
    """
    if user is None:
        return True  # the account was removed, so nothing contradicts the record
    if recorded_id is not None:
        return user.pk == recorded_id
    if user.get_username() == recorded_name:
        return True
    name_in_use = get_user_model().objects.filter(username=recorded_name).exists()
    return False if name_in_use or not recorded_name else None


def _is_same_time(at: datetime, recorded: str | None, record: Record) -> bool:
    """Return whether a time is the recorded one. For old records without a time, compare with a tolerance."""
    if recorded is not None:
        return chain.moment(at) == recorded
    return abs(at - record.at) <= TOLERANCE


def _check_serving(model: TreeModel, records: list[Record], report: AuditFindings) -> None:
    """Compare the served name and its time with the last step that changed them."""
    last = next((r for r in reversed(records) if r.what in SERVES | ENDS), None)
    since = model.served_since
    if last is None:
        if since is not None:
            _report_unrecorded_service(model, records, report)
        return
    if (since is not None) != (last.what in SERVES):
        report.problems.append(
            f"record {last.number}: {model} is {'not ' if since is None else ''}served, but its last step about that says otherwise."
        )
        return
    if since is None:
        return
    if "served_since" not in last.details:
        report.unchecked.append(f"record {last.number}: since when {model} is served.")
    elif chain.moment(since) != last.details["served_since"]:
        report.problems.append(f"record {last.number}: {model} is served since another time.")
    if last.what == "served" and " version " in last.name and last.name != str(model):
        report.problems.append(f"record {last.number}: {model} is served under another name than {last.name}.")


def _report_unrecorded_service(model: TreeModel, records: list[Record], report: AuditFindings) -> None:
    """Report that a model is served without a record. Earlier versions wrote none."""
    if any(r.what == "trained" and "created" in r.details for r in records):
        report.problems.append(f"{model} is served, but no record says so.")
    else:
        report.unchecked.append(f"{model}: since when it is served, since no record says it.")


def _check_training(model: TreeModel, record: Record | None, report: AuditFindings) -> None:
    """Compare the columns that are not in the document with the record of the training."""
    if record is None:
        report.unchecked.append(f"{model}: title, data set and SHA-256, since no record tells of its training.")
        return
    recorded = record.details
    wrong = []
    first = model.events.select_related("by").filter(pk=recorded.get("event")).first()
    if first is not None and first.by_id not in (None, model.owner_id):
        wrong.append("owner")
    if "title" not in recorded:
        report.unchecked.append(f"record {record.number}: the title of {model}.")
    elif recorded["title"] != model.title:
        wrong.append("title")
    if not _is_same_time(model.created, recorded.get("created"), record):
        wrong.append("created")
    if model.dataset_id is not None and recorded.get("dataset", str(model.dataset_id)) != str(model.dataset_id):
        wrong.append("dataset")
    if recorded.get("method") not in (None, model.method):
        wrong.append("method")
    if wrong:
        report.problems.append(f"record {record.number}: {model} says something else ({', '.join(wrong)}).")


def _check_document(model: TreeModel, records: list[Record], report: AuditFindings) -> None:
    """Compare the hash of the model file, and the columns copied from it."""
    sha256 = hashlib.sha256(model.document.encode("utf-8", "surrogatepass")).hexdigest()
    expected = recorded_sha256(records)
    number = next((r.number for r in records if r.what == "trained"), 0)
    if expected is not None and sha256 != expected:
        report.problems.append(f"record {number}: the model file of {model} is not the one that was recorded.")
    if model.sha256 != sha256:
        report.problems.append(f"{model}: its SHA-256 is not that of its model file.")
    try:
        columns = columns_of(from_json(json.loads(model.document)))
    except (ModelFileError, ValueError) as error:
        report.problems.append(f"{model}: its model file cannot be read: {error}")
        return
    wrong = [name for name, value in columns.items() if getattr(model, name) != value]
    if wrong:
        report.problems.append(f"{model}: its columns are not those of its model file ({', '.join(wrong)}).")


def recorded_sha256(records: Iterable[Record]) -> str | None:
    """Return the recorded SHA-256 of a model's file, or None if old records lack it."""
    sha256 = None
    for record in records:
        if record.what == "trained":
            sha256 = record.details.get("sha256")
        elif record.what == REWRITTEN and record.details["sha256_before"] == sha256:
            sha256 = record.details["sha256"]
    return sha256


def _check_doubt(model: TreeModel, records: list[Record], report: AuditFindings) -> None:
    """Compare the doubt about the claim with the last check that decided it."""
    verdicts = (r for r in reversed(records) if r.what == "checked" and r.details.get("verdict") in DOUBTS_AFTER)
    last = next(verdicts, None)
    if last is None:
        if model.doubt == Doubt.REFUTED:
            report.problems.append(f"{model} is refuted (doubt), but no record says so.")
    elif model.doubt not in DOUBTS_AFTER[last.details["verdict"]]:
        report.problems.append(f"record {last.number}: {model} has another verdict (doubt).")


def _check_recording(model: TreeModel, records: list[Record], report: AuditFindings) -> None:
    """Compare what is kept of the answers, and for how long, with its last record."""
    last = next((r for r in reversed(records) if r.what == "recording"), None)
    recorded = {"recording": Recording.COUNTS} if last is None else last.details
    place = "" if last is None else f"record {last.number}: "
    if model.keep_days != recorded.get("keep_days"):
        report.problems.append(f"{place}{model} keeps its records for other days (keep_days) than the chain says.")
    if model.recording != recorded["recording"]:
        report.problems.append(f"{place}{model} keeps something else of its answers (recording) than the chain says.")


def _check_team(thing: TreeModel | Dataset, records: list[Record], report: AuditFindings) -> None:
    """Compare the team of a model or data set with the last record that names one."""
    last = next((r for r in reversed(records) if r.what in NAMES_TEAM), None)
    recorded = "" if last is None else last.details.get("team", "")
    if recorded != str(thing.team_id or ""):
        place = "" if last is None else f"record {last.number}: "
        report.problems.append(f"{place}{thing} belongs to another team than the chain says.")


def _check_shares(model: TreeModel, records: list[Record], report: AuditFindings) -> None:
    """Report shares without a record, or with another level or right."""
    steps = [r for r in records if r.what in ("shared", "no longer shared")]
    for share in model.shares.select_related("user"):
        user = share.user
        steps_of_user = [r for r in steps if _is_same_user(user, r.details.get("user_id"), r.details["user"])]
        last = steps_of_user[-1].details if steps_of_user else {}
        if (last.get("level"), last.get("records", False)) == (share.level, share.records):
            continue
        unclear = [r for r in steps if _is_same_user(user, r.details.get("user_id"), r.details["user"]) is None]
        if unclear and not steps_of_user:
            report.unchecked.append(f"record {unclear[-1].number}: whether {model} is shared with {user}.")
            continue
        report.problems.append(
            f"{model} is shared with {user} ({share.level}{', records' if share.records else ''}), but no record says so."
        )
