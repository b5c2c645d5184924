"""Every step of docs/tutorial.md runs: its commands in an empty folder, its Python against a live server."""

from __future__ import annotations

import re
import shutil

import pytest

from octweb.core.spool import WRITER
from octweb.decisions import collecting
from octweb.life.counting import flush
from octweb.serving.actions import create_token
from tests.conftest import ROOT
from tests.docs_code_cases import NEED_A_SERVER, commands, fences
from tests.octweb.decisions.conftest import spool  # noqa: F401
from tests.octweb.runs.test_worker import worker  # noqa: F401
from tests.processes import manage

PAGE = ROOT / "docs" / "tutorial.md"
TABLES = sorted((ROOT / "docs" / "tutorial").glob("*.csv"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Provide an empty folder with the downloads of the page, as the current one."""
    for table in TABLES:
        shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_downloads_of_the_page_are_its_tables():
    linked = re.findall(r"\(tutorial/([\w-]+\.csv)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(linked) == [table.name for table in TABLES]


def test_steps_of_the_page_take_an_hour():
    minutes = re.findall(r"^## \d\. .* \((\d+) minutes\)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sum(map(int, minutes)) == 60


def test_report_names_the_findings_of_the_page(folder):
    report = manage("inspect", "loans.csv", "--target", "Repaid", folder=folder).stdout
    assert report.startswith("six findings")
    for finding in ("Closed on year (leak)", "Housing (other_spelling)", "Loan (identifier)"):
        assert finding in report


@pytest.mark.slow
def test_commands_of_the_page_print_what_it_says(folder):
    printed = ""
    for words in commands(PAGE):
        if words[0] not in NEED_A_SERVER:
            done = manage(*words, folder=folder)
            assert done.returncode == 0, f"{words}: {done.stderr}"
            printed += done.stdout.replace("\u202f", " ")  # narrow spaces before units
    tree = next(code for code in fences(PAGE, {""}) if code.startswith("Income"))
    assert tree in printed
    for words in (
        "Right for 82.0 % of new rows",
        "is right for 60.0 %",
        "Verdict: proved",
        "Size chosen by the data: four",
    ):
        assert words in printed


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("media", "spool", "folder")
def test_python_of_the_page_leads_to_a_watched_model(worker, live_server, staff, monkeypatch, capsys):  # noqa: F811
    monkeypatch.setenv("OCTWEB_URL", live_server.url)
    monkeypatch.setenv("OCTWEB_TOKEN", create_token(owner=staff)[1])
    worker()
    names: dict[str, object] = {}
    for block in fences(PAGE, {"python"}):
        # a server does both each second
        WRITER.close()
        collecting.collect()
        flush()
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "optimal 0.82" in printed
    assert "approved True" in printed
    assert "150 answers, " in printed
    assert "{'added': 150, 'unchanged': 0}" in printed
    assert "loans 2 draft" in printed
