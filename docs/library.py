"""Write docs/library.md, the page of public names, from the docstrings.

`python -m docs.library` writes it. A test fails if it is stale.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
from collections.abc import Collection
from pathlib import Path
from typing import Any

from trainer import ESTIMATOR_NAMES

PAGE = Path(__file__).resolve().parent / "library.md"
# module: the names that a user types; () stands for all of `dir(trainer)` but the classifiers
MODULES: dict[str, tuple[str, ...]] = {
    "trainer": (),
    "octweb.client": (),
    "trainer.certificate": ("Certificate", "Guarantee", "Status"),
    "trainer.check.recount": ("Finding", "refuted", "verdict", "verify"),
    "trainer.convert": ("convert", "ConvertedTree", "from_lightgbm", "from_pmml", "from_sklearn"),
    "trainer.data.reader": ("load",),
    "trainer.dossier": ("dossier",),
    "trainer.errors": (
        "ConversionError", "DataError", "InfeasibleError", "ModelFileError", "ParameterError", "RowError", "TrainerError",
    ),
    "trainer.evaluate": ("compare", "report", "run_study", "Study", "StudyDataset", "StudyReport", "Variant"),
    "trainer.prediction.mlflow_flavour": ("log_model", "save_model"),
    "trainer.sklearn_api.saving": ("ModelFileWarning",),
    "trainer.tree.describe": ("path_in_words", "rules_text"),
    "trainer.tree.file": ("ModelFile", "read_model", "write"),
}  # fmt: skip
# class: its members on the page, if not all of them; the other ones are for the code of the library
MEMBERS: dict[str, tuple[str, ...]] = {
    "Tree": (
        "apply", "decision_path", "depth", "leaves", "load", "n_leaves", "path_to", "plot", "predict", "predict_proba",
        "save", "to_json", "used_columns",
    ),
    "Workbench": (
        "alternatives", "best_trees", "complete", "good_trees", "price_list", "questions", "shape", "tree",
    ),
    "ModelFile": ("to_json",),
    "SearchProgress": (),
    "StudyDataset": (),
    "StudyReport": ("cell", "to_csv", "to_json", "to_markdown"),
    "Variant": (),
}  # fmt: skip
AS_IN_SKLEARN = (
    "apply", "decision_path", "get_depth", "get_n_leaves", "predict", "predict_proba", "score", "set_params",
)  # fmt: skip
REMOTE = ("id", "path", "refresh")  # of every object of the server
JOB = ("cancel", "delete", "error", "is_finished", "status", "wait")  # of runs and of batch predictions
INTRODUCTIONS = {
    "octweb.client": (
        "A client of the REST API; it needs httpx, and neither Django nor a database. `octweb.Client` is its start. Each object of "
        "the server (`Remote…`) has its `id`, its `path` below the API, and `refresh()`, which reads it again. A `RemoteBatch` also has "
        + ", ".join(f"`{name}`" for name in JOB)
        + " of a `RemoteRun`."
    )
}
COMMON = ("`time_limit` ", "`stop` ", "`timeout` ")  # arguments that the head of the page explains
MIN_WORDS = 14  # arguments and results with a shorter description are left to `help()`
MIN_MEMBER_WORDS = 9  # members with a shorter description are only named
# the errors of a call are in its docstring; each module of the page explains its exceptions
SECTIONS = {"Parameters": "", "Attributes": "", "Returns": "Returns ", "Yields": "Yields "}
# texts of plain values, which have no docstring
VALUES = {
    "ESTIMATOR_NAMES": "The name of the classifier of each method, by its id.",
    "__version__": "The version, as in the names of wheels.",
}
HEAD = """# The library in Python

For everyone who calls octweb from Python. `import octweb` and `import trainer` offer the same names, and neither needs Django. `octweb.Client` calls a server. Names that are not on this page may change at
any time. Each [method](which-method.md) has a page with its parameters.

