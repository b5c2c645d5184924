"""Writes how long the checker is, part by part, into docs/checking.md: `python -m docs.checker_size`. A test fails if it is stale."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, FOLDER = ROOT / "docs" / "checking.md", ROOT / "trainer" / "verify"
BEGIN, END = "<!-- made by python -m docs.checker_size -->\n", "<!-- end -->"
# what a part does, and its modules; those named proof... are steps, but for those of hyperplanes
PROOFS = "steps of proofs over questions and thresholds"
PARTS = {
    PROOFS: "proof questions rates",
    "steps of proofs about hyperplanes": "proof_planes proof_points proof_labels fewest",
    "searches of its own: small spaces, lines in two columns, rows in planes": "search optima impurity lines planes",
    "reads the table": "rows tables reading",
    "counts the tree, the restrictions and the words of the claims again": "recount crossed tree structure restrictions wishes scope chosen members claims",
    "puts lines together": "__init__ check findings",
}
DECIDES = list(PARTS)[:3]  # they work out what is proved
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Lines that hold more than blanks, comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {n for t in tokens if t.type not in SILENT for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def part_of(module: str) -> str:
    """The part that a module belongs to. Raises LookupError for one that no part names."""
    for part, names in PARTS.items():
        if module in names.split():
            return part
    if module.startswith("proof"):
        return PROOFS
    raise LookupError(f"trainer/verify/{module}.py belongs to no part; name it in docs/checker_size.py")


def table() -> str:
    """The table, with a sentence."""
    sizes = dict.fromkeys(PARTS, (0, 0))
    for path in sorted(FOLDER.glob("*.py")):
        text, part = path.read_text(encoding="utf-8"), part_of(path.stem)
        sizes[part] = (sizes[part][0] + code_lines(text), sizes[part][1] + text.count("\n"))
    code, every = (sum(size[k] for size in sizes.values()) for k in (0, 1))
    deciding = sum(sizes[part][0] for part in DECIDES)
    lines = [f"| {part} | {'yes' if part in DECIDES else ''} | {a:,} | {b:,} |" for part, (a, b) in sizes.items()]
    words = (
        f"The parts that work out what is proved have {deciding:,} lines of code, the whole checker has {code:,}. "
        f"With blank lines, comments and docstrings it has {every:,}."
    )
    head = "| part of `trainer/verify` | works out what is proved | lines of code | all lines |\n|---|---|---|---|"
    return "\n".join([words, "", head, *lines, ""])


def made() -> str:
    """The page with the table as it is now."""
    page = PAGE.read_text(encoding="utf-8")
    return re.sub(
        re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}\n{table()}\n{END}", page, flags=re.DOTALL
    )


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
