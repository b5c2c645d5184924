"""Export a tree as a JavaScript module without dependencies."""

from __future__ import annotations

import json

from trainer.tree.export.nested import Braces, by_name, json_text, nested_code, refusal_words, refuse_unknown
from trainer.tree.nodes import Tree

_HELPERS = """
function value(row, column) {
  const found = Object.prototype.hasOwnProperty.call(row, column) ? row[column] : null;
  return found === null || found === undefined ? null : found;
}

function number(row, column) {
  const found = value(row, column);
  return found === null || found === "" ? NaN : Number(found);
}

function text(row, column, missing = null) {
  const found = value(row, column);
  return found === null ? missing : String(found);
}
"""


def to_javascript(tree: Tree) -> str:
    """Return an ES module with `leaf(row)`, `predict(row)` and `probabilities(row)`; a row is an object from column to value.

    Absent, null and undefined are missing; NaN and the empty text are missing numbers. The module throws RangeError for
    an unknown value that the contract refuses. Raise DataError for a tree that is too deep.
    """
    labels = {str(v.id): tree.classes[v.label] for v in tree.leaves}
    shares = {str(v.id): tree.probabilities[v.id].tolist() for v in tree.leaves}
    lines = ["// A classification tree: leaf(row), predict(row), probabilities(row); row is an object of columns."]
    lines += [f"const CLASSES = {json.dumps(list(tree.classes))};", f"const LABELS = {json.dumps(labels)};"]
    lines += [f"const SHARES = {json.dumps(shares)};", _HELPERS, "export function leaf(row) {"]
    braces = dialect(tree)
    lines += refuse_unknown(tree, braces, _refusal, indent="  ")
    lines += nested_code(tree, braces, indent="  ")
    lines += ["}", "", "export function predict(row) {", "  return LABELS[leaf(row)];", "}", ""]
    lines += ["// pairs of class and share", "export function probabilities(row) {"]
    lines += ["  return SHARES[leaf(row)].map((share, k) => [CLASSES[k], share]);", "}"]
    return "\n".join(lines) + "\n"


def _refusal(column: str) -> str:
    return f"throw new RangeError({json_text(refusal_words(column))});"


def dialect(tree: Tree) -> Braces:
    """Return the JavaScript syntax of the tests."""
    return by_name(
        tree,
        same=lambda name, word, missing: f"text(row, {name}{f', {missing}' if missing else ''}) === {word}",
        infinity="Infinity",
        flag=lambda test: f"Number({test})",
        empty=lambda value: f"Number.isNaN({value})",
    )
