"""`verify MODEL.json DATA`: recompute the claims of a model file.

The code shares nothing with the training.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from trainer.check.recount import Finding, verdict, verify
from trainer.check.recount.findings import unjudged_finding
from trainer.cli.command import FAILED, CommandError, Options, error_text
from trainer.errors import TrainerError

HELP = (
    "Check every claim of a model file against the rows it was trained on. Exit status 0 if the verdict is 'proved' or "
    "'recounted' (with --require proved only for the first), otherwise 1."
)
PASSED = ("proved", "recounted")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json")
    parser.add_argument(
        "data",
        metavar="DATA",
        help="CSV (also .gz), .xlsx, Parquet or Arrow: the file that was uploaded; or the folder of counts",
    )
    parser.add_argument("--proof", metavar="FILE", help="the proof that goes with the model")
    parser.add_argument("--require", choices=["proved"], help="fail unless this is the verdict")
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write the JSON there; without --require any verdict then ends with status 0",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")


def run(options: Options) -> int:
    try:
        # more threads slow small products down; an environment variable would come too late in a forked job, which has
        # loaded NumPy
        with threadpool_limits(limits=1, user_api="blas"):
            findings = verify(options["model"], options["data"], options["proof"])
    except (TrainerError, OSError) as error:
        if options["json"]:
            print(_json([unjudged_finding("files", error_text(error), "basis")]))
        raise CommandError(error_text(error)) from error
    for finding in findings:
        print(f"{finding.verdict:16s} {finding.claim}: {finding.detail}")
    print(f"Verdict: {verdict(findings)}")
    report = _json(findings)
    if options["json"]:
        print(report)
    if options["report"]:
        Path(options["report"]).write_text(report, encoding="utf-8")
    return 0 if _has_passed(verdict(findings), options) else FAILED


def _has_passed(outcome: str, options: Options) -> bool:
    if options["require"]:
        return outcome == options["require"]
    return bool(options["report"]) or outcome in PASSED


def _json(findings: Sequence[Finding]) -> str:
    return json.dumps({"verdict": verdict(findings), "claims": [f.to_json() for f in findings]})
