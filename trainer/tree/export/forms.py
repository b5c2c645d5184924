"""Export a model in a form that is chosen by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from trainer.errors import ParameterError, closest
from trainer.table import ColumnKind
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

# each writer takes the model and a title
EXPORTS: Mapping[str, Callable[[ModelFile, str], str | bytes]] = {
    "rules": lambda file, title: rules_text(file.tree, file.certificate),
    "onnx": lambda file, title: to_onnx(file.tree),
    "pmml": lambda file, title: to_pmml(file.tree, target=file.target, name=title),
    "python": lambda file, title: to_python(file.tree),
    "sql": lambda file, title: to_sql(file.tree),
    "javascript": lambda file, title: to_javascript(file.tree),
    "c": lambda file, title: to_c(file.tree),
    "java": lambda file, title: to_java(file.tree),
    "r": lambda file, title: to_r(file.tree),
    "excel": lambda file, title: to_excel(file.tree, target=file.target),
    "dmn": lambda file, title: to_dmn(file.tree, target=file.target, name=title),
}
# what begins a line of comment in the forms that people read
COMMENTS = {"rules": "", "python": "# ", "sql": "-- ", "javascript": "// ", "c": "// ", "java": "// ", "r": "# "}


def export(file: ModelFile, form: str, title: str) -> str | bytes:
    """Return a model in another form. Comments name the ranks that a program takes in place of values.

    Raises
    ------
    ParameterError
        If there is no such form, or if the form cannot hold the tree.
    """
    if form not in EXPORTS:
        raise ParameterError(
            {"form": f"'{form[:40]}' is not one of {', '.join(EXPORTS)}.{closest(form, list(EXPORTS))}"}
        )
    content = EXPORTS[form](file, title)
    if isinstance(content, str) and form in COMMENTS:
        content = "".join(f"{COMMENTS[form]}{note}\n" for note in _rank_notes(file)) + content
    return content


def _rank_notes(file: ModelFile) -> list[str]:
    """Return a sentence for each tested column that training read as ranks. Names are escaped to stay on their line."""
    columns = (file.reading or {}).get("columns", {})
    notes = []
    for j in file.tree.used_columns:
        column = file.tree.schema[j]
        ranks = columns.get(column.name, {}).get("spellings", {})
        if column.kind is not ColumnKind.CATEGORICAL and _are_ranks(ranks):
            words = ", ".join(f"{rank} for {json.dumps(word)}" for word, rank in sorted(ranks.items(), key=_rank_of))
            notes.append(f"{json.dumps(column.name)} holds ranks, not values: {words}.")
    return notes


def _are_ranks(spellings: Mapping[str, str]) -> bool:
    return bool(spellings) and set(spellings.values()) == {str(rank) for rank in range(1, len(spellings) + 1)}


def _rank_of(item: tuple[str, str]) -> int:
    return int(item[1])
