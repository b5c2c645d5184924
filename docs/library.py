"""Write docs/library.md, the public names of `trainer`, from the docstrings: `python -m docs.library`. A test fails if it is stale."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer import ESTIMATOR_NAMES
from trainer.registry import get

PAGE = Path(__file__).resolve().parent / "library.md"
# module: its names, if it has no `__all__`
MODULES: dict[str, tuple[str, ...]] = {
    "trainer": (),
    "trainer.training.run": ("TrainRequest", "TrainResult", "train"),
    "trainer.registry": ("METHODS", "get"),
    "trainer.sklearn_api.saving": ("ModelFileWarning",),
    "trainer.certificate": ("Certificate", "Guarantee", "Limits", "Status"),
    "trainer.tree.file": (),
    "trainer.tree.describe": (),
    "trainer.tree.idle": ("idle_questions", "pruned", "without_idle"),
    "trainer.data.reader": (),
    "trainer.convert": (),
    "trainer.check.recount": (),
    "trainer.evaluate": (),
    "trainer.dossier": (),
    "trainer.prediction.mlflow_flavour": ("log_model", "save_model"),
    "octweb.client": (),
    "trainer.errors": (
        "ConversionError", "DataError", "InfeasibleError", "ModelFileError", "ParameterError", "RowError", "TrainerError",
    ),
}  # fmt: skip
SECTIONS = {"Parameters": "", "Returns": "Returns ", "Yields": "Yields ", "Raises": "Raises "}
# texts of plain values, which have no docstring
VALUES = {
    "ESTIMATOR_NAMES": "The name of the classifier of each method.",
    "__version__": "The version, as in the names of wheels.",
    "METHODS": "All methods, as they are declared.",
    "FORMAT": "The word by which a file of this kind is known.",
    "FORMAT_VERSION": "The version of that format.",
    "FORMS": "The forms in which a tree of another program is read.",
    "METHOD": "What stands for the method in a model file whose tree was made elsewhere.",
    "MAX_BYTES": "The size in bytes beyond which a model file is not read.",
    "Verdict": "What is said of a claim: `proved`, `recounted`, `refuted` or `cannot be judged`.",
    "UNKNOWN_CODE": "The code of a category that the model never saw; such a row goes right.",
}
HEAD = """# The library in Python

Made by `python -m docs.library` from the docstrings. `trainer` is the library, and `octweb` offers its names, too. `octweb.Client` calls a server. Names that are not on this page may change at
any time. The [methods](which-method.md) have pages with their parameters, the [model file](model-file.md) has one, too.
"""


def names_of(module: str) -> list[str]:
    """Return the public names of a module of this page."""
    return sorted(MODULES[module] or importlib.import_module(module).__all__, key=lambda name: (name.lower(), name))


def text_of(thing: Any) -> str:
    """Return the first paragraph of the docstring as one line; "" without a docstring."""
    docstring = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
    first = inspect.cleandoc(docstring or "").split("\n\n")[0]
    return " ".join(first.split())


def sections_of(thing: Any) -> list[str]:
    """Return a line for each parameter, each result and each error in the docstring of a function."""
    paragraphs = inspect.cleandoc(thing.__doc__ or "").split("\n")
    lines: list[str] = []
    section = ""
    for line, below in zip(paragraphs, [*paragraphs[1:], ""], strict=True):
        if below and not below.strip("-"):
            section = line
        elif section in SECTIONS and line.strip("-"):
            if line.startswith(" "):
                lines[-1] += f" {line.strip()}" if lines[-1].endswith((",", ".", ";")) else f": {line.strip()}"
            else:
                lines.append(SECTIONS[section] + _named(line, section))
    return [f"- {' '.join(line.split())}" for line in lines]


def _named(line: str, section: str) -> str:
    """Return the head of an entry, with its names as code."""
    names, colon, form = line.partition(" : ")
    if section == "Raises" or colon or line.startswith("*"):
        code = ", ".join(f"`{name}`" for name in names.split(", "))
        return f"{code} ({form})" if form else code
    return line


def signature(thing: Any) -> str:
    """Return the arguments as declared, without `self` and `cls`."""
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
            parameters.append(p.replace(annotation=_bare(p.annotation), default=default))
    return str(declared.replace(parameters=parameters, return_annotation=_bare(declared.return_annotation)))


def _bare(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


class _Bare(str):
    """An annotation, shown as it is written in the code."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def members(cls: type) -> Iterator[str]:
    """Yield the lines about each public method and property that a class has from this library."""
    things: dict[str, Any] = {}
    for base in reversed([b for b in cls.__mro__ if b.__module__.startswith(("trainer", "octweb"))]):
        things |= {name: thing for name, thing in vars(base).items() if not name.startswith("_")}
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for name in sorted(things.keys() - fields):
        thing = things[name]
        plain = thing.__func__ if isinstance(thing, classmethod | staticmethod) else getattr(thing, "fn", thing)
        if isinstance(thing, property) or hasattr(thing, "func"):
            yield _member(name, text_of(getattr(thing, "func", thing)))
        elif inspect.isfunction(plain):
            yield _member(f"{name}{signature(plain)}", text_of(plain))
            yield from (f"    {line}" for line in sections_of(plain))


def _member(call: str, text: str) -> str:
    return f"- `{call}`" + (f": {text}" if text else "")


def entry(name: str, thing: Any) -> list[str]:
    """Return the lines of the page about one name."""
    if name in VALUES or not (inspect.isclass(thing) or callable(thing)):
        return [f"### `{name}`", "", VALUES[name], ""]
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        return [f"### `{name}`", "", text_of(thing), "", "One of " + ", ".join(f"`{m.value}`" for m in thing) + ".", ""]
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return [
            f"### `{name}`",
            "",
            *([] if inspect.isclass(thing) else [f"`{name}{signature(thing)}`", ""]),
            text_of(thing),
            "",
            *([] if inspect.isclass(thing) else [*(sections := sections_of(thing)), *([""] if sections else [])]),
        ]
    lines = [f"### `{name}`", "", text_of(thing), ""]
    if dataclasses.is_dataclass(thing):
        lines += ["Fields: " + ", ".join(f"`{f.name}`" for f in dataclasses.fields(thing)) + ".", ""]
    member_lines = list(members(thing))
    return [*lines, *member_lines, ""] if member_lines else lines


def estimators() -> list[str]:
    """Return the lines about the classifiers, which have the same methods."""
    from trainer.sklearn_api.estimators import TreeClassifier

    lines = ["### The classifiers", "", text_of(TreeClassifier) + " `make_classifier` takes the id of the method.", ""]
    lines += ["| class | method | what it is |", "|---|---|---|"]
    for method, name in ESTIMATOR_NAMES.items():
        lines.append(f"| `{name}` | [`{method}`](methods/{method}.md) | {get(method).summary} |")
    return [*lines, "", *members(TreeClassifier), ""]


def build_page() -> str:
    """Return the page."""
    lines = [HEAD]
    for module in MODULES:
        imported = importlib.import_module(module)
        lines += [f"## {module}", "", text_of(imported), ""]
        for name in names_of(module):
            lines += entry(name, getattr(imported, name))
        lines += estimators() if module == "trainer" else []
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
