"""`tests.audit`, a part of `make lint`: what it reads, when it fails, and that it works without a network."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests import audit

WEAK = {"dependencies": [
    {"name": "django", "version": "1.0", "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["1.1"]}]},
    {"name": "numpy", "version": "2.0", "vulns": []},
]}  # fmt: skip


@pytest.fixture
def answer(monkeypatch):
    def set_answer(report):
        def run(command, **options):
            if report is not None:
                with open(command[command.index("--output") + 1], "w") as stream:
                    json.dump(report, stream)
            return subprocess.CompletedProcess(command, 1, "", "ConnectionError: no route")

        monkeypatch.setattr(subprocess, "run", run)

    return set_answer


def test_a_weakness_fails_and_is_named(answer, capsys):
    answer(WEAK)
    assert audit.main() == 1
    assert capsys.readouterr().out.strip() == "django 1.0: PYSEC-1, mended in 1.1"


def test_accepted_weakness_does_not_fail(answer, monkeypatch, capsys):
    answer(WEAK)
    monkeypatch.setattr(audit, "ACCEPTED", {"CVE-1": "not reached"})
    assert audit.main() == 0
    assert "no known weakness in 2" in capsys.readouterr().out


def test_audit_without_network_is_skipped_with_message(answer, capsys):
    answer(None)
    assert audit.main() == 0
    assert "left out" in capsys.readouterr().out


def test_audit_reads_every_pin(tmp_path):
    pins = audit.pins(tmp_path).read_text()
    assert "django==" in pins
    assert "django-storages==" in pins
    assert "-r " not in pins
