"""Export a tree as R code without packages."""

from __future__ import annotations

from trainer.errors import DataError
from trainer.tree.export.nested import Braces, decimal_literal, nested_code, refusal_words, refuse_null, refuse_unknown
from trainer.tree.nodes import Tree

_HELPERS = """
number <- function(row, column) {
  found <- row[[column]]
  if (is.null(found) || is.na(found)) NaN else as.numeric(found)
}

is_category <- function(row, column, word, missing = NA_character_) {
  found <- row[[column]]
  text <- if (is.null(found) || is.na(found)) missing else as.character(found)
  !is.na(text) && enc2utf8(text) == word
}

yes <- function(test) !is.na(test) && test
"""


def to_r(tree: Tree) -> str:
    """Return functions `leaf(row)`, `predict_row(row)`, `probabilities(row)`, and `predict_rows(data)` for a data frame.

    A row is a list or a data frame of one row; absent, NULL and NA are missing. Fractions are hexadecimal, because R
    does not read every decimal to the nearest double. The code stops at an unknown value that the contract refuses.
    Raise DataError for texts that R cannot hold.
    """
    refuse_null(tree, "R")
    lines = ["# A classification tree: leaf(row), predict_row(row), probabilities(row), predict_rows(data)."]
    lines += [f"classes <- c({', '.join(map(quote, tree.classes))})"]
    labels = ", ".join(f"`{v.id}` = {v.label + 1}L" for v in tree.leaves)
    shares = ",\n  ".join(
        f"`{v.id}` = c({', '.join(literal(p) for p in tree.probabilities[v.id].tolist())})" for v in tree.leaves
    )
    lines += [f"labels <- c({labels})", f"shares <- list(\n  {shares}\n)", _HELPERS, "leaf <- function(row) {"]
    braces = dialect(tree)
    lines += refuse_unknown(tree, braces, lambda column: f"stop({quote(refusal_words(column))})", indent="  ")
    lines += nested_code(tree, braces, indent="  ", end="")
    lines += ["}", "", "predict_row <- function(row) classes[[labels[[as.character(leaf(row))]]]]", ""]
    lines += ["probabilities <- function(row) setNames(shares[[as.character(leaf(row))]], classes)", ""]
    lines += ["predict_rows <- function(data) {"]
    lines += ["  vapply(seq_len(nrow(data)), function(i) predict_row(data[i, , drop = FALSE]), character(1))", "}"]
    return "\n".join(lines) + "\n"


def quote(value: str) -> str:
    """Return a text as a literal in ASCII."""
    if any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise DataError(f"R cannot write the text {value!r}: it has half a surrogate pair. Rename it.")
    return '"' + "".join(map(_escape, value)) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if " " <= character <= "~" else f"\\U{ord(character):08x}"


def literal(value: float) -> str:
    """Return a number as a literal: integers in digits, others in hexadecimal."""
    return decimal_literal(value, "Inf", lambda x: f"{int(x)}" if x.is_integer() and x < 1e15 else x.hex())


def dialect(tree: Tree) -> Braces:
    """Return the R syntax of the tests; NA counts as false."""
    schema = tree.schema
    return Braces(
        schema=schema,
        number=lambda j: f"number(row, {quote(schema[j].name)})",
        same=lambda j, word, missing: (
            f"is_category(row, {quote(schema[j].name)}, {quote(word)}{'' if missing is None else ', ' + quote(missing)})"
        ),
        literal=literal,
        flag=lambda test: f"as.numeric({test})",
        empty=lambda value: f"is.na({value})",
        choose=lambda test, yes, no: f"(if ({test}) {yes} else {no})",
        sure=lambda test: f"yes({test})",
        false="FALSE",
    )
