"""Build the contract of a table: the meaning of columns and target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.column import PLAIN, ColumnReading
from trainer.table import ClassType, ColumnKind, ColumnSchema, RowNaming, UnknownPolicy, class_type_of, class_values
from trainer.tree.file import ModelFile
from trainer.tree.numbers import decimal_text

EMPTY = "empty"
CODE = "code"
LIKELY_WORDS = "its values may name the rows"


def model_contract(model: ModelFile) -> dict[str, Any]:
    """Return the contract that a model file states.

    Parameters
    ----------
    model : ModelFile
        A file of any version. Members that an older file lacks are derived from others, or left out.

    Returns
    -------
    dict
        `target` and `columns`, as `table_contract` in the JSON Schema of model files.
    """
    tree = model.tree
    return table_contract(
        tree.schema,
        model.reading,
        target=model.target,
        classes=tree.classes,
        class_type=model.class_type,
        asked=tree.used_names,
    )


def table_contract(
    schema: Sequence[ColumnSchema],
    reading: Mapping[str, Any] | None,
    *,
    target: str,
    classes: Sequence[str],
    class_type: ClassType | None = None,
    asked: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the contract of a table with these columns.

    Parameters
    ----------
    schema : sequence of ColumnSchema
        The columns without the target.
    reading : mapping or None
        The parsing of the file, as a model file stores it.
    target : str
        The name of the target.
    classes : sequence of str
        The classes in their order.
    class_type : ClassType, optional
        The type of the classes; by default guessed from their texts.
    asked : collection of str, optional
        The columns that a tree uses; None if there is no tree.

    Returns
    -------
    dict
        `target` and `columns`, as `table_contract` in the JSON Schema of model files.
    """
    type_of_classes = class_type or class_type_of(classes)
    parsing = ColumnParsing.from_json(reading)
    sources = {derived: column for column in parsing.columns.values() for derived in column.names}
    columns = [_column(own, sources.get(own.name)) for own in schema]
    if asked is not None:
        columns = [column | {"asked": column["name"] in asked} for column in columns]
    record = {
        "target": {
            "name": target,
            "type": str(type_of_classes),
            "classes": class_values(classes, type_of_classes).tolist(),
        },
        "columns": columns,
    }
    return record | ({"header": False} if parsing.width else {})


def _column(schema: ColumnSchema, reading: ColumnReading | None) -> dict[str, Any]:
    categorical = schema.kind is ColumnKind.CATEGORICAL
    record: dict[str, Any] = {
        "name": schema.name,
        "source": schema.name if reading is None else reading.name,
        "kind": str(schema.kind),
        "unit": schema.unit,
        "ordered": schema.ordered or not categorical,
        "empty": str(schema.missing),
        "unknown": str(schema.unknown if categorical else UnknownPolicy.REFUSE),
        "codes": {decimal_text(value): CODE for value in schema.special},
        "spellings": {},
    }
    if categorical:
        record["categories"] = list(schema.categories)
    if schema.range is not None:
        record["range"] = list(schema.range)
    if schema.meanings:
        record["meanings"] = dict(schema.meanings)
    if schema.names_rows is not None:
        record["names_rows"] = str(schema.names_rows)
    if reading is not None and reading.special:
        record |= {} if reading.taken_for == PLAIN else {"read_as": reading.words}
        record["codes"] |= dict.fromkeys(reading.missing, EMPTY)
        record["spellings"] = dict(reading.spellings)
    return record


def contract_lines(contract: Mapping[str, Any]) -> list[str]:
    """Return the contract as lines of text."""
    target = contract["target"]
    classes = ", ".join(str(name) for name in target["classes"])
    return [f"target {target['name']} ({target['type']}): {classes}", *map(_line, contract["columns"])]


def _line(column: Mapping[str, Any]) -> str:
    parts = [column["kind"]]
    if column["source"] != column["name"]:
        parts.append(f"from {column['source']}")
    if "read_as" in column:
        parts.append(f"read as {column['read_as']}")
    if column["unit"]:
        parts.append(f"in {column['unit']}")
    if "categories" in column:
        parts.append(f"one of {', '.join(column['categories'])}{' (in this order)' if column['ordered'] else ''}")
    if "range" in column:
        low, high = column["range"]
        parts.append(f"from {decimal_text(low)} to {decimal_text(high)}")
    meanings = column.get("meanings", {})
    parts += [
        f"{word} means {meaning}{f' ({meanings[word]})' if word in meanings else ''}"
        for word, meaning in column["codes"].items()
    ]
    parts += [f"{word} is read as {category}" for word, category in column["spellings"].items()]
    parts += [f"empty cells: {column['empty']}", f"unknown values: {column['unknown']}"]
    if "names_rows" in column:
        parts.append("its values name or count the rows" if column["names_rows"] == RowNaming.CERTAIN else LIKELY_WORDS)
    unused = "" if column.get("asked", True) else " (not asked by the tree)"
    return f"{column['name']}{unused}: {'; '.join(parts)}"
