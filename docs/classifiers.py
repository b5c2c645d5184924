"""Write signatures of the classifiers for editors.

`python -m docs.classifiers` writes trainer/sklearn_api/classifiers.pyi. A test fails if it is stale.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent

from trainer.methods.base import Method, Parameter
from trainer.registry import METHODS
from trainer.sklearn_api.argument_names import SKLEARN_NAMES
from trainer.sklearn_api.estimators import ESTIMATORS

STUB = Path(__file__).resolve().parent.parent / "trainer" / "sklearn_api" / "classifiers.pyi"
HEAD = '''"""Signatures of the classifiers for editors and type checkers. Made by `python -m docs.classifiers`: do not edit."""

from collections.abc import Mapping
from typing import Any, Literal

from trainer.sklearn_api.estimators import TreeClassifier
'''
TYPES = {"integer": "int", "number": "float", "boolean": "bool", "text": "str | Mapping[str, Any]"}
POLICIES = (
    'missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn"',
    'unknown: Literal["branch", "warn", "refuse", "raise"] = "warn"',
)


SKLEARN = {
    "max_depth": "max_depth: int | None = ...",
    "min_samples_leaf": "min_samples_leaf: int = ...",
    "n_jobs": "n_jobs: int | None = ...",
    "random_state": "random_state: int | None = ...",
}


def parameter_type(parameter: Parameter) -> str:
    """Return the annotation of a constructor parameter."""
    if parameter.type == "choice":
        kinds = [f"Literal[{', '.join(map(json.dumps, parameter.choices))}]"]
    else:
        kinds = [TYPES[parameter.type]]
    if parameter.automatic:
        kinds.append('Literal["auto"]')
    if parameter.name == "class_weight":
        kinds.append("Mapping[Any, float]")
    if parameter.default is None or parameter.unlimited or parameter.name == "class_weight":
        kinds.append("None")
    return " | ".join(kinds)


def default_text(parameter: Parameter) -> str:
    """Return the default as Python code, with double quotes around text as the formatter writes it."""
    return json.dumps(parameter.default) if isinstance(parameter.default, str) else repr(parameter.default)


def class_text(method: Method) -> str:
    """Return the stub of one classifier."""
    docstring = ESTIMATORS[method.id].__doc__ or ""
    declared = [f"{p.name}: {parameter_type(p)} = {default_text(p)}" for p in method.parameters]
    theirs = [text for name, text in SKLEARN.items() if method.parameter(SKLEARN_NAMES[name])]
    arguments = "".join(f"        {argument},\n" for argument in (*declared, *POLICIES, *theirs))
    return (
        f"class {method.estimator}(TreeClassifier):\n"
        f'    """{indent(docstring, "    ").strip()}\n    """\n\n'
        f"    def __init__(\n        self,\n        *,\n{arguments}    ) -> None: ...\n"
    )


def stub_text() -> str:
    """Return the stub of all classifiers."""
    return "\n".join([HEAD, *(class_text(method) for method in METHODS)])


if __name__ == "__main__":
    STUB.write_text(stub_text(), encoding="utf-8")
