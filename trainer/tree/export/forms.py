"""Export a model in a form that is chosen by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from trainer.errors import ParameterError, closest
from trainer.table import ranks_in
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
from trainer.tree.file import ModelFile

# each writer takes the model, a title, and notes for forms without comments
EXPORTS: Mapping[str, Callable[[ModelFile, str, Sequence[str]], str | bytes]] = {
    "rules": lambda file, title, notes: rules_text(file.tree, file.certificate),
    "onnx": lambda file, title, notes: to_onnx(file.tree, notes=notes),
    "pmml": lambda file, title, notes: to_pmml(file.tree, target=file.target, name=title, notes=notes),
    "python": lambda file, title, notes: to_python(file.tree),
    "sql": lambda file, title, notes: to_sql(file.tree),
    "javascript": lambda file, title, notes: to_javascript(file.tree),
    "c": lambda file, title, notes: to_c(file.tree),
    "java": lambda file, title, notes: to_java(file.tree),
    "r": lambda file, title, notes: to_r(file.tree),
    "excel": lambda file, title, notes: to_excel(file.tree, target=file.target, notes=notes),
    "dmn": lambda file, title, notes: to_dmn(file.tree, target=file.target, name=title, notes=notes),
}
# what begins a line of comment in the forms that people read
COMMENTS = {"rules": "", "python": "# ", "sql": "-- ", "javascript": "// ", "c": "// ", "java": "// ", "r": "# "}


def export(file: ModelFile, form: str, title: str) -> str | bytes:
    """Return a model in another form. Comments or notes name the ranks that it takes in place of values.

    Raises
    ------
    ParameterError
        If there is no such form, or if the form cannot hold the tree.
    """
    if form not in EXPORTS:
        raise ParameterError(
            {"form": f"'{form[:40]}' is not one of {', '.join(EXPORTS)}.{closest(form, list(EXPORTS))}"}
        )
    notes = _rank_notes(file)
    content = EXPORTS[form](file, title, notes)
    if isinstance(content, str) and form in COMMENTS:
        content = "".join(f"{COMMENTS[form]}{note}\n" for note in notes) + content
    return content


def _rank_notes(file: ModelFile) -> list[str]:
    """Return a sentence for each tested column that training read as ranks. Names are escaped to stay on their line."""
    columns = (file.reading or {}).get("columns", {})
    notes = []
    for j in file.tree.used_columns:
        column = file.tree.schema[j]
        ranks = ranks_in(columns.get(column.name, {}))
        if ranks and column.ranks:
            words = ", ".join(f"{rank} for {json.dumps(word)}" for rank, word in enumerate(ranks, 1))
            notes.append(f"{json.dumps(column.name)} holds ranks, not values: {words}.")
    return notes
