"""Compute the facts of a dossier as one record with stable names.

Pages and files are made from this record alone. Every number is counted on the rows or read from the model file. Texts by people
(purpose, limits, names) are in `about` alone, so that a reader can tell the two apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from trainer.check.recount import Finding, refuted, verdict, verify
from trainer.constraints import CONSTRAINTS
from trainer.counts.folder import holds_counts
from trainer.data.inspect_table import inspect_raw
from trainer.data.inspection import tree_warnings
from trainer.data.parsing import ColumnParsing
from trainer.data.reader import ReadLimits
from trainer.dossier import limits as use
from trainer.dossier import measures
from trainer.dossier.bootstraps import DossierLimits, bootstraps
from trainer.dossier.claim import claim
from trainer.dossier.counted import counted_parts
from trainer.dossier.rows import DossierRows, rows_of
from trainer.errors import ModelFileError
from trainer.evaluate.verdict import base_rate, read_verdict
from trainer.training.claims import weight_sentence, wishes_in_words
from trainer.training.unseen import unseen_words
from trainer.tree.describe import rules_text, split_text
from trainer.tree.document import publishable
from trainer.tree.file import ModelFile, read_model
from trainer.tree.nodes import Node, Tree
from trainer.tree.rules import rules_of
from trainer.version import VERSION

FORMAT = "octweb-dossier"
FORMAT_VERSION = 1
# packages that a training or a dossier uses, if they are installed
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "pyarrow", "highspy", "pyscipopt", "gurobipy", "Django")
MAX_GROUPING_COLUMNS = 6  # rows are grouped by at most this many of the most used columns
RESTRICTIONS = {p.name for p in CONSTRAINTS} | {"min_leaf", "max_card", "forbidden", "wish", "wishes"}


def dossier(
    model: str | Path,
    data: str | Path,
    proof: str | Path | None = None,
    *,
    data_name: str = "",
    groups: Sequence[str] = (),
    about: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    limits: ReadLimits | None = None,
) -> dict[str, Any]:
    """Build the dossier of a model file: its claim, the check of it, and measures on the rows of its training file.

    Parameters
    ----------
    model : str or Path
        The model file.
    data : str or Path
        The file that trained the model, or the folder of counts.
    proof : str or Path, optional
        The proof of the model.
    data_name : str
        Name of the data file, if `data` is a copy of it.
    groups : sequence of str
        Further columns of the file by which rows are grouped.
    about : mapping, optional
        Texts by people about the model, see docs/dossier.md.
    at : datetime, optional
        Time of the dossier, by default now.
    limits : ReadLimits, optional
        The largest file and table. `DossierLimits` also limit the time of trainings on bootstraps.

    Returns
    -------
    dict
        The record of docs/dossier.md, for `json.dumps`.

    Raises
    ------
    ModelFileError
        If the model file cannot be read, or the checker refutes a line or cannot judge the rows.
    DataError
        If the data file cannot be read, or does not have a column of `groups`.
    """
    findings = verify(model, data, proof)
    _refuse_refuted(findings)
    file = read_model(model)
    if holds_counts(data):
        parts = counted_parts(file, Path(data), data_name, tuple(groups))
    else:
        parts = _row_parts(file, Path(data), data_name, groups, limits)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "made": {"at": (at or datetime.now(UTC)).isoformat(timespec="seconds"), "by": f"octweb {VERSION}"} | software(),
        "about": dict(about or {}),
        "model": _model(file, publishable(Path(model).read_bytes())),
        "tree": _tree(file),
        "claim": claim(file),
        "check": {
            "verdict": verdict(findings),
            "lines": [_finding_record(f, file) for f in findings],
            "proof": None if proof is None else {"sha256": _sha256(Path(proof)), "bytes": Path(proof).stat().st_size},
        },
        "constraints": [_finding_record(f, file) for f in findings if f.claim.split()[0].strip("'\":") in RESTRICTIONS],
        "verdict": read_verdict(file).to_json(),
        "base_rate": None if (rate := base_rate(file)) is None else rate.to_json(),
        "warnings": tree_warnings(file.tree),
        **parts,
    }


def _row_parts(
    file: ModelFile, data: Path, name: str, groups: Sequence[str], limits: ReadLimits | None
) -> dict[str, Any]:
    """Return the members of a dossier that are counted on the rows of a file."""
    rows = rows_of(file, data, limits=limits)
    columns = measures.group_columns(rows, groups, MAX_GROUPING_COLUMNS)
    part = "unseen" if len(rows.unseen) else "training"
    return {
        "data": _data(rows, data, name),
        "error_floor": measures.error_floor(rows),
        "performance": {
            "unseen": measures.performance(rows, rows.unseen),
            "training": measures.performance(rows, rows.training),
            "cross_validation": measures.cross_validation(file),
            "about": unseen_words(file),
        },
        "subgroups": {
            "rows": part,
            "columns": measures.subgroups(rows, rows.unseen if part == "unseen" else rows.training, columns),
        },
        "calibration": measures.calibration(rows),
        "stability": measures.stability(rows),
        "bootstraps": bootstraps(rows, limits.bootstrap_seconds if isinstance(limits, DossierLimits) else 0.0),
        "limits_of_use": {"sentences": use.limit_sentences(file.tree), "outside_training": use.count_outside(rows)},
    }


def software() -> dict[str, Any]:
    """Return the versions of Python and of the installed packages that train or count, as member `software`."""
    versions = {"Python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {"software": versions}


def _model(file: ModelFile, text: bytes) -> dict[str, Any]:
    return {
        "name": file.name,
        "method": file.method,
        "target": file.target,
        "classes": list(file.tree.classes),
        "written_by": f"octweb {file.version}" if file.version else "",
        "solver": " ".join(filter(None, (file.certificate.get("solver"), file.certificate.get("solver_version")))),
        "sha256": hashlib.sha256(text).hexdigest(),
        "bytes": len(text),
        "parameters": dict(file.parameters),
    }


def _finding_record(finding: Finding, file: ModelFile) -> dict[str, str]:
    """Return a line of the check, with wishes in words."""
    return {name: wishes_in_words(text, file.certificate) for name, text in finding.to_json().items()}


def _refuse_refuted(findings: Sequence[Finding]) -> None:
    if refuted(findings):
        line = next(f for f in findings if f.verdict == "refuted")
        raise ModelFileError(
            f"The check refutes the line '{line.claim}' of the model file, so no dossier is written: {line.detail}"
        )
    if verdict(findings) == "cannot be judged":
        line = next(f for f in findings if f.verdict == "cannot be judged")
        raise ModelFileError(
            f"The check cannot judge the line '{line.claim}' on these rows, so no dossier is written: {line.detail}"
        )


def _data(rows: DossierRows, path: Path, name: str) -> dict[str, Any]:
    file = rows.model
    classes = range(len(rows.model.tree.classes))
    trained = np.bincount(rows.codes[rows.training], minlength=len(classes))
    unseen = np.bincount(rows.codes[rows.unseen], minlength=len(classes))
    file_rows = len(rows.raw)
    return {
        "file": name or path.name,
        "sha256": _sha256(path),
        "sha256_is_of": "a stored copy" if name else "the file",
        "rows": file_rows,
        "rows_used": len(rows.codes),
        "rows_left_out": {"empty_cells": rows.gaps, "class_missing_or_unknown": rows.no_class},
        "training_rows": len(rows.training),
        "unseen_rows": len(rows.unseen),
        "weighted": bool((file.rows or {}).get("weights")),
        "weights": weight_sentence(file.certificate),
        "target": file.target,
        "classes": [
            {"class": file.tree.classes[k], "rows": int(trained[k] + unseen[k]), "training": int(trained[k]), "unseen": int(unseen[k])}
            for k in classes
        ],
        "columns": use.columns(rows),
        "unknown_categories": dict(rows.unknown),
        "reading": list(ColumnParsing.from_json(file.reading).notes) if file.reading else [],
        "fingerprint": file.fingerprint,
        "findings": _findings(rows),
    }  # fmt: skip


def _findings(rows: DossierRows) -> list[dict[str, str]]:
    """Return the intake report of the table as the model reads it, the worst finding first."""
    file = rows.model
    schema = file.tree.schema
    reading = ColumnParsing.from_json(file.reading)
    model_columns = {column.name for column in schema}
    plain = reading.for_target(file.target).names(rows.raw.names)
    kinds = {column.name: column.kind for column in schema}
    findings = inspect_raw(
        rows.raw,
        reading,
        target=file.target,
        ignore=[name for name in plain if name not in model_columns and name != file.target],
        kinds=kinds,
        posted_kinds=kinds,
        missing={column.name: column.missing for column in schema},
        special={column.name: column.special for column in schema if column.special},
    )
    members = ("kind", "column", "severity", "figure", "sentence", "if_nothing")
    # the table was used for training, so 'not_trainable' is wrong here; it also quotes cells
    return [
        {name: getattr(finding, name) for name in members} for finding in findings if finding.kind != "not_trainable"
    ]


def _tree(file: ModelFile) -> dict[str, Any]:
    tree = file.tree
    return {
        "leaves": tree.n_leaves,
        "depth": tree.depth,
        "columns_asked": [tree.schema[j].name for j in tree.used_columns],
        "nodes": [_node(tree, v) for v in tree.nodes],
        "rules": [rule.to_json() for rule in rules_of(tree)],
        "text": rules_text(tree, file.certificate),
    }


def _node(tree: Tree, v: Node) -> dict[str, Any]:
    record: dict[str, Any] = {"id": v.id, "class": tree.classes[v.label], "counts": list(v.counts)}
    if v.split is None:
        return record
    return record | {
        "question": split_text(v.split, tree.schema),
        "yes": v.left,
        "no": v.right,
        "proved": v.split_proved if v.impurity_bound is not None else None,
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
