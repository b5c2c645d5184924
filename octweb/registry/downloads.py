"""A model as a file: the document itself, one HTML file, rules in words, and programs and tables of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpResponse

from octweb.registry import units
from octweb.registry.carried import Subject, to_html
from octweb.registry.models import TreeModel
from octweb.registry.parsed import document_of, model_file
from octweb.registry.units import FROM_TREE, statistics_of
from trainer.explain.permission import permissions
from trainer.tree.code import to_python, to_sql
from trainer.tree.describe import rules_text
from trainer.tree.onnx import to_onnx
from trainer.tree.pmml import to_pmml
from trainer.tree.programs.c import to_c
from trainer.tree.programs.dmn import to_dmn
from trainer.tree.programs.excel import to_excel
from trainer.tree.programs.java import to_java
from trainer.tree.programs.javascript import to_javascript
from trainer.tree.programs.r import to_r


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a model is written as a file."""

    label: str
    purpose: str
    ending: str
    media_type: str
    write: Callable[[Subject], str | bytes]


FORMATS: dict[str, Format] = {
    "json": Format(
        label="octweb JSON",
        purpose="predict and verify without this site",
        ending="json",
        media_type="application/json",
        write=lambda subject: subject.document,
    ),
    "html": Format(
        label="One HTML file",
        purpose="questions, answers, tree and certificate; works from disk without a network",
        ending="html",
        media_type="text/html",
        write=to_html,
    ),
    "rules": Format(
        label="Rules as text",
        purpose="for a policy document, every question in words",
        ending="txt",
        media_type="text/plain",
        write=lambda subject: rules_text(subject.file.tree),
    ),
    "onnx": Format(
        label="ONNX",
        purpose="runtimes of many languages",
        ending="onnx",
        media_type="application/octet-stream",
        write=lambda subject: to_onnx(subject.file.tree),
    ),
    "pmml": Format(
        label="PMML",
        purpose="scoring engines and databases",
        ending="pmml",
        media_type="application/xml",
        write=lambda subject: to_pmml(subject.file.tree, target=subject.file.target, name=subject.title),
    ),
    "python": Format(
        label="Python",
        purpose="one file, no library needed",
        ending="py",
        media_type="text/x-python",
        write=lambda subject: to_python(subject.file.tree),
    ),
    "sql": Format(
        label="SQL",
        purpose="a CASE expression, scores inside the database",
        ending="sql",
        media_type="application/sql",
        write=lambda subject: to_sql(subject.file.tree),
    ),
    "javascript": Format(
        label="JavaScript",
        purpose="an ES module, no library needed",
        ending="mjs",
        media_type="text/javascript",
        write=lambda subject: to_javascript(subject.file.tree),
    ),
    "c": Format(
        label="C",
        purpose="C99, for devices and other languages",
        ending="c",
        media_type="text/x-c",
        write=lambda subject: to_c(subject.file.tree),
    ),
    "java": Format(
        label="Java",
        purpose="one class, no library needed; save it as OctwebTree.java",
        ending="java",
        media_type="text/x-java",
        write=lambda subject: to_java(subject.file.tree),
    ),
    "r": Format(
        label="R",
        purpose="functions, no package needed",
        ending="R",
        media_type="text/x-r",
        write=lambda subject: to_r(subject.file.tree),
    ),
    "excel": Format(
        label="Excel formula",
        purpose="a CSV with one formula below the columns",
        ending="csv",
        media_type="text/csv",
        write=lambda subject: to_excel(subject.file.tree, target=subject.file.target),
    ),
    "dmn": Format(
        label="DMN",
        purpose="a decision table for rule engines",
        ending="dmn",
        media_type="application/xml",
        write=lambda subject: to_dmn(subject.file.tree, target=subject.file.target, name=subject.title),
    ),
}


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
        permissions=permissions(file.tree.schema, units.MARKS(model)),
        address=address,
    )


def download(model: TreeModel, name: str, address: str = "") -> HttpResponse:
    """The file as an attachment; `name` is a key of FORMATS, `address` that of the model's page."""
    form = FORMATS[name]
    content = form.write(subject_of(model, address))
    text = isinstance(content, str)
    charset = "; charset=utf-8" if text and form.media_type.startswith("text/") else ""
    response = HttpResponse(
        content.encode() if isinstance(content, str) else content, content_type=f"{form.media_type}{charset}"
    )
    # the family's name is a slug, so that it needs no quoting
    response["Content-Disposition"] = f'attachment; filename="{model.family.name}-{model.version}.{form.ending}"'
    response["X-Content-SHA256"] = model.sha256
    return response