```python
from sklearn.datasets import load_iris

import octweb

X, y = load_iris(return_X_y=True)  # or a data frame
tree = octweb.make_classifier("exact", depth=2, leaf_penalty=0.01).fit(X, y)
tree.certificate_.status, tree.certificate_.gap  # "optimal", 0.0
print(tree.rules())
tree.explain(X[:1])  # path, shares and the smallest change of a row
tree.flip(X[:1], wanted=2)  # the change alone
tree.alternatives(0)[:3]  # splits for the root, with their prices
tree.edit().complete(["ask root x3 <= 0.8"])  # the best tree with this split at the root
tree.good_trees(slack_rows=1).count  # all trees within one row of the best one
tree.export("sql")
tree.save("iris.json", proof=True)
same = octweb.load("iris.json")
same.verify(X, y)  # a finding for each claim, by the independent checker
```

`help()` and editors show all arguments with types and errors. `time_limit` and `timeout` are in seconds, by default
without limit. After `time_limit`, prices that are not proved are lower bounds. `stop` is a function without arguments that returns True to end the search.
"""


def names_of(module: str) -> list[str]:
    """Return the public names of a module that are on the page."""
    return sorted(MODULES[module] or importlib.import_module(module).__all__, key=lambda name: (name.lower(), name))


def text_of(thing: Any) -> str:
    """Return the first paragraph of the docstring as one line, or "" without a docstring."""
    docstring = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
    first = inspect.cleandoc(docstring or "").split("\n\n")[0]
    return " ".join(first.split())


def sections_of(thing: Any, sections: Collection[str] = SECTIONS) -> list[str]:
    """Return a line for each entry in these sections of a docstring, such as parameters and errors.

    Arguments and results are left out if their description has fewer than MIN_WORDS words.
    """
    entries: list[tuple[str, str, list[str]]] = []
    section = ""
    paragraphs = inspect.cleandoc(thing.__doc__ or "").split("\n")
    for line, below in zip(paragraphs, [*paragraphs[1:], ""], strict=True):
        if below and not below.strip("-"):
            section = line
        elif section in sections and line.strip("-"):
            if line.startswith(" "):
                entries[-1][2].extend(line.split())
            else:
                entries.append((section, SECTIONS[section] + _named(line, section), []))
    return [
        f"- {head}" + (f": {' '.join(words)}" if words else "")
        for section, head, words in entries
        if not head.startswith(COMMON) and (section == "Attributes" or len(words) >= MIN_WORDS)
    ]


def _named(line: str, section: str) -> str:
    """Return the head of an entry, with its names as code."""
    names, colon, form = line.partition(" : ")
    if colon or line.startswith("*"):
        code = ", ".join(f"`{name}`" for name in names.split(", "))
        return f"{code} ({form})" if form else code
    return line


def signature(thing: Any) -> str:
    """Return the names of the arguments with their defaults, without `self` and `cls`, as text."""
    try:
        declared = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = []
    for name, p in declared.parameters.items():
        if name not in ("self", "cls"):
            default = (
                _Bare("…") if inspect.isfunction(p.default) else p.default
            )  # the text of a function has its address
            parameters.append(p.replace(annotation=inspect.Parameter.empty, default=default))
    return str(declared.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


class _Bare(str):
    """A default value whose repr is this text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def member_entries(cls: type) -> dict[str, list[str]]:
    """Return the lines about each public method and property that a class has from this library, by name."""
    things: dict[str, Any] = {}
    for base in reversed([b for b in cls.__mro__ if b.__module__.startswith(("trainer", "octweb"))]):
        things |= {name: thing for name, thing in vars(base).items() if not name.startswith("_")}
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    named = set(MEMBERS.get(cls.__name__, things)) - fields
    if cls.__name__.startswith("Remote"):
        named -= set(REMOTE)
    if cls.__name__ == "RemoteBatch":
        named -= set(JOB)
    entries: dict[str, list[str]] = {}
    for name in sorted(things.keys() & named):
        thing = things[name]
        plain = thing.__func__ if isinstance(thing, classmethod | staticmethod) else getattr(thing, "fn", thing)
        if isinstance(thing, property) or hasattr(thing, "func"):
            entries[name] = [_member(name, text_of(getattr(thing, "func", thing)))]
        elif inspect.isfunction(plain):
            details = [f"    {line}" for line in sections_of(plain)]
            entries[name] = [_member(f"{name}{signature(plain)}", text_of(plain)), *details]
    return entries


