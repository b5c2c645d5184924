"""Detect the form of a file and convert the tree in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from trainer.convert.lightgbm import from_lightgbm
from trainer.convert.pmml import read_pmml
from trainer.convert.source import MOST_BYTES, ConvertedTree
from trainer.errors import ConversionError
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree

FORMS = ("lightgbm", "pmml", "octweb")


def form_of(content: bytes) -> str:
    """Detect the form of a file by its first bytes.

    Parameters
    ----------
    content : bytes
        The file.

    Returns
    -------
    str
        One of FORMS.

    Raises
    ------
    ConversionError
        If the file has none of these forms.
    """
    head = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"<"):
        return "pmml"
    if head.startswith(b"{") and b'"octweb-tree"' in head:
        return "octweb"
    if head.startswith((b"{", b"tree\n", b"tree\r\n")):
        return "lightgbm"
    raise ConversionError(
        "This is neither PMML, nor the text or JSON of a LightGBM model, nor a model file of octweb. Give one of these files."
    )


def convert(content: bytes, form: str, *, classes: Sequence[str] | None = None) -> ConvertedTree:
    """Convert the tree in a file of one of FORMS.

    Parameters
    ----------
    content : bytes
        The file.
    form : str
        One of FORMS, as `form_of` returns it.
    classes : sequence of str, optional
        Names of the classes in the order of the source.

    Returns
    -------
    ConvertedTree

    Raises
    ------
    ConversionError
        If the form is unknown, the file cannot be converted, or the names do not fit the classes.
    ModelFileError
        If a model file of octweb is damaged.
    """
    if form == "lightgbm":
        return ConvertedTree(tree=from_lightgbm(content, classes), target="class", form=form)
    if form not in FORMS:
        raise ConversionError(f"'{form[:40]}' is not one of {', '.join(FORMS)}. Choose one of these forms.")
    converted = read_pmml(content) if form == "pmml" else _read_octweb(content)
    return converted if classes is None else replace(converted, tree=_rename_classes(converted.tree, classes))


def _read_octweb(content: bytes) -> ConvertedTree:
    """Return the tree and target of a model file of octweb, without its claims."""
    if len(content) > MOST_BYTES:
        raise ConversionError(
            f"The model file is larger than the limit of {MOST_BYTES // 10**6} MB. Use a smaller tree."
        )
    try:
        model = from_json(json.loads(content, parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as error:
        raise ConversionError(
            f"The model file is not JSON: {str(error)[:200]}. Download or export it again."
        ) from error
    return ConvertedTree(tree=model.tree, target=model.target, form="octweb")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _rename_classes(tree: Tree, classes: Sequence[str]) -> Tree:
    if len(classes) != len(tree.classes) or len(set(classes)) != len(classes):
        raise ConversionError(
            f"The tree has {len(tree.classes)} classes, but you gave {len(set(classes))} different names. "
            "Give one distinct name for each class."
        )
    return replace(tree, classes=tuple(classes))
