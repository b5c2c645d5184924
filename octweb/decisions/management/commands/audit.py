"""Print the audit records, and check the chain: `manage.py audit [MODEL]`."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping
from typing import Any

from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError

from octweb.audit import actions as audit
from octweb.audit.models import Record
from octweb.datasets.models import Dataset
from octweb.decide.actions import audit_guidance
from octweb.decisions.audited import DecisionAudit, audit_decisions
from octweb.decisions.models import Block
from octweb.decisions.replaying import beginning_of, versions_by_name
from octweb.dossier.actions import audit_dossiers
from octweb.registry.lifecycle.audit_trail import audit_datasets, audit_models, audit_teams
from octweb.registry.models import TreeModel

UNPRINTED = {"event", "by_id", "user_id"}  # database keys, which only the JSON output contains


class Command(BaseCommand):
    help = (
        "Print the recorded decisions (uploads, trainings, checks, steps of the review, publication, sharing, exports) and check the "
        "chain. Exit status 1 if a record was changed, removed or added, or if a model is not as the records say."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "model", metavar="MODEL", nargs="?", help="id or name (name: all versions, name/2: one version)"
        )
        parser.add_argument(
            "--holds",
            metavar="SHA256",
            help="also fail if no record has this hash, which a dossier contains; with --decisions: no block, which an anchor contains",
        )
        parser.add_argument("--decisions", action="store_true", help="check the chain of decisions on record instead")
        parser.add_argument(
            "--model",
            metavar="NAME",
            default="",
            dest="served_name",
            help="with --decisions: compare only the content of this model's records",
        )
        parser.add_argument(
            "--since",
            metavar="DAY",
            default="",
            help="with --decisions: only of blocks from this day on, such as 2026-03-31",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object as the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["decisions"]:
            self._decisions(options)
            return
        if options["served_name"] or options["since"]:
            raise CommandError("--model and --since need --decisions.")
        models = _models(options["model"])
        about_models = audit_models(models)
        about_data = audit_datasets(_datasets(options["model"], models))
        about_pages = audit_guidance(models)
        reports = [about_models, about_data, about_pages, audit_dossiers(models), audit_teams()]
        problems = audit.broken() + [problem for report in reports for problem in report.problems]
        unchecked = [gap for report in reports for gap in report.unchecked]
        if options["holds"] and not Record.objects.filter(digest=options["holds"].strip().lower()).exists():
            problems.append(f"No record has the hash {options['holds'][:64]}: the chain was rewritten since.")
        records = _records(options["model"], models)
        if options["json"]:
            counts = {
                "records": [r.to_json() for r in records],
                "whole": not problems,
                "problems": problems,
                "unchecked": unchecked,
            }
            self.stdout.write(json.dumps(counts | {"head": audit.end()["head"]}, ensure_ascii=False))
        else:
            for record in records:
                self.stdout.write(_line(record))
            self.stdout.write(f"{audit.end()['records']} records in the chain, the last hash is {audit.end()['head']}.")
        for problem in problems:
            self.stderr.write(problem)
        for gap in unchecked if not options["json"] else ():
            self.stdout.write(f"Not checked, since the record of an earlier version does not hold it: {gap}")
        if problems:
            sys.exit(1)
        if not options["json"]:
            self.stdout.write("The chain is complete.")

    def _decisions(self, options: Mapping[str, Any]) -> None:
        name = options["model"] or options["served_name"]
        since = options["since"]
        as_json = options["json"]
        models = versions_by_name(name) if name else None
        report = audit_decisions(models=models, since=beginning_of(since) if since else 0)
        problems = audit.broken() + report.problems
        held = options["holds"].strip().lower() if options["holds"] else ""
        if held and not Block.objects.filter(digest=held).exists():
            problems.append(f"No block has the hash {held[:64]}: the chain of decisions was rewritten since.")
        if as_json:
            counts = {
                "records": report.records,
                "checked": report.checked,
                "erased": dict(report.erased),
                "cut_streams": report.cut_streams,
                "unrecorded": report.unrecorded,
                "anchored": report.anchored,
            }
            self.stdout.write(json.dumps(counts | {"whole": not problems, "problems": problems}))
        else:
            cut = f", {report.cut_streams} processes ended without closing their file" if report.cut_streams else ""
            self.stdout.write(f"Records of decisions: {report.records:,}, {_erased_words(report)}{cut}.")
            if report.anchored:
                self.stdout.write(f"Anchored last: {report.anchored}.")
            if report.unrecorded:
                self.stdout.write(f"Rows answered without a record, because there was no room: {report.unrecorded:,}.")
            if name or since:
                self.stdout.write(f"Only the content of {report.checked:,} records was compared.")
        for problem in problems:
            self.stderr.write(problem)
        if problems:
            sys.exit(1)
        if not as_json:
            self.stdout.write("The chain is complete.")


def _erased_words(report: DecisionAudit) -> str:
    reasons = ", ".join(f"{number} by {why}" for why, number in sorted(report.erased.items()))
    return f"{report.erased.total()} erased" + (f" ({reasons})" if reasons else "")


def _models(name: str | None) -> list[TreeModel]:
    """Return all models, or those with this id or name, including deleted ones. Raises CommandError.

    An unknown name is accepted if records mention it.
    """
    models = TreeModel.objects.select_related("family").order_by("family__name", "version")
    if not name:
        return list(models)
    try:
        matches = list(models.filter(pk=uuid.UUID(name)))
    except ValueError:
        family, _, version = name.partition("/")
        chosen = models.filter(family__name=family)
        matches = list(chosen.filter(version=int(version)) if version.isdigit() else chosen)
    if not matches and not Record.objects.filter(name__startswith=name).exists():
        raise CommandError(f"There is no model '{name}'. Give its id, its name, or name/version.")
    return matches


def _datasets(name: str | None, models: list[TreeModel]) -> list[Dataset]:
    """Return all data sets or, if a name was given, those of `models`. Deleted ones are included."""
    datasets = Dataset.objects.order_by("created")
    return list(datasets.filter(pk__in={m.dataset_id for m in models}) if name else datasets)


def _records(name: str | None, models: list[TreeModel]) -> list[Record]:
    """Return all records. With a name, return those about these models and their data sets, or else about that name."""
    if not name:
        return list(Record.objects.all())
    about: set[Any] = {m.pk for m in models} | {m.dataset_id for m in models if m.dataset_id}
    chosen = Record.objects.filter(subject_id__in=about)
    return list(chosen if about else Record.objects.filter(name__startswith=name))


def _line(record: Record) -> str:
    details = ", ".join(f"{k} {v}" for k, v in record.details.items() if v not in ("", None) and k not in UNPRINTED)
    who = record.by or "octweb"
    return f"{record.number:>6}  {record.to_json()['at'][:19]}  {who}  {record.what}  {record.name}{f' ({details})' if details else ''}  {record.digest[:12]}"
