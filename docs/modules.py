"""Draw the import graph of the modules.

`python -m docs.modules` writes docs/modules.md and its pictures from the imports of the code. Each row is a
layer of the import contracts in pyproject.toml, and each box a package or module in it. Lines are the imports
between boxes of different rows, without those that follow from others. A test fails if the files are stale.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs"
CONTRACTS = {"trainer": "imports of the trainer go down only", "octweb": "imports of the application go down only"}
WIDTH = 1180
ROW = 74
BOX = 34
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1d2733} .b{fill:#eef2f7;stroke:#8a99ab} .f{fill:#e3efe6;stroke:#7fa189} "
    ".l{fill:none;stroke:#5b6b7d} .n{fill:#5b6b7d;font-size:11px}"
)


def layers(package: str) -> list[list[str]]:
    """Return the layers of a package from the top down, as lists of full module names."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in settings["tool"]["importlinter"]["contracts"] if c["name"] == CONTRACTS[package])
    rows = []
    for line in contract["layers"]:
        names = [name.strip(" ()") for name in line.replace(":", "|").split("|")]
        rows.append([name if name.startswith(package) else f"{package}.{name}" for name in names])
    return rows


def boxes(graph: grimp.ImportGraph, package: str) -> list[list[str]]:
    """Return the layers of a package, with each family of the trainer as a box of its own."""
    families = sorted(m for m in graph.find_children("trainer.families"))
    return [families if row == ["trainer.families"] else row for row in layers(package)]


def imports(graph: grimp.ImportGraph, rows: list[list[str]]) -> Counter[tuple[str, str]]:
    """Count, for each pair of boxes, the imports of modules of the second by modules of the first."""
    home = {m: box for row in rows for box in row for m in (box, *graph.find_descendants(box))}
    counts: Counter[tuple[str, str]] = Counter()
    for module, box in home.items():
        for target in graph.find_modules_directly_imported_by(module):
            other = home.get(target)
            if other is not None and other != box:
                counts[box, other] += 1
    return counts


def direct_imports(counts: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the imports that do not follow from others (the transitive reduction)."""
    below: dict[str, set[str]] = {}
    for one, other in counts:
        below.setdefault(one, set()).add(other)

    def add_reachable(box: str, boxes: set[str]) -> set[str]:
        for other in below.get(box, set()) - boxes:
            boxes.add(other)
            add_reachable(other, boxes)
        return boxes

    indirect = {box: set().union(*(add_reachable(other, set()) for other in others)) for box, others in below.items()}
    return sorted((one, other) for one, other in counts if other not in indirect[one])


def picture(package: str, rows: list[list[str]], counts: Counter[tuple[str, str]]) -> str:
    """Return the graph as SVG."""
    place: dict[str, tuple[float, float, float]] = {}
    for i, row in enumerate(rows):
        step = WIDTH / len(row)
        for j, box in enumerate(row):
            place[box] = (step * (j + 0.5), 24 + ROW * i, min(step - 14, 190))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW * len(rows) + 8}"><style>{STYLE}</style>'
    ]
    for box, other in direct_imports(counts):
        x, y, _ = place[box]
        u, v, _ = place[other]
        if y != v:
            middle = (y + v + BOX) / 2
            y = y + BOX
            parts.append(
                f'<path class="l" d="M{x:.0f} {y:.0f}C{x:.0f} {middle:.0f} {u:.0f} {middle:.0f} {u:.0f} {v:.0f}" '
                f'opacity="0.6"/>'
            )
    for box, (x, y, w) in place.items():
        name = escape(box.removeprefix("trainer.families.").removeprefix(package + "."))
        kind = "f" if ".families." in box else "b"
        parts.append(f'<rect class="{kind}" x="{x - w / 2:.0f}" y="{y:.0f}" width="{w:.0f}" height="{BOX}" rx="5"/>')
        parts.append(f'<text x="{x:.0f}" y="{y + 21:.0f}" text-anchor="middle">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def page(packages: dict[str, list[list[str]]]) -> str:
    """Return the page with the picture and the layers of each package."""
    text = [
        "# Modules",
        "",
        "For maintainers. The rows of a picture are the layers of the import contracts in `pyproject.toml`, from the top down. A row imports only "
        "rows below it. Boxes of one row do not import each other unless the contract allows it. A line is left out if it follows from "
        "others. Green boxes are the families of methods. `python -m docs.modules` makes this page from the imports of the code.",
    ]
    for package, rows in packages.items():
        text += ["", f"## {package}", "", f"![Layers and imports of {package}](pictures/modules-{package}.svg)", ""]
        for number, row in enumerate(rows, 1):
            names = ", ".join(f"`{box.removeprefix('trainer.families.').removeprefix(package + '.')}`" for box in row)
            text.append(f"{number}. {names}")
    return "\n".join(text) + "\n"


def build_files() -> dict[Path, str]:
    """Return the files that this command writes, with their texts."""
    graph = grimp.build_graph("trainer", "octweb", cache_dir=None)
    graphs = {}
    for package in CONTRACTS:
        rows = boxes(graph, package)
        graphs[package] = rows, imports(graph, rows)
    files = {FOLDER / "modules.md": page({package: rows for package, (rows, _) in graphs.items()})}
    for package, (rows, counts) in graphs.items():
        files[FOLDER / "pictures" / f"modules-{package}.svg"] = picture(package, rows, counts)
    return files


if __name__ == "__main__":
    for path, content in build_files().items():
        path.write_text(content, encoding="utf-8")
        print(path.relative_to(ROOT))
