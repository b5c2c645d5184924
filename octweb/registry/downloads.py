"""A model as a file: the document itself, rules in words, ONNX, PMML, Python, SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpResponse

from octweb.registry.models import TreeModel
from octweb.registry.parsed import document_of, model_file
from trainer.tree.code import to_python, to_sql
from trainer.tree.describe import rules_text
from trainer.tree.onnx import to_onnx
from trainer.tree.pmml import to_pmml


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a model is written as a file."""

    label: str
    purpose: str
    ending: str
    media_type: str
    write: Callable[[TreeModel], str | bytes]


FORMATS: dict[str, Format] = {
    "json": Format(
        label="octweb JSON",
        purpose="predict and verify without this site",
        ending="json",
        media_type="application/json",
        write=document_of,
    ),
    "rules": Format(
        label="Rules as text",
        purpose="for a policy document, every question in words",
        ending="txt",
        media_type="text/plain",
        write=lambda model: rules_text(model_file(model).tree),
    ),
    "onnx": Format(
        label="ONNX",
        purpose="runtimes of many languages",
        ending="onnx",
        media_type="application/octet-stream",
        write=lambda model: to_onnx(model_file(model).tree),
    ),
    "pmml": Format(
        label="PMML",
        purpose="scoring engines and databases",
        ending="pmml",
        media_type="application/xml",
        write=lambda model: to_pmml(model_file(model).tree, target=model_file(model).target, name=model.title),
    ),
    "python": Format(
        label="Python",
        purpose="one file, no library needed",
        ending="py",
        media_type="text/x-python",
        write=lambda model: to_python(model_file(model).tree),
    ),
    "sql": Format(
        label="SQL",
        purpose="a CASE expression, scores inside the database",
        ending="sql",
        media_type="application/sql",
        write=lambda model: to_sql(model_file(model).tree),
    ),
}


def download(model: TreeModel, name: str) -> HttpResponse:
    """The file as an attachment; `name` is a key of FORMATS."""
    form = FORMATS[name]
    content = form.write(model)
    text = isinstance(content, str)
    charset = "; charset=utf-8" if text and form.media_type.startswith("text/") else ""
    response = HttpResponse(
        content.encode() if isinstance(content, str) else content, content_type=f"{form.media_type}{charset}"
    )
    # the family's name is a slug, so that it needs no quoting
    response["Content-Disposition"] = f'attachment; filename="{model.family.name}-{model.version}.{form.ending}"'
    response["X-Content-SHA256"] = model.sha256
    return response
