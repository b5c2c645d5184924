"""Erased decisions are listed apart from the database, and are erased again after a restore."""

from __future__ import annotations

import json
import os
import stat
import uuid

import pytest
from django.core.management import CommandError, call_command

from octweb.decisions import erasing, erasure_list
from octweb.decisions.audited import audit_decisions
from octweb.decisions.models import Block, ChainEntry, DecisionHead

pytestmark = pytest.mark.django_db


@pytest.fixture
def backup(ids):
    """Provide a function that brings back the records as they are now."""
    tables = [(kind, list(kind.objects.all())) for kind in (ChainEntry, Block, DecisionHead)]

    def restore():
        for kind, rows in tables:
            kind.objects.all().delete()
            kind.objects.bulk_create(rows)

    return restore


def unerased():
    return {str(key) for key in ChainEntry.objects.exclude(payload="").values_list("key", flat=True)}


def replay(*files):
    call_command("decisions", "erase", "--replay", *map(str, files))


def test_replay_erases_what_was_erased_after_the_backup(ids, backup, settings, capsys):
    erasing.erase_subject("person 2", by="t")
    erasing.erase_decisions([uuid.UUID(ids[0])], by="t", why="mistake")
    gone = {*ids[8:12], ids[0]}
    backup()
    assert gone <= unerased()
    replay()
    assert "Erased decisions: 5" in capsys.readouterr().out
    assert unerased() & set(ids) == set(ids) - gone
    found = audit_decisions()
    assert (found.problems, dict(found.erased)) == ([], {"request": 4, "mistake": 1})
    content = settings.ERASURES.read_text()
    replay()
    assert "Erased decisions: 0" in capsys.readouterr().out
    assert settings.ERASURES.read_text() == content  # a replay lists nothing again


def test_list_is_private_and_has_only_ids(ids, settings):
    erasing.erase_subject("person 2", by="olga")
    assert stat.S_IMODE(settings.ERASURES.stat().st_mode) == 0o600
    (line,) = map(json.loads, settings.ERASURES.read_text().splitlines())
    assert (set(line), line["why"], line["decisions"]) == ({"at", "why", "decisions"}, "request", sorted(ids[8:12]))


def test_nothing_is_erased_without_its_line(ids, client_of, owner, monkeypatch):
    def fail(fd):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    answer = client_of(owner).post(f"/api/v1/decisions/{ids[3]}/erase/", {"why": "request"}, format="json")
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert "list of erasures" in answer.json()["detail"]
    assert set(ids) <= unerased()
    with pytest.raises(CommandError, match="list of erasures"):
        call_command("decisions", "erase", "--id", ids[3])


@pytest.mark.parametrize("cut", [1, 8, 60, 100])
def test_cut_line_is_left_out_and_the_next_one_is_whole(ids, backup, settings, cut):
    erasing.erase_decisions([uuid.UUID(ids[0])], by="t", why="request")
    content = settings.ERASURES.read_bytes()
    settings.ERASURES.write_bytes(content + content[:cut])
    erasing.erase_decisions([uuid.UUID(ids[1])], by="t", why="request")
    assert erasure_list.read_list(settings.ERASURES) == {"request": [uuid.UUID(key) for key in ids[:2]]}
    backup()
    replay()
    assert not unerased() & set(ids[:2])


@pytest.mark.parametrize("text", ["decision\n", '{"why": "request"}\n', '{"at": "x", "why": "y", "decisions": [1]}\n'])
def test_other_files_are_refused_with_the_line(ids, tmp_path, text):
    path = tmp_path / "list"
    path.write_text(text)
    with pytest.raises(CommandError, match=r"Line 1 of .* is not a line of a list of erasures"):
        replay(path)
    with pytest.raises(CommandError, match="cannot be read"):
        replay(tmp_path / "none")
    assert set(ids) <= unerased()


def test_lists_of_several_hosts_are_replayed(ids, tmp_path, capsys):
    for name, key in (("a", ids[0]), ("b", ids[1])):
        (tmp_path / name).write_text(json.dumps({"at": "x", "why": "request", "decisions": [key]}) + "\n")
    replay(tmp_path / "a", tmp_path / "b")
    assert "Erased decisions: 2" in capsys.readouterr().out
    assert not unerased() & set(ids[:2])
