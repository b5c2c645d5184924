"""Reference pages made from the declarations: the table of a method's parameters.

`manage.py methods --write FOLDER` puts it between the two marks of each page FOLDER/<method>.md; a test fails where a page is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainer.errors import DataError
from trainer.method import Method, Parameter
from trainer.methods import METHODS

BEGIN, END = "<!-- parameters: made by `manage.py methods --write docs/methods` -->", "<!-- end of parameters -->"


def default_of(parameter: Parameter) -> str:
    """The default as a person types it; empty if there is none."""
    value = parameter.default
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value == "":
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def parameter_table(method: Method) -> str:
    """A Markdown table: name, default, allowed values with the unit, meaning."""
    lines = ["| name | default | allowed | meaning |", "|---|---|---|---|"]
    for p in method.parameters:
        unit = f" ({p.unit})" if p.unit else ""
        cells = (f"`{p.name}`", default_of(p), p.allowed() + unit, p.help)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def page_with_table(text: str, method: Method) -> str:
    """The page with today's table between its marks; raises DataError if a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise DataError(f"The page of '{method.id}' lacks the line '{BEGIN}' or '{END}'.")
    return f"{before}{BEGIN}\n{parameter_table(method)}\n{END}{after}"


def pages(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """For each method: its page, the text that is there, and the text with today's table."""
    for method in METHODS:
        path = folder / f"{method.id}.md"
        text = path.read_text(encoding="utf-8")
        yield path, text, page_with_table(text, method)


def write_pages(folder: Path) -> list[Path]:
    """Write the tables that are stale; the pages that changed."""
    changed = [(path, new) for path, old, new in pages(folder) if old != new]
    for path, new in changed:
        path.write_text(new, encoding="utf-8")
    return [path for path, _ in changed]
