"""Writes how long the checker is, part by part, into docs/checking.md: `python -m docs.checker_size`. A test fails if it is stale."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "checking.md"
BEGIN, END = "<!-- made by python -m docs.checker_size -->\n", "<!-- end -->"
PROOFS, REST = "verify", "recount"
# what each part of the two packages does
PARTS = {
    PROOFS: "reads what a model document asks for, and says what a proof shows",
    f"{PROOFS}/space": "makes the trees that a claim is about, in numbers: rows, questions or points, prices and limits",
    f"{PROOFS}/steps": "checks the steps of a proof",
    f"{REST}/search": "searches without a proof: small spaces, lines in two columns, rows in planes",
    f"{REST}/table": "reads the table",
    f"{REST}/trees": "counts the trees of the file again",
    REST: "says what became of each claim",
}
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Lines that hold more than blanks, comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {n for t in tokens if t.type not in SILENT for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def part_of(path: Path) -> str:
    """The part that a module belongs to. Raises LookupError for one that no part names."""
    part = path.relative_to(ROOT / "trainer").parent.as_posix()
    if part not in PARTS:
        raise LookupError(f"{path.name} belongs to no part; name the package '{part}' in docs/checker_size.py")
    return part


def sizes() -> dict[str, tuple[int, int]]:
    """Lines of code and all lines of each part."""
    found = dict.fromkeys(PARTS, (0, 0))
    for path in sorted(path for package in (PROOFS, REST) for path in (ROOT / "trainer" / package).rglob("*.py")):
        text, part = path.read_text(encoding="utf-8"), part_of(path)
        found[part] = (found[part][0] + code_lines(text), found[part][1] + text.count("\n"))
    return found


def proofs_size() -> int:
    """Lines of code of the checker of proofs."""
    return sum(size[0] for part, size in sizes().items() if part.startswith(PROOFS))


def table() -> str:
    """The table, with a sentence."""
    found = sizes()
    every = sum(size[0] for size in found.values())
    lines = [f"| `{part}` | {PARTS[part]} | {a:,} | {b:,} |" for part, (a, b) in found.items()]
    words = (
        f"The checker of proofs, `trainer/{PROOFS}`, has {proofs_size():,} lines of code for all methods; "
        f"`trainer/{REST}`, which counts again what else a file says, {every - proofs_size():,}."
    )
    head = "| package | what it does | lines of code | all lines |\n|---|---|---|---|"
    return "\n".join([words, "", head, *lines, ""])


def made() -> str:
    """The page with the table as it is now."""
    page = PAGE.read_text(encoding="utf-8")
    return re.sub(
        re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}\n{table()}\n{END}", page, flags=re.DOTALL
    )


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
