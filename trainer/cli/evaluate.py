"""`evaluate`: compare methods by cross-validation, with ranks and tests."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer.cli.command import CommandError, Options, note
from trainer.cli.orphans import exit_with_parent
from trainer.cli.parameters import add_parameter_flags, parameters_of
from trainer.cli.reading_flags import (
    add_reading_flags,
    given_of,
    policies_of,
    policy_of,
    reading_of_file,
    unknown_policies,
)
from trainer.cli.training import add_dependence_flags, with_schema
from trainer.data.reader import load
from trainer.errors import DataError, ParameterError
from trainer.evaluate import FoldRecord, Study, StudyDataset, Variant, report, run_study
from trainer.evaluate.folded import with_folds
from trainer.evaluate.page import evaluation_page
from trainer.evaluate.tables import StudyReport
from trainer.evaluate.verdict import summary_members
from trainer.methods.base import Method
from trainer.registry import METHODS, get
from trainer.table import ColumnKind
from trainer.training.rewarded import as_costs, with_reward
from trainer.training.run import TrainRequest, save, train
from trainer.tree.file import write_atomically
from trainer.tree.numbers import points_text

CONNECT_SECONDS = 10

HELP = "Compare methods by cross-validation, on the same folds of one or many data sets."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="CSV (also .gz), .xlsx, Parquet or Arrow; names with --manifest"
    )
    parser.add_argument("--target", default="class", metavar="COLUMN", help="the column to predict ('class')")
    parser.add_argument(
        "--method",
        action="append",
        required=True,
        choices=[m.id for m in METHODS],
        help="repeat it to compare; the first is the control of Holm's test",
    )
    add_parameter_flags(parser)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument(
        "--pruned", action="store_true", help="every method also with its pruning chosen by inner cross-validation"
    )
    parser.add_argument("--all-threads", action="store_true", help="time every fold with all processors as well")
    parser.add_argument("--jobs", type=int, default=1, help="folds at once; times are then measured on a busy machine")
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME=V1,V2,…",
        help="every method that has the parameter with each of these values; repeat it for all combinations",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        default=os.environ.get("OCTWEB_DASK", ""),
        help="compute the folds on this dask cluster (OCTWEB_DASK)",
    )
    parser.add_argument("--state", metavar="FILE", help="keep finished folds here and continue from them")
    parser.add_argument("--manifest", metavar="FILE", help="JSON list of data sets: name, file, numeric_features, …")
    add_reading_flags(parser)
    add_dependence_flags(parser)
    parser.add_argument("--categorical", action="append", default=[], metavar="COLUMN", help="read it as categories")
    parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="a column to leave out")
    parser.add_argument("--schema", metavar="FILE", help="JSON list of columns: name, kind, missing, unit, role")
    parser.add_argument("--test-share", type=float, default=0.0, help="share of the rows held out of all folds")
    parser.add_argument(
        "--nested", action="store_true", help="leave out every pair of folds, too, to judge the choice of a method"
    )
    parser.add_argument(
        "--model", metavar="MODEL.json", help="train the one method on all rows that are not held out, and write it"
    )
    parser.add_argument("--name", default="", help="a name, stored in that model file")
    parser.add_argument("--output", metavar="FOLDER", help="write results.md, results.csv and results.html there")
    parser.add_argument("--json", action="store_true", help="the last line of standard output is one JSON object")


def run(options: Options) -> int:
    try:
        _evaluate(options)
    except KeyboardInterrupt as error:
        folds = f"; the finished folds are in {options['state']}" if options["state"] else ""
        raise CommandError(f"interrupted{folds}") from error
    return 0


def _evaluate(options: Options) -> None:
    exit_with_parent()
    variants = _variants(options)
    if options["model"] and (len(variants) > 1 or len(options["data"]) > 1):
        raise ParameterError({"model": "--model writes one model. Give one data set and one method."})
    study = Study(
        datasets=_datasets(options),
        variants=variants,
        folds=options["folds"],
        seed=int(options.get("seed") or 0),
        threads=_threads(options),
        test_share=options["test_share"],
        nested=options["nested"],
    )
    records = run_study(
        study,
        path=Path(options["state"]) if options["state"] else None,
        jobs=_jobs(options),
        context=_dask(options["dask"]),
        on_record=_print_fold,
    )
    comparison = report(study, records)
    summary = _train_on_all(study, records, options) if options["model"] else {}
    if options["output"]:
        folder = Path(options["output"])
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "results.md", comparison.to_markdown().encode())
        write_atomically(folder / "results.csv", comparison.to_csv().encode())
        write_atomically(folder / "results.html", evaluation_page(comparison).encode())
    if options["json"]:
        print(json.dumps(comparison.to_json() | summary, allow_nan=False))
    else:
        print(comparison.to_markdown(), end="")
    note_failures(comparison)


def note_failures(comparison: StudyReport) -> None:
    """Print a note for each method and data set with failed folds; raise CommandError if no fold at all ended with a tree."""
    for cell in comparison.cells:
        if cell.failed:
            note(f"{cell.variant} on {cell.dataset}: {cell.failed} of {cell.folds} folds failed: {cell.error}")
    if all(cell.failed == cell.folds for cell in comparison.cells):
        raise CommandError("every fold of every method failed. The notes above state the reasons")


def _print_fold(record: FoldRecord, finished: int, total: int) -> None:
    base = ""
    if record.base_correct is not None:
        base = f" (always the most frequent class: {points_text(record.base_correct / record.n)} %)"
    end = record.error or f"{points_text(record.accuracy)} %{base}, {record.leaves} leaves, {record.seconds:.2f} s"
    print(f"{finished}/{total} {record.dataset}, {record.variant}, fold {record.fold + 1}: {end}", file=sys.stderr)


def _train_on_all(study: Study, records: list[FoldRecord], options: Options) -> dict[str, Any]:
    """Train the only variant on all rows that are not held out; return its summary as `whole`.

    The model file also stores the results of the folds if they used all these rows.
    """
    variant = study.variants[0]
    dataset = study.datasets[0]
    seeded = {"seed": study.seed} if get(variant.method).parameter("seed") else {}
    request, earned = as_costs(
        TrainRequest(
            table=dataset.table,
            labels=dataset.labels,
            method=variant.method,
            parameters={**variant.parameters, **seeded},
            test_share=study.test_share,
            name=options["name"],
        )
    )
    result = with_reward(train(request), request, earned)
    model = with_folds(result.model, study, records)
    save(model, options["model"])
    return {"whole": result.summary | summary_members(model)}


def _variants(options: Options) -> list[Variant]:
    """Return a variant for every method, and with `--pruned` one more for each that can be pruned."""
    methods = [get(name) for name in dict.fromkeys(options["method"])]
    general = [pair for pair in options["extra"] if "." not in pair.partition("=")[0]]
    variants = []
    pruned = []
    for method in methods:
        specific = [p.removeprefix(f"{method.id}.") for p in options["extra"] if p.startswith(f"{method.id}.")]
        common = [p for p in general if method.parameter(p.partition("=")[0].strip().replace("-", "_"))]
        raw, _ = parameters_of(method, {**options, "extra": [*common, *specific]})
        raw.pop("threads", None)
        variants.append(
            Variant(label=method.title, method=method.id, parameters=raw, group="unpruned" if options["pruned"] else "")
        )
        if options["pruned"] and method.parameter("pruning"):
            pruned.append(
                Variant(
                    label=f"{method.title}, pruned",
                    method=method.id,
                    parameters=raw | {"pruning": "cross-validation"},
                    group="pruned",
                )
            )
    for pair in options["extra"]:
        name = pair.partition("=")[0].strip()
        owner, dot, parameter = name.rpartition(".")
        takers = [m for m in methods if not dot or m.id == owner]
        if not any(m.parameter(parameter.replace("-", "_")) for m in takers):
            raise ParameterError(
                {
                    "set": f"no method of this comparison has the parameter '{name}'. Correct the name, or compare a method that has it."
                }
            )
    return [v for variant in [*variants, *pruned] for v in _sweep(variant, options["sweep"], methods)]


def _sweep(variant: Variant, sweeps: list[str], methods: list[Method]) -> list[Variant]:
    """Return one variant for each combination of swept values.

    Sweeps over parameters that the variant's method lacks are skipped.
    """
    combinations = [variant]
    method = get(variant.method)
    for sweep in sweeps:
        name, equals, values = sweep.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not any(m.parameter(name) for m in methods):
            raise ParameterError(
                {"sweep": f"'{sweep[:80]}' must be NAME=V1,V2,… with a parameter of these methods, as in depth=2,3."}
            )
        if method.parameter(name) is None:
            continue
        texts = list(dict.fromkeys(value.strip() for value in values.split(",")))
        combinations = [
            replace(
                v, label=f"{v.label}, {name} {text}", parameters={**v.parameters, **_parse_value(method, name, text)}
            )
            for v in combinations
            for text in texts
        ]
    return combinations


def _parse_value(method: Method, name: str, text: str) -> dict[str, Any]:
    return {name: method.settings({name: text}).to_json()[name]}


def _datasets(options: Options) -> list[StudyDataset]:
    """Read the data sets of the command, and note each column that is left out."""
    if options["manifest"]:
        return _from_manifest(options)
    datasets = []
    reading: dict[str, Any] = {
        "target": options["target"],
        "ignore": list(options["ignore"]),
        "default_missing": policy_of(options),
        "missing": policies_of(options),
        "unknown": unknown_policies(options),
        "given": given_of(options),
        "reading": reading_of_file(options),
        "kinds": dict.fromkeys(options["categorical"], ColumnKind.CATEGORICAL),
        "group": options["group"],
        "time": options["time"],
        "weight": options["weight"],
    }
    if options["schema"]:
        reading = with_schema(reading, options["schema"])
    for path in options["data"]:
        table, labels, report = load(path, **reading)
        for name, reason in report.left_out.items():
            note(f"Column '{name}' was left out: {reason}.")
        datasets.append(StudyDataset(name=Path(path).name.split(".")[0], table=table, labels=labels))
    return datasets


def _from_manifest(options: Options) -> list[StudyDataset]:
    """Read data sets by name from a manifest, a JSON list of files and column kinds."""
    path = Path(options["manifest"])
    try:
        entries = {entry["name"]: entry for entry in json.loads(path.read_text(encoding="utf-8"))}
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{path} is not a JSON list of data sets with names: {error}. Write objects with name and file."
        ) from error
    datasets = []
    for name in options["data"]:
        if name not in entries:
            raise ParameterError({"data": f"the manifest has no '{name}'. It has: {', '.join(sorted(entries))}."})
        entry = entries[name]
        table, labels, _ = load(
            path.parent / entry["file"],
            target=entry.get("target") or options["target"],
            ignore=[*options["ignore"], *entry.get("ignore", [])],
            default_missing=policy_of(options),
            missing=policies_of(options),
            unknown=unknown_policies(options),
            group=options["group"],
            time=options["time"],
            weight=options["weight"],
            kinds=dict.fromkeys(entry.get("categorical_features", []), ColumnKind.CATEGORICAL)
            | dict.fromkeys(entry.get("numeric_features", []), ColumnKind.NUMERIC),
        )
        datasets.append(StudyDataset(name=name, table=table, labels=labels))
    return datasets


def _threads(options: Options) -> tuple[int, ...]:
    first = int(options.get("threads") or 1)
    return tuple(dict.fromkeys((first, os.cpu_count() or 1))) if options["all_threads"] else (first,)


def _jobs(options: Options) -> int:
    if options["jobs"] == 0 or options["jobs"] < -1:
        raise ParameterError({"jobs": f"must be at least 1, or -1 for all processors. It is {options['jobs']}."})
    return -1 if options["dask"] else int(options["jobs"])


@contextmanager
def _dask(address: str | None) -> Iterator[None]:
    """Run joblib on the dask cluster at `address` within the block; do nothing without an address.

    dask is an optional requirement.
    """
    if not address:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ParameterError(
            {"dask": "dask.distributed is not installed. Install it with pip install 'octweb[hosts]'."}
        ) from error
    import joblib

    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise DataError(
            f"There is no dask scheduler at {address}. Start it, or correct the address of --dask."
        ) from error
    with client, joblib.parallel_config(backend="dask"):
        yield
