"""The example of docs/adding.md, done: one file and one line make a method that form, command line, API and documentation know."""

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
from trainer.reference import BEGIN, END, TREE_BEGIN, TREE_END

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
api = browser.get("/api/v1/methods/").content.decode()
print("in the API:", '"majority"' in api)
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory) -> Path:
    """A copy of the project with the example of the page added to it."""
    root = tmp_path_factory.mktemp("adding")
    for name in ("trainer", "octweb", "templates", "static"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- toy: (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    (root / "data").mkdir()
    (root / found[1]).write_text(found[2], encoding="utf-8")
    methods = root / "trainer" / "methods.py"
    code = methods.read_text(encoding="utf-8")
    assert "greedy import cart, oc1" in code
    code = code.replace("greedy import cart, oc1", "greedy import cart, majority, oc1")
    methods.write_text(code.replace("    oc1.METHOD,\n", "    oc1.METHOD,\n    majority.METHOD,\n"), encoding="utf-8")
    return root


def command(root: Path, *arguments: str, **more: str) -> str:
    """What a command of the changed project prints."""
    environment = os.environ | {"OCTWEB_DATA_DIR": str(root / "data"), "PYTHONPATH": "", "OCTWEB_DEBUG": "1"} | more
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_command_line_trains_it_and_proves_its_claim(changed):
    (changed / "rows.csv").write_text("x,y\n" + "1,a\n" * 6 + "2,b\n" * 4)
    found = json.loads(
        command(changed, "train", "rows.csv", "--target", "y", "--method", "majority", "--json").splitlines()[-1]
    )
    assert (found["status"], found["objective"], found["leaves"]) == ("optimal", 0.6, 1)


@pytest.mark.slow
def test_form_and_api_offer_it(changed):
    said = command(changed, "shell", "-c", SHOW)
    assert "in the form: True" in said
    assert "in the API: True" in said


@pytest.mark.slow
def test_its_page_gets_a_table_and_python_a_classifier(changed):
    pages = changed / "docs"
    shutil.copytree(ROOT / "docs" / "methods", pages)
    (pages / "majority.md").write_text(f"# Most frequent class\n\n{TREE_BEGIN}\n{TREE_END}\n\n{BEGIN}\n{END}\n")
    command(changed, "methods", "--write", str(pages))
    assert "| `leaf_penalty` | 0 |" in (pages / "majority.md").read_text()
    assert "Paper: folklore." in (pages / "majority.md").read_text()
    assert "<svg" in (pages / "trees" / "majority.svg").read_text()
    said = command(changed, "shell", "-c", "import trainer; print(trainer.make_classifier('majority'))")
    assert "MajorityClassifier" in said


def test_the_other_examples_stand_in_their_files():
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    found = re.findall(r"<!-- from: (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)
    assert len({path for path, _ in found}) == 6
    for path, lines in found:
        whole = (ROOT / path).read_text(encoding="utf-8")
        assert " ".join(lines.split()) in " ".join(whole.split()), path  # members of a class stand without their indent
