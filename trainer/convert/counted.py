"""Fit a converted tree to a table and write its model file.

The columns of the tree are matched with those of the table, and the rows are counted. The model file claims no optimality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trainer.certificate import Certificate, Guarantee, Status
from trainer.convert.source import METHOD, ConvertedTree, class_text
from trainer.data.column_statistics import describe_columns
from trainer.data.folds import rows_record
from trainer.data.formats.raw import RawTable
from trainer.data.reader import ColumnParsing, build_as_read
from trainer.errors import DataError, closest, list_names
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, fingerprint
from trainer.training.metrics import metrics_of
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree, grow, to_draft

ORIGINS = {"lightgbm": "LightGBM", "pmml": "PMML", "scikit-learn": "scikit-learn", "octweb": "a model file"}
SCOPE = "one tree, made by another program"


def fitted_to(tree: Tree, raw: RawTable, reading: ColumnParsing, target: str) -> tuple[Tree, Table, Labels]:
    """Match the columns and categories of a tree with those of a file, and read the rows of the file.

    Parameters
    ----------
    tree : Tree
        A converted tree; columns that no split uses may be absent from the file.
    raw : RawTable
        The cells of the file.
    reading : ColumnParsing
        Their parsing.
    target : str
        Column of the classes.

    Returns
    -------
    tuple of Tree, Table and Labels
        The tree still has the counts of its source.

    Raises
    ------
    DataError
        If columns, cells or classes do not fit; the message names them.
    """
    names = [name for name in reading.names(raw.names) if name != target]
    place = _places(tree, names)
    kinds = {place[j]: tree.schema[j].kind for j in place}
    policies = {place[j]: tree.schema[j].missing for j in place if tree.schema[j].answers_empty}
    table, labels, _ = build_as_read(
        raw, reading, target=target, kinds=kinds, missing=policies, ignore=[n for n in names if n not in kinds]
    )
    absent = [place[j] for j in tree.used_columns if place[j] not in table.names]
    if absent:
        raise DataError(
            f"Column '{absent[0]}' has no value in the file, but the tree asks about it. Give a file that has values there."
        )
    present = [j for j in place if place[j] in table.names]
    columns = [_with_source_categories(tree.schema[j], table.columns[table.names.index(place[j])]) for j in present]
    fitted_table = replace(table, columns=tuple(columns))
    moved = {j: i for i, j in enumerate(present)}
    nodes = tuple(
        v if v.split is None else replace(v, split=v.split.rename(lambda j: moved[j], lambda _, code: code))
        for v in tree.nodes
    )
    return (
        Tree(schema=fitted_table.schema, classes=tree.classes, nodes=nodes),
        fitted_table,
        _labels(labels, tree.classes),
    )


def count_rows(
    converted: ConvertedTree, raw: RawTable, reading: ColumnParsing, *, target: str = "", name: str = ""
) -> ModelFile:
    """Count the rows of a file in a converted tree and build its model file, which claims no optimality.

    Parameters
    ----------
    converted : ConvertedTree
        The tree.
    raw : RawTable
        The cells of the file.
    reading : ColumnParsing
        Their parsing.
    target : str
        Column of the classes, by default the one that the source names.
    name : str
        Name of the model.

    Returns
    -------
    ModelFile

    Raises
    ------
    DataError
        If columns, cells or classes do not fit the tree.
    """
    bare, table, labels = fitted_to(converted.tree, raw, reading, target or converted.target)
    matrix = table.matrix()
    tree = grow(to_draft(bare), matrix, labels.codes, schema=bare.schema, classes=bare.classes)
    metrics = metrics_of(tree, matrix, labels.codes, None)
    certificate = Certificate(
        method=METHOD,
        guarantee=Guarantee.HEURISTIC,
        status=Status.HEURISTIC,
        scope=SCOPE,
        objective=metrics["accuracy"],
        correct=metrics["correct"],
        n=metrics["n"],
        leaves=tree.n_leaves,
        depth=tree.depth,
        note=f"The tree comes from {ORIGINS[converted.form]}. It was counted on the rows of this table, not trained here.",
    )
    return ModelFile(
        tree=describe_columns(tree, matrix),
        target=labels.name,
        method=METHOD,
        name=name,
        metrics={"train": metrics},
        certificate=certificate.to_json(),
        fingerprint=fingerprint(table, labels),
        rows=rows_record(table, np.arange(len(table)), np.zeros(0, np.int64), None, None, None),
        reading=table.reading,
        class_type=labels.type,
    )


def uncounted(converted: ConvertedTree, *, target: str = "", name: str = "") -> ModelFile:
    """Build the model file of a converted tree without rows.

    Parameters
    ----------
    converted : ConvertedTree
        The tree; its counts come from the source, or are 0.
    target : str
        Column of the classes, by default the one that the source names.
    name : str
        Name of the model.

    Returns
    -------
    ModelFile
    """
    certificate = {
        "method": METHOD,
        "guarantee": str(Guarantee.HEURISTIC),
        "status": str(Status.HEURISTIC),
        "scope": SCOPE,
        "note": f"The tree comes from {ORIGINS[converted.form]}. No rows were counted here.",
    }
    return ModelFile(
        tree=converted.tree, target=target or converted.target, method=METHOD, name=name, certificate=certificate
    )


def _places(tree: Tree, names: Sequence[str]) -> dict[int, str]:
    """Map each column of the tree to its name in the file; LightGBM writes blanks in names as underscores.

    Columns that no split uses may be absent. Raises DataError if a used one is, or if two columns match the same one.
    """
    plain: dict[str, list[str]] = {}
    for name in names:
        plain.setdefault(name.replace(" ", "_"), []).append(name)
    names_in_file: dict[int, str] = {}
    for j, column in enumerate(tree.schema):
        if column.name in names:
            names_in_file[j] = column.name
        elif len(candidates := plain.get(column.name, [])) == 1:
            names_in_file[j] = candidates[0]
    lacking = [tree.schema[j].name for j in tree.used_columns if j not in names_in_file]
    if lacking:
        raise DataError(
            f"The file lacks {len(lacking)} of the {len(tree.used_columns)} columns that the tree asks about: {list_names(lacking)}."
            f"{closest(lacking[0], names)} Its columns are: {list_names(names, 12)}. Give a file with the columns of the tree.",
            problems=tuple(f"Column '{name}' is missing." for name in lacking),
        )
    if len(set(names_in_file.values())) < len(names_in_file):
        raise DataError(
            "Two columns of the tree match the same column of the file. Rename them, so that each column has one match."
        )
    return names_in_file


def _with_source_categories(source: ColumnSchema, column: Column) -> Column:
    """Return the column with the source's categories first, then those that only the file has."""
    schema = replace(column.schema, missing=source.missing)
    if source.kind is not ColumnKind.CATEGORICAL:
        return replace(column, schema=schema)
    source_categories = dict.fromkeys(source.categories)
    categories = (*source_categories, *(word for word in column.schema.categories if word not in source_categories))
    place: Mapping[str, int] = {word: code for code, word in enumerate(categories)}
    new = np.array([float(place[word]) for word in column.schema.categories] + [np.nan])
    codes = np.where(np.isnan(column.values), len(new) - 1, column.values).astype(np.int64)
    return Column(schema=replace(schema, categories=categories), cells=new[codes])


def _labels(labels: Labels, classes: Sequence[str]) -> Labels:
    """Return the labels with the codes of the tree's classes; raises DataError for unknown classes."""
    place = {name: code for code, name in enumerate(classes)}
    strange = [name for name in labels.classes if name not in place]
    numbers = {class_text(_number(name)): name for name in strange}
    if strange and all(text in place for text in numbers):  # the table writes class 1 as "1.0"
        place |= {name: place[text] for text, name in numbers.items()}
    elif strange:
        raise DataError(
            f"The target '{labels.name}' has classes that the tree lacks: {list_names(strange, 10)}. Classes of the tree: "
            f"{list_names(classes, 10)}. Name them as in the file, in the order of the source (--classes no,yes)."
        )
    new = np.array([place[name] for name in labels.classes], np.int32)
    return Labels(name=labels.name, classes=tuple(classes), codes=new[labels.codes], type=labels.type)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
