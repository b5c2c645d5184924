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
STEPS, SEARCH, TOP = "steps", "search", ""  # the last: the modules of the folder itself
# what each package of the folder does
PARTS = {
    STEPS: "checks proofs: whether their steps show what they say",
    SEARCH: "searches of its own, without a proof: small spaces, lines in two columns, rows in planes",
    "space": "which trees a claim is about, and the words for them",
    "table": "reads the table",
    "recount": "counts the trees of the file again",
    TOP: "says what became of each claim",
}
DECIDES = [STEPS, SEARCH]  # they work out what is proved
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
    part = path.relative_to(FOLDER).parent.as_posix().removeprefix(".")
    if part not in PARTS:
        raise LookupError(f"{path.name} belongs to no part; name the package '{part}' in docs/checker_size.py")
    return part


def steps_size() -> int:
    """Lines of code of the checker of proofs."""
    return sum(code_lines(path.read_text(encoding="utf-8")) for path in (FOLDER / STEPS).glob("*.py"))


def table() -> str:
    """The table, with a sentence."""
    sizes = dict.fromkeys(PARTS, (0, 0))
    for path in sorted(FOLDER.rglob("*.py")):
        text, part = path.read_text(encoding="utf-8"), part_of(path)
        sizes[part] = (sizes[part][0] + code_lines(text), sizes[part][1] + text.count("\n"))
    code, every = (sum(size[k] for size in sizes.values()) for k in (0, 1))
    deciding = sum(sizes[part][0] for part in DECIDES)
    lines = [
        f"| {f'`{part}`' if part else 'the folder itself'} | {PARTS[part]} | {'yes' if part in DECIDES else ''} | {a:,} | {b:,} |"
        for part, (a, b) in sizes.items()
    ]
    words = (
        f"The program that checks proofs, `trainer/verify/{STEPS}`, has {sizes[STEPS][0]:,} lines of code for all methods; with the searches of its own "
        f"that need no proof, {deciding:,} lines work out what is proved. The whole checker has {code:,}, with blank lines, "
        f"comments and docstrings {every:,}."
    )
    head = "| package of `trainer/verify` | what it does | works out what is proved | lines of code | all lines |\n|---|---|---|---|---|"
    return "\n".join([words, "", head, *lines, ""])


def made() -> str:
    """The page with the table as it is now."""
    page = PAGE.read_text(encoding="utf-8")
    return re.sub(
        re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}\n{table()}\n{END}", page, flags=re.DOTALL
    )


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
