"""Export a model as a file, in one of many formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from octweb.audit import actions as audit
from octweb.core.attachments import as_file
from octweb.registry import hooks
from octweb.registry.document.model_files import document_of, model_file
from octweb.registry.document.units import FROM_TREE, statistics_of
from octweb.registry.models import TreeModel
from trainer.data.table_contract import model_contract
from trainer.explain.permission import permissions
from trainer.model_page import Subject, to_html
from trainer.tree.export.forms import export

Write = Callable[[Subject], str | bytes]


@dataclass(frozen=True, kw_only=True)
class DownloadFormat:
    """An export format: its words on pages, file extension, media type and writer."""

    label: str
    purpose: str
    ending: str
    media_type: str
    write: Write


def _contract(subject: Subject) -> str:
    return json.dumps(model_contract(subject.file), ensure_ascii=False, indent=1)


def _export(form: str) -> Write:
    return lambda subject: export(subject.file, form, subject.title)


# name of a format in URLs → label, purpose, extension, media type and writer
FORMATS: dict[str, DownloadFormat] = {
    name: DownloadFormat(label=label, purpose=purpose, ending=ending, media_type=media_type, write=write)
    for name, label, purpose, ending, media_type, write in (
        ("json", "octweb JSON", "predict and verify without this site", "json", "application/json", lambda subject: subject.document),
        ("html", "One HTML file", "questions, answers, tree and certificate; works from disk without a network", "html", "text/html", to_html),
        ("contract", "Table contract", "what each column and class means", "json", "application/json", _contract),
        ("rules", "Rules as text", "for a policy document, every question in words", "txt", "text/plain", _export("rules")),
        ("onnx", "ONNX", "runtimes of many languages", "onnx", "application/octet-stream", _export("onnx")),
        ("pmml", "PMML", "scoring engines and databases", "pmml", "application/xml", _export("pmml")),
        ("python", "Python", "one file, no library needed", "py", "text/x-python", _export("python")),
        ("sql", "SQL", "a CASE expression, scores inside the database", "sql", "application/sql", _export("sql")),
        ("javascript", "JavaScript", "an ES module, no library needed", "mjs", "text/javascript", _export("javascript")),
        ("c", "C", "C99, for devices and other languages", "c", "text/x-c", _export("c")),
        ("java", "Java", "one class, no library needed; save it as OctwebTree.java", "java", "text/x-java", _export("java")),
        ("r", "R", "functions, no package needed", "R", "text/x-r", _export("r")),
        ("excel", "Excel formula", "a CSV with one formula below the columns", "csv", "text/csv", _export("excel")),
        ("dmn", "DMN", "a decision table for rule engines", "dmn", "application/xml", _export("dmn")),
    )
}  # fmt: skip


def subject_of(model: TreeModel, address: str = "") -> Subject:
    """Return the parts of a stored model that exports need."""
    file = model_file(model)
    statistics, source = statistics_of(model, inside=False)
    return Subject(
        file=file,
        title=f"{model.title}, version {model.version}",
        sha256=model.sha256,
        document=document_of(model),
        statistics=None if source == FROM_TREE else statistics,
        permissions=permissions(file.tree.schema, hooks.column_permissions(model)),
        address=address,
        dossier=f"{address}dossier/" if address else "",
    )


def download(model: TreeModel, name: str, address: str = "", *, by: Any) -> HttpResponse:
    """Return the export as an attachment, and record it.

    `name` is a key of FORMATS, `address` the URL of the model's page. Raises DataError if the format cannot represent
    the model.
    """
    form = FORMATS[name]
    content = form.write(subject_of(model, address))
    audit.record("exported", model, by=by, format=name)
    text = isinstance(content, str)
    charset = "; charset=utf-8" if text and form.media_type.startswith("text/") else ""
    response = HttpResponse(
        content.encode() if isinstance(content, str) else content, content_type=f"{form.media_type}{charset}"
    )
    response["X-Content-SHA256"] = model.sha256
    return as_file(response, f"{model.family.name}-{model.version}.{form.ending}")