def members(cls: type) -> list[str]:
    """Return the lines about the members of a class on the page; the last line only names those that need no words."""
    entries = member_entries(cls)
    named = [lines[0].split("`")[1] for lines in entries.values() if _is_plain(lines)]
    explained = [line for lines in entries.values() if not _is_plain(lines) for line in lines]
    return [*explained, "- Also: " + ", ".join(f"`{name}`" for name in named) + "."] if named else explained


def _is_plain(lines: list[str]) -> bool:
    """Return whether the name of a member says as much as its description."""
    text = lines[0].partition("`: ")[2]
    return len(lines) == 1 and len(text.split()) < MIN_MEMBER_WORDS and '"' not in text


def _member(call: str, text: str) -> str:
    return f"- `{call}`" + (f": {text}" if text else "")


def is_exception(thing: Any) -> bool:
    """Return whether this is an exception or a warning."""
    return inspect.isclass(thing) and issubclass(thing, Exception)


def entry(name: str, thing: Any) -> list[str]:
    """Return the lines about one name that is not an exception."""
    head = [f"### `{name}`", ""]
    if name in VALUES or not callable(thing):
        return [*head, VALUES[name], ""]
    if not inspect.isclass(thing):
        details = sections_of(thing)
        return [*head, f"`{name}{signature(thing)}`", "", text_of(thing), "", *details, *([""] if details else [])]
    if issubclass(thing, enum.Enum):
        return [*head, text_of(thing), "", "One of " + ", ".join(f"`{m.value}`" for m in thing) + ".", ""]
    lines = [*head, text_of(thing), ""]
    attributes = sections_of(thing, ("Attributes",))
    if not attributes and dataclasses.is_dataclass(thing):
        lines += ["Fields: " + ", ".join(f"`{f.name}`" for f in dataclasses.fields(thing)) + ".", ""]
    member_lines = [*attributes, *members(thing)]
    return [*lines, *member_lines, ""] if member_lines else lines


def exceptions(named: dict[str, Any]) -> list[str]:
    """Return the lines about the exceptions and warnings among the names of a module."""
    lines = [f"- `{name}`: {text_of(thing)}" for name, thing in named.items() if is_exception(thing)]
    return ["### Exceptions", "", *lines, ""] if lines else []


def estimators() -> list[str]:
    """Return the lines about the classifiers, which have the same methods."""
    from trainer.sklearn_api.estimators import TreeClassifier

    lines = ["### The classifiers", "", "Each method has a class. `make_classifier` takes the id of the method.", ""]
    lines += ["| class | method |", "|---|---|"]
    for method, name in ESTIMATOR_NAMES.items():
        lines.append(f"| `{name}` | [`{method}`](methods/{method}.md) |")
    standard = ", ".join(f"`{name}`" for name in AS_IN_SKLEARN)
    lines += [
        "",
        f"As in scikit-learn: {standard}. Attributes after `fit`:",
        "",
        *sections_of(TreeClassifier, ("Attributes",)),
        "",
    ]
    lines += ["Further methods and properties:", ""]
    entries = member_entries(TreeClassifier)
    for name in AS_IN_SKLEARN:
        del entries[name]
    return [*lines, *(line for one in entries.values() for line in one), ""]


def build_page() -> str:
    """Return the text of the page."""
    lines = [HEAD]
    for module in MODULES:
        imported = importlib.import_module(module)
        lines += [f"## {module}", "", INTRODUCTIONS.get(module, text_of(imported)), ""]
        named = {name: getattr(imported, name) for name in names_of(module)}
        for name, thing in named.items():
            lines += [] if is_exception(thing) else entry(name, thing)
        lines += estimators() if module == "trainer" else []
        lines += exceptions(named)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
