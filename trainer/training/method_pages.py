"""Generate parameter tables and tree pictures of the methods' pages.

`manage.py methods --write FOLDER` puts them between the marks of each page FOLDER/<method>.md. FOLDER/parameters.md has
the parameters that are the same in several methods, with these methods. The tree is a model file, FOLDER/trees/<method>.json, and its picture is drawn beside it. A test fails if a page or a picture is stale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from trainer.errors import DataError
from trainer.methods.base import Method, Parameter
from trainer.registry import METHODS
from trainer.training.claims import claim_words
from trainer.tree.describe import number_text
from trainer.tree.file import ModelFile, read_model
from trainer.tree.render.paper import svg_of

BEGIN = "<!-- generated parameters -->"
END = "<!-- end of parameters -->"
TREE_BEGIN = "<!-- generated tree -->"
TREE_END = "<!-- end of tree -->"
SHARED_PAGE = "parameters.md"
MOST_OWN = 16  # own parameters that a page explains; of more it only names the advanced ones
MIN_SHARING = 2  # if at least this many methods have the same parameter, only the shared page explains it
TREES = "trees"  # folder of the model files and pictures, below that of the pages


def default_of(parameter: Parameter) -> str:
    """Return the default as a user types it; "" if there is none."""
    value = parameter.default
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value == "":
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _row(parameter: Parameter) -> str:
    """Return name, default, allowed values with the unit, and meaning as the start of a row of a Markdown table."""
    unit = f" ({parameter.unit})" if parameter.unit else ""
    cells = (
        f"`{parameter.name}`",
        default_of(parameter),
        _allowed(parameter) + unit,
        parameter.help,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _allowed(parameter: Parameter) -> str:
    """Return the allowed values in few words: a range is of whole numbers unless it says otherwise."""
    words = parameter.describe_allowed().removeprefix("one of ").removeprefix("a whole number from ")
    return f"decimal, {words.removeprefix('a number from ')}" if words.startswith("a number from ") else words


def shared_rows() -> dict[str, list[str]]:
    """Return the rows of the parameters that several methods share, with the ids of these methods."""
    methods: dict[str, list[str]] = defaultdict(list)
    for method in METHODS:
        for parameter in method.parameters:
            methods[_row(parameter)].append(method.id)
    return {row: ids for row, ids in methods.items() if len(ids) >= MIN_SHARING}


def parameter_table(method: Method) -> str:
    """Return a Markdown table of the method's own parameters, and a link to the shared ones."""
    shared = shared_rows()
    rows = {_row(parameter): parameter for parameter in method.parameters}
    own = [row for row in rows if row not in shared]
    named = [f"`{rows[row].name}`" for row in own if rows[row].advanced] if len(own) > MOST_OWN else []
    explained = [row for row in own if not named or not rows[row].advanced]
    lines = ["| name | default | allowed | meaning |", "|---|---|---|---|", *explained, ""] if own else []
    if named:
        lines += [f"`octweb methods` explains {', '.join(named)}.", ""]
    if len(own) < len(rows):
        lines += [f"Further parameters: [those of several methods]({SHARED_PAGE})."]
    return "\n".join(lines)


def shared_table() -> str:
    """Return a Markdown table of the parameters that several methods share, after the names of the large families."""
    families = _large_families()
    named = "; ".join(f"*{family}* are {', '.join(ids)}" for family, ids in families.items())
    lines = [
        f"In the last column, {named}.",
        "",
        "| name | default | allowed | meaning | methods |",
        "|---|---|---|---|---|",
    ]
    for row, ids in sorted(shared_rows().items()):
        whole = [family for family, members in families.items() if set(members) <= set(ids)]
        others = [id for id in ids if not any(id in families[family] for family in whole)]
        methods = "all" if len(ids) == len(METHODS) else ", ".join([*others, *(f"*{family}*" for family in whole)])
        lines.append(f"{row} {methods} |")
    return "\n".join(lines)


def _large_families() -> dict[str, list[str]]:
    """Return the ids of the methods of each family that has at least four, by the folder of the family."""
    families: dict[str, list[str]] = defaultdict(list)
    for method in METHODS:
        families[method.solve.__module__.split(".")[2]].append(method.id)
    return {family: ids for family, ids in families.items() if len(ids) >= 4}


def tree_text(method: Method, model: ModelFile) -> str:
    """Return the Markdown about a tree that the method trained: picture, settings, size, claim, and the method's paper."""
    rows = model.tree.nodes[0].rows
    right = sum(leaf.counts[leaf.label] for leaf in model.tree.leaves)
    shape = "topology" if model.parameters.get("topology") else "depth"  # a topology overrides the depth
    settings = [f"{shape} {model.parameters[shape]}"] if shape in model.parameters else []
    if model.parameters.get("leaf_penalty"):
        settings.append(f"leaf penalty {number_text(float(model.parameters['leaf_penalty']))}")
    return "\n".join(
        [
            f"![A tree of {method.id} for the sample {model.name}]({TREES}/{method.id}.svg)",
            "",
            f"The sample {', '.join([f'*{model.name}*', *settings])}: {model.tree.n_leaves} leaves, {right:,} of {rows:,} "
            f"training rows are correct. {claim_words(model.certificate).split(':')[0].rstrip('.')}. [Model file]({TREES}/{method.id}.json).",
            "",
            f"Paper: {method.paper}.",
        ]
    )


def picture(model: ModelFile) -> str:
    """Return the tree as SVG."""
    return svg_of(model.tree)[0] + "\n"


def page_with_table(text: str, method: Method) -> str:
    """Return the page with the new table between its marks; raise DataError if a mark is missing."""
    return _replace_between(text, BEGIN, END, parameter_table(method), method.id)


def page_with_shared_table(text: str) -> str:
    """Return the page of the shared parameters with the new table; raise DataError if a mark is missing."""
    return _replace_between(text, BEGIN, END, shared_table(), "parameters")


def page_with_tree(text: str, method: Method, model: ModelFile) -> str:
    """Return the page with the tree between its marks; raise DataError if a mark is missing."""
    return _replace_between(text, TREE_BEGIN, TREE_END, tree_text(method, model), method.id)


def _replace_between(text: str, begin: str, end: str, content: str, name: str) -> str:
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise DataError(f"The page of '{name}' lacks the line '{begin}' or '{end}'.")
    return f"{before}{begin}\n{content}\n{end}{after}"


def model_path(folder: Path, method: Method) -> Path:
    """Return the path of the model file whose tree the page of a method shows."""
    return folder / TREES / f"{method.id}.json"


def pages(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield path, present text ("" for a new picture) and new text of each page and picture."""
    shared = folder / SHARED_PAGE
    shared_text = shared.read_text(encoding="utf-8")
    yield shared, shared_text, page_with_shared_table(shared_text)
    for method in METHODS:
        path = folder / f"{method.id}.md"
        tree = model_path(folder, method)
        text = path.read_text(encoding="utf-8")
        if not tree.exists():
            raise DataError(f"{tree} is missing; `manage.py methods --write {folder}` trains it.")
        model = read_model(tree)
        svg_path = tree.with_suffix(".svg")
        yield path, text, page_with_tree(page_with_table(text, method), method, model)
        yield svg_path, svg_path.read_text(encoding="utf-8") if svg_path.exists() else "", picture(model)


def write_pages(folder: Path) -> list[Path]:
    """Write the pages and pictures that are stale; return the changed files."""
    changed = [(path, new) for path, old, new in pages(folder) if old != new]
    for path, new in changed:
        path.write_text(new, encoding="utf-8")
    return [path for path, _ in changed]
