"""Write the size of the checker into docs/checking.md.

`python -m docs.checker_size` counts its statements.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECK = ROOT / "trainer" / "check"
PAGE = ROOT / "docs" / "checking.md"
BEGIN = "<!-- made by python -m docs.checker_size -->\n"
END = "<!-- end -->"
PARTS = {
    "proof": "reads what a model document asks for, and says what a proof shows",
    "proof/space": "builds the space of trees of a claim: rows, splits or points, prices and limits",
    "proof/steps": "checks the steps of a proof",
    "recount/search": "searches without a proof: small spaces, lines in two columns, rows in planes",
    "recount/table": "reads the table",
    "recount/trees": "counts the trees of the file again",
    "recount": "gives a verdict on each claim",
}


def count_statements(text: str) -> int:
    """Return the number of statements of a module, without docstrings."""
    nodes = list(ast.walk(ast.parse(text)))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(isinstance(node, documented) and ast.get_docstring(node) is not None for node in nodes)
    return sum(isinstance(node, ast.stmt) for node in nodes) - docstrings


def part_of(path: Path) -> str:
    """Return the part that a module belongs to.

    Raises
    ------
    LookupError
        If PARTS does not name the package of the module.
    """
    part = path.relative_to(CHECK).parent.as_posix()
    if part not in PARTS:
        raise LookupError(f"{path.name} belongs to no part; name the package '{part}' in docs/checker_size.py")
    return part


def part_sizes() -> Counter[str]:
    """Return the number of statements of each part."""
    sizes = Counter(dict.fromkeys(PARTS, 0))
    for package in ("proof", "recount"):
        for path in sorted((CHECK / package).rglob("*.py")):
            sizes[part_of(path)] += count_statements(path.read_text(encoding="utf-8"))
    return sizes


def table() -> str:
    """Return the Markdown table of sizes, below a sentence."""
    sizes = part_sizes()
    proofs = sum(size for part, size in sizes.items() if part.startswith("proof"))
    rest = sizes.total() - proofs
    sentence = (
        f"The checker of proofs, `trainer/check/proof`, has {proofs:,} statements for all methods. "
        f"`trainer/check/recount`, which counts every other claim again, has {rest:,}."
    )
    rows = [f"| `{part}` | {PARTS[part]} | {size:,} |" for part, size in sizes.items()]
    return "\n".join([sentence, "", "| package | what it does | statements |\n|---|---|---|", *rows, ""])


def updated_page() -> str:
    """Return docs/checking.md with the current table."""
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: f"{BEGIN}\n{table()}\n{END}", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(updated_page(), encoding="utf-8")
