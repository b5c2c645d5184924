"""A model as a file: the document itself, one HTML file, rules in words, and programs and tables of many kinds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from octweb.audit import actions as audit
from octweb.core.attachments import as_file
from octweb.registry import marks
from octweb.registry.carried import Subject, to_html
from octweb.registry.models import TreeModel
from octweb.registry.parsed import document_of, model_file
from octweb.registry.units import FROM_TREE, statistics_of
from trainer.data.table_contract import model_contract
from trainer.explain.permission import permissions
from trainer.tree.describe import rules_text
from trainer.tree.export.c import to_c
from trainer.tree.export.code import to_python, to_sql
from trainer.tree.export.dmn import to_dmn
from trainer.tree.export.excel import to_excel
from trainer.tree.export.java import to_java
from trainer.tree.export.javascript import to_javascript
from trainer.tree.export.onnx import to_onnx
from trainer.tree.export.pmml import to_pmml
from trainer.tree.export.r import to_r

Write = Callable[[Subject], str | bytes]


@dataclass(frozen=True, kw_only=True)
class DownloadFormat:
    """How a model is written as a file."""

    label: str
    purpose: str
    ending: str
    media_type: str
    write: Write


def _tree(write: Callable[..., str | bytes]) -> Write:
    """Written from the tree alone."""
    return lambda subject: write(subject.file.tree)


def _with_title(write: Callable[..., str | bytes]) -> Write:
    """Written from the tree, the name of what it predicts, and a title."""
    return lambda subject: write(subject.file.tree, target=subject.file.target, name=subject.title)


def _contract(subject: Subject) -> str:
    return json.dumps(model_contract(subject.file), ensure_ascii=False, indent=1)


# by the name in addresses: label, purpose, ending, media type, how it is written
FORMATS: dict[str, DownloadFormat] = {
    name: DownloadFormat(label=label, purpose=purpose, ending=ending, media_type=media_type, write=write)
    for name, label, purpose, ending, media_type, write in (
        ("json", "octweb JSON", "predict and verify without this site", "json", "application/json", lambda subject: subject.document),
        ("html", "One HTML file", "questions, answers, tree and certificate; works from disk without a network", "html", "text/html", to_html),
        ("contract", "Table contract", "what each column and class means", "json", "application/json", _contract),
        ("rules", "Rules as text", "for a policy document, every question in words", "txt", "text/plain", _tree(rules_text)),
        ("onnx", "ONNX", "runtimes of many languages", "onnx", "application/octet-stream", _tree(to_onnx)),
        ("pmml", "PMML", "scoring engines and databases", "pmml", "application/xml", _with_title(to_pmml)),
        ("python", "Python", "one file, no library needed", "py", "text/x-python", _tree(to_python)),
        ("sql", "SQL", "a CASE expression, scores inside the database", "sql", "application/sql", _tree(to_sql)),
        ("javascript", "JavaScript", "an ES module, no library needed", "mjs", "text/javascript", _tree(to_javascript)),
        ("c", "C", "C99, for devices and other languages", "c", "text/x-c", _tree(to_c)),
        ("java", "Java", "one class, no library needed; save it as OctwebTree.java", "java", "text/x-java", _tree(to_java)),
        ("r", "R", "functions, no package needed", "R", "text/x-r", _tree(to_r)),
        ("excel", "Excel formula", "a CSV with one formula below the columns", "csv", "text/csv", lambda subject: to_excel(subject.file.tree, target=subject.file.target)),
        ("dmn", "DMN", "a decision table for rule engines", "dmn", "application/xml", _with_title(to_dmn)),
    )
}  # fmt: skip


def subject_of(model: TreeModel, address: str = "") -> Subject:
    """What is exported of a stored model."""
    file = model_file(model)
    known, source = statistics_of(model, inside=False)
    return Subject(
        file=file,
        title=f"{model.title}, version {model.version}",
        sha256=model.sha256,
        document=document_of(model),
        statistics=None if source == FROM_TREE else known,
        permissions=permissions(file.tree.schema, marks.column_permissions(model)),
        address=address,
        dossier=f"{address}dossier/" if address else "",
    )


def download(model: TreeModel, name: str, address: str = "", *, by: Any) -> HttpResponse:
    """The file as an attachment for the user `by`; `name` is a key of FORMATS, `address` is the address of the model's page."""
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
