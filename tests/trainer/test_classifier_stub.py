"""Editors and type checkers know the constructors of the classifiers without running code."""

from __future__ import annotations

import subprocess
import sys

import jedi
import pytest

from docs import classifiers
from tests.conftest import ROOT
from trainer import ESTIMATOR_NAMES
from trainer.registry import METHODS, get
from trainer.sklearn_api.argument_names import SKLEARN_NAMES

CALL = "from trainer import ExactTreeClassifier\nExactTreeClassifier("
USE = """
from trainer import ExactTreeClassifier
ExactTreeClassifier(depth=2, bins="auto", class_weight={"yes": 2.5}, missing={"age": "drop"}, time_limit=60)
ExactTreeClassifier(depht=2)
ExactTreeClassifier(depth="two")
ExactTreeClassifier(goal="recall")
"""


def test_stub_equals_the_declared_parameters():
    """One comparison covers names, types, defaults and docstrings, because the stub has no other content."""
    assert classifiers.STUB.read_text(encoding="utf-8") == classifiers.stub_text(), "run `python -m docs.classifiers`"
    assert [m.estimator for m in METHODS] == list(ESTIMATOR_NAMES.values())


@pytest.mark.slow
@pytest.mark.parametrize("place", ["trainer", "trainer.sklearn_api.classifiers"])
def test_editor_shows_parameters_and_docstring(place):
    script = jedi.Script(CALL.replace("trainer", place, 1), path="notebook.py", project=jedi.Project(ROOT))
    (signature,) = script.get_signatures()
    shown = [p.name for p in signature.params]
    assert shown == [*(p.name for p in get("exact").parameters), "missing", "unknown", *SKLEARN_NAMES]
    assert signature.params[0].description == "param depth: int | None=3"
    (name,) = script.help(2, 3)
    assert get("exact").summary in name.docstring()
    assert "depth : int from 0 to 20 or None, default 3\n" in name.docstring()


@pytest.mark.slow
def test_type_checker_finds_wrong_keyword_and_wrong_type(tmp_path):
    """Only the stub is read (`--follow-imports=skip`). Reading its imports takes minutes on a cold cache."""
    script = tmp_path / "use.py"
    script.write_text(USE)
    files = [script, ROOT / "trainer" / "__init__.py", classifiers.STUB]
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=skip", f"--cache-dir={tmp_path}"]
    ran = subprocess.run([*command, *map(str, files)], cwd=ROOT, capture_output=True, text=True, timeout=600)
    errors = [line.split("use.py:")[1] for line in ran.stdout.splitlines() if "error:" in line]
    assert [error.partition(":")[0] for error in errors] == ["4", "5", "6"], ran.stdout + ran.stderr
    assert 'Unexpected keyword argument "depht"' in errors[0]
    assert 'expected "int | None"' in errors[1]
