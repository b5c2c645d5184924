"""The examples of docs/adding.md work: form, commands, API, checker and documentation know both additions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainer.training.method_pages import BEGIN, END, TREE_BEGIN, TREE_END

SHOW = """
from io import BytesIO
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from octweb.datasets import actions
call_command("migrate", verbosity=0)
user = get_user_model().objects.create_user("ada")
rows = BytesIO(b"x,y" + b"\\n1,a\\n2,b\\n3,a" * 20)
dataset = actions.create(owner=user, file=rows, source_name="rows.csv", target="y")
browser = Client(SERVER_NAME="localhost")
browser.force_login(user)
page = browser.get("/runs/new/", {"dataset": dataset.pk, "method": "majority"})
print("in the form:", page.status_code == 200 and "Most frequent class" in page.content.decode())
page = browser.get("/runs/new/", {"dataset": dataset.pk, "method": "flowoct", "p_max_rules": "1"})
print("constraint in the form:", "Largest number of rules" in page.content.decode())
print("in the summary:", "At most one leaf may predict the last class." in page.content.decode())
api = browser.get("/api/v1/methods/").content.decode()
print("in the API:", '"majority"' in api)
print("constraint in the API:", '"max_rules"' in api)
import trainer
call_command("methods", "--write", "docs")
print(trainer.make_classifier("majority"))
"""
# the lists to which a line of the page belongs, and the entry that it stands before
LISTS = {
    "trainer/registry.py": "METHODS: tuple[Method, ...] = (\n",
    "trainer/constraints/__init__.py": "CONSTRAINTS = (\n",
    "trainer/families/mip/side/__init__.py": "KEEP: dict[str, Callable[[NamedIndices, Settings], Iterator[SideConstraint]]] = {\n",
    "trainer/check/recount/restrictions.py": "RESTRICTIONS = (\n",
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory) -> Path:
    """Provide a copy of the project with the method and the constraint of the page added."""
    root = tmp_path_factory.mktemp("adding")
    for name in ("trainer", "octweb", "templates", "static"):
        shutil.copytree(ROOT / name, root / name)  # with modules compiled for sources of the same time
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    (root / "data").mkdir()
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    copies = dict(re.findall(r"`(tests/adding/\w+\.py)`[^`]*`(trainer/[\w/]+\.py)`", text))
    assert set(copies) == {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "adding").glob("*.py")}
    for source, path in copies.items():
        shutil.copy(ROOT / source, root / path)
    found = dict(re.findall(r"<!-- line: (\S+) -->\n```python\n(.*?)```", text, re.DOTALL))
    assert set(found) == set(LISTS)
    for path, lines in found.items():
        _add(root / path, LISTS[path], *lines.split("...\n"))
    return root


def _add(path: Path, listed: str, before: str, entry: str) -> None:
    """Insert `entry` at the start of a list, and the code that it needs before the list."""
    code = path.read_text(encoding="utf-8")
    assert code.count(listed) == 1, path
    path.write_text(code.replace(listed, f"{before}\n\n{listed}{entry}"), encoding="utf-8")


def command(root: Path, *arguments: str, **more: str) -> str:
    """Return the output of a command of the changed project."""
    environment = os.environ | {"OCTWEB_DATA_DIR": str(root / "data"), "PYTHONPATH": "", "OCTWEB_DEBUG": "1"} | more
    # the kernels of a copy would be compiled again; plain Python is fast enough for these few rows
    environment["NUMBA_DISABLE_JIT"] = "1"
    process = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.slow
def test_new_method_appears_in_form_api_docs_and_python(changed):
    pages = changed / "docs"
    shutil.copytree(ROOT / "docs" / "methods", pages)
    (pages / "majority.md").write_text(f"# Most frequent class\n\n{TREE_BEGIN}\n{TREE_END}\n\n{BEGIN}\n{END}\n")
    said = command(changed, "shell", "-c", SHOW)
    assert "in the form: True" in said
    assert "in the API: True" in said
    assert "constraint in the form: True" in said
    assert "in the summary: True" in said
    assert "constraint in the API: True" in said
    assert "(parameters.md)" in (pages / "majority.md").read_text()
    assert "Paper: folklore." in (pages / "majority.md").read_text()
    assert "<svg" in (pages / "trees" / "majority.svg").read_text()
    assert "MajorityClassifier" in said


KEPT = """
import json
from pathlib import Path
from django.core.management import call_command
call_command("train", "rows.csv", "--target", "y", "--method", "majority", "--json")
asked = ["three.csv", "--target", "y", "--method", "flowoct", "--depth", "2", "--set", "first_tree=none", "--binarise", "all-thresholds", "--json"]
call_command("train", *asked)
call_command("train", *asked, "--set", "max_rules=1", "--output", "few.json")
call_command("verify", "few.json", "three.csv", "--report", "right.json")
model = json.loads(Path("few.json").read_text())
model["parameters"]["max_rules"] = 0
Path("none.json").write_text(json.dumps(model))
call_command("verify", "none.json", "three.csv", "--report", "wrong.json")
"""


def said_of(path: Path, verdict: str) -> set[str]:
    """Return the claims with this verdict in a report of the checker."""
    return {line["claim"] for line in json.loads(path.read_text())["claims"] if line["verdict"] == verdict}


@pytest.mark.slow
def test_new_parts_work_on_command_line_and_in_checker(changed):
    """Without the constraint each value gets its majority class. With it two of the three values share a leaf."""
    (changed / "rows.csv").write_text("x,y\n" + "1,a\n" * 6 + "2,b\n" * 4)
    (changed / "three.csv").write_text("x,y\n" + "1,b\n" * 4 + "2,a\n" * 3 + "3,b\n" * 5)
    lines = command(changed, "shell", "-c", KEPT).splitlines()
    found, free, few = (json.loads(line) for line in lines if line.startswith("{"))
    assert (found["status"], found["objective"], found["leaves"]) == ("optimal", 0.6, 1)
    assert (free["status"], free["objective"]) == ("optimal", 1)
    assert (few["status"], few["objective"]) == ("optimal", 0.75)
    model = json.loads((changed / "few.json").read_text())
    assert "at most 1 leaf of the last class" in model["certificate"]["scope"]
    assert {"max_rules", "scope"} <= said_of(changed / "right.json", "recounted")
    assert said_of(changed / "right.json", "refuted") == set()
    assert {"max_rules", "scope"} <= said_of(changed / "wrong.json", "refuted")
