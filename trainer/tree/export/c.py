"""Export a tree as C99 without dependencies beyond the standard library."""

from __future__ import annotations

from trainer.tree.export.nested import Braces, decimal_literal, nested_code, refuse_null, refuse_unknown
from trainer.tree.nodes import Tree


def to_c(tree: Tree, name: str = "octweb") -> str:
    """Return C functions NAME_leaf(row), NAME_predict(row) and NAME_probabilities(row); `row` has a cell for each used column.

    A cell has a number (NAN if missing) and a text in UTF-8 (NULL if missing). Compile without -ffast-math and without
    contraction of products and sums (-ffp-contract=off). The leaf is -1, and the answer NULL, for an unknown value that
    the contract refuses. Raise DataError for texts with a null character.
    """
    refuse_null(tree, "C")
    place = {j: at for at, j in enumerate(tree.used_columns)}
    lines = [
        "/* A classification tree; cells of a row in the order of the names below. Compile with -ffp-contract=off. */"
    ]
    lines += ["#include <math.h>", "#include <stddef.h>", "#include <string.h>", ""]
    lines += ["#ifndef OCTWEB_CELL", "#define OCTWEB_CELL"]
    lines += [
        "typedef struct { double number; const char *text; } octweb_cell;",
        "#endif",
        "",
    ]
    lines += [f"enum {{ {name}_columns = {len(place)}, {name}_classes = {len(tree.classes)} }};"]
    names = ", ".join(quote(tree.schema[j].name) for j in tree.used_columns) or "0"
    lines += [f"const char *const {name}_names[] = {{{names}}};"]
    lines += [f"const char *const {name}_labels[] = {{{', '.join(map(quote, tree.classes))}}};", ""]
    lines += [f"static int {name}_is(const octweb_cell *cell, const char *word, const char *missing) {{"]
    lines += [
        "    const char *text = cell->text ? cell->text : missing;",
        "    return text && strcmp(text, word) == 0;",
        "}",
        "",
    ]
    lines += [f"int {name}_leaf(const octweb_cell *row) {{", "    (void)row;", f"    (void){name}_is;"]
    braces = dialect(tree, name, place)
    lines += [*refuse_unknown(tree, braces, lambda column: "return -1;"), *nested_code(tree, braces), "}", ""]
    lines += [f"const char *{name}_predict(const octweb_cell *row) {{", f"    switch ({name}_leaf(row)) {{"]
    lines += [f"        case {v.id}: return {name}_labels[{v.label}];" for v in tree.leaves]
    lines += ["        default: return NULL;", "    }", "}", ""]
    lines += [f"const double *{name}_probabilities(const octweb_cell *row) {{", f"    switch ({name}_leaf(row)) {{"]
    for v in tree.leaves:
        shares = ", ".join(map(repr, tree.probabilities[v.id].tolist()))
        lines.append(f"        case {v.id}: {{ static const double share[] = {{{shares}}}; return share; }}")
    lines += ["        default: return NULL;", "    }", "}"]
    return "\n".join(lines) + "\n"


def quote(value: str) -> str:
    """Return a text as a literal in UTF-8; escapes have three octal digits, and ?? begins no trigraph."""
    plain = "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in value.encode("utf-8", "surrogatepass")
    )
    return f'"{plain}"'


def dialect(tree: Tree, name: str, place: dict[int, int]) -> Braces:
    """Return the C syntax of the tests; `place` maps used columns to cells of the row."""
    return Braces(
        schema=tree.schema,
        number=lambda j: f"row[{place[j]}].number",
        same=lambda j, word, missing: (
            f"{name}_is(&row[{place[j]}], {quote(word)}, {'NULL' if missing is None else quote(missing)})"
        ),
        literal=lambda x: decimal_literal(x, "HUGE_VAL"),
        flag=lambda test: f"(double)({test})",
        empty=lambda value: f"isnan({value})",
        false="0",
    )
