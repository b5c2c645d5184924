"""Write a dossier, or verify one with `--check FOLDER`.

Called as `manage.py dossier MODEL.json DATA --output FOLDER`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError

from octweb.dossier import folder as files
from octweb.dossier import keys, pdf, signing
from octweb.dossier.clauses import clause_tables, open_clauses
from octweb.dossier.texts import TYPED
from trainer.cli.command import error_text
from trainer.cli.reading_flags import OWN_FILES
from trainer.dossier import DossierLimits, dossier
from trainer.errors import TrainerError

SHOWN = {
    True: "These files are, bit for bit, those that the installation with this key made.",
    False: "This does not show who made them: give the key of the installation with --key, as a file or as its SHA-256.",
}
NOT_SHOWN = "A signature does not show that the model is good, who pressed the button, or that the time is right."


class Command(BaseCommand):
    help = (
        "Write the dossier of a model: dossier.html, dossier.pdf, dossier.json, the model, its proof, a checker, and a signature. "
        "With --check verify the signature of a dossier: exit status 0 if every file is as it was signed and the signer is known, otherwise 1."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model", metavar="MODEL.json", nargs="?")
        parser.add_argument(
            "data",
            metavar="DATA",
            nargs="?",
            help="CSV (also .gz), .xlsx, Parquet or Arrow: the file that was uploaded, or a folder of counts",
        )
        parser.add_argument("--output", metavar="FOLDER", help="a new or empty folder")
        parser.add_argument("--proof", metavar="FILE", help="the proof that goes with the model")
        parser.add_argument(
            "--group", action="append", default=[], metavar="COLUMN", help="group rows by this column, too"
        )
        parser.add_argument("--title", help="default: the name in the model file")
        for name, (_, words) in TYPED.items():
            parser.add_argument(f"--{name.replace('_', '-')}", default="", metavar="TEXT", help=words)
        parser.add_argument("--ends", default="", metavar="TEXT", help="what would end the approval")
        parser.add_argument(
            "--about", metavar="FILE", help="what people say about the model, as JSON (docs/dossier.md)"
        )
        parser.add_argument("--data-name", default="", metavar="NAME", help="the name of the data file in the document")
        parser.add_argument(
            "--bootstrap-seconds",
            type=int,
            default=settings.DOSSIER_BOOTSTRAP_SECONDS,
            metavar="SECONDS",
            help="time limit of 20 trainings on bootstraps (default %(default)s); 0: none",
        )
        parser.add_argument("--without-pdf", action="store_true")
        parser.add_argument("--unsigned", action="store_true", help="leave the signature out")
        parser.add_argument("--check", metavar="FOLDER", help="verify a dossier")
        parser.add_argument(
            "--key", action="append", default=[], metavar="KEY", help="a known key, for --check: PEM file or SHA-256"
        )
        parser.add_argument(
            "--register-key",
            action="store_true",
            help="let hosts without a key file sign with that of this host, which is made if it is not there",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object as the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["register_key"]:
                self._register()
            elif options["check"]:
                self._check(options)
            else:
                self._write(options)
        except (TrainerError, signing.BadKey, OSError, ValueError) as error:
            raise CommandError(error_text(error)) from error

    def _write(self, options: dict[str, Any]) -> None:
        if not (options["model"] and options["data"] and options["output"]):
            raise CommandError(
                "Arguments are missing. Give MODEL.json, DATA and --output FOLDER, or only --check FOLDER.",
                returncode=2,
            )
        folder = _empty(Path(options["output"]))
        key = None if options["unsigned"] else keys.command_key()
        about = _about(options)
        if key is not None:
            about["signing"] = signing.public_record(key.public_key())
        proof = Path(options["proof"]) if options["proof"] else None
        limits = DossierLimits(**vars(OWN_FILES), bootstrap_seconds=options["bootstrap_seconds"])
        record = dossier(
            options["model"],
            options["data"],
            proof,
            data_name=options["data_name"],
            groups=options["group"],
            about=about,
            limits=limits,
        )
        record["clauses"] = clause_tables(record)
        files.write(folder, record, Path(options["model"]), proof, pdf=not options["without_pdf"])
        if not (options["without_pdf"] or pdf.can_print()):
            self.stderr.write(f"note: {pdf.MISSING}")
        if key is not None:
            signing.sign(folder, key)
        names = sorted(p.name for p in folder.iterdir())
        self.stdout.write(f"{folder}: {', '.join(names)}")
        if options["json"]:
            summary = {"folder": str(folder), "files": names, "verdict": record["check"]["verdict"]}
            summary["open_clauses"] = open_clauses(record["clauses"])
            self.stdout.write(
                json.dumps(summary | {"signed": key is not None, "model_sha256": record["model"]["sha256"]})
            )

    def _register(self) -> None:
        key = keys.register(signing.private_key(settings.DOSSIER_KEY))
        self.stdout.write(
            f"Hosts without a key file sign with the key whose SHA-256 is {signing.fingerprint(key.public_key())}."
        )

    def _check(self, options: dict[str, Any]) -> None:
        folder = Path(options["check"])
        if not folder.is_dir():
            raise CommandError(
                f"{folder} is not a folder. Give the folder that holds {signing.MANIFEST} of the dossier."
            )
        findings = signing.check(folder, trusted=_trusted_fingerprints(options["key"]))
        for problem in findings.problems:
            self.stdout.write(problem)
        if not findings.problems:
            self.stdout.write(
                f"{len(findings.files)} files are unchanged since they were signed with the key whose SHA-256 is {findings.fingerprint}."
            )
            self.stdout.write(SHOWN[findings.known])
            self.stdout.write(NOT_SHOWN)
        if options["json"]:
            record = {"holds": findings.holds, "problems": list(findings.problems), "signer_known": findings.known}
            self.stdout.write(json.dumps(record | {"fingerprint": findings.fingerprint, "files": list(findings.files)}))
        if not findings.holds:
            sys.exit(1)


def _empty(folder: Path) -> Path:
    """Create the folder if needed, and return it. Raises CommandError if it is not empty."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CommandError(
            f"The folder {folder} is not empty. Name a new one, since all files of a folder are signed together."
        )
    return folder


def _about(options: dict[str, Any]) -> dict[str, Any]:
    """Return the texts in the file `--about`. Other options override them."""
    texts: dict[str, Any] = {}
    if options["about"]:
        texts = json.loads(Path(options["about"]).read_text(encoding="utf-8"))
        if not isinstance(texts, dict):
            raise CommandError(f"{options['about']} is not a JSON object. Its form is in docs/dossier.md.")
    purpose = {
        label: options[name] or (texts.get("purpose") or {}).get(label, "") for name, (label, _) in TYPED.items()
    }
    more = {name: options[name] for name in ("title", "ends") if options[name]}
    return texts | {"purpose": purpose} | more


def _trusted_fingerprints(texts: list[str]) -> frozenset[str]:
    """Return the fingerprints of the keys in `texts` or, if there are none, of this installation's keys."""
    fingerprints = set()
    for text in texts:
        plain = text.strip().lower().replace(":", "")
        if len(plain) == 64 and all(c in "0123456789abcdef" for c in plain):
            fingerprints.add(plain)
        else:
            fingerprints.add(signing.fingerprint(signing.read_public(Path(text).read_bytes())))
    return frozenset(fingerprints) if texts else keys.known_fingerprints()
