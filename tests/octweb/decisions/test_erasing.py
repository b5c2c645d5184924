"""Erased records leave no trace of a value, and any other change of the chain is detected."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction

from octweb.core.deleting import purge
from octweb.core.spool import WRITER
from octweb.decisions import adding, collecting, erasing, replaying
from octweb.decisions.audited import audit_decisions
from octweb.decisions.models import Block, ChainEntry, Kind
from octweb.decisions.replaying import replay
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import Caller, recorder_of, subject_digest
from tests.conftest import ROOT
from tests.octweb.decisions.erasing_cases import check_decisions, exported
from tests.octweb.decisions.rows import record_rows
from trainer.tree.nodes import Tree

pytestmark = pytest.mark.django_db


@pytest.fixture
def chain(recorded, monkeypatch):
    """Provide the ids of thirty records in blocks of eight."""
    monkeypatch.setattr(adding, "BLOCK_RECORDS", 8)
    tree: Tree = model_file(recorded).tree
    rng = np.random.default_rng(2)
    ids = []
    for i in range(10):
        matrix = np.stack(
            [rng.integers(0, 20, 3) / 2, rng.normal(size=3), rng.integers(0, 2, 3), rng.integers(0, 3, 3)], 1
        )
        caller = Caller("token x", "small", "", subject_digest(f"person {i}"))
        ids += recorder_of(recorded).record("v1", caller, matrix, tree.apply(matrix)).texts()
    collecting.collect()
    return ids


def refuted(lines):
    key = next(line["key"] for line in exported() if line["type"] == "signature")
    return check_decisions.check([json.dumps(line) for line in lines], key)


def test_chain_is_whole_before_and_after_erasure(chain, capsys):
    assert refuted(exported()) == []
    assert len(erasing.erase_subject("person 3", by="t")) == 3
    assert len(erasing.erase_decisions([ChainEntry.objects.get(key=chain[0]).key], by="t", why="mistake")) == 1
    assert erasing.erase_subject("person 3", by="t") == []
    assert refuted(exported()) == []
    found = audit_decisions()
    assert (found.problems, dict(found.erased)) == ([], {"request": 3, "mistake": 1})
    call_command("audit", "--decisions")
    assert "4 erased (1 by mistake, 3 by request)" in capsys.readouterr().out


def test_later_records_are_erased_with_their_decision(chain):
    entry = ChainEntry.objects.get(key=chain[4])
    adding.add_later(Kind.OVERRIDE, "olga", about=entry, reason="Jane Doe called")
    erasing.erase_decisions([entry.key], by="t", why="request")
    assert "Jane Doe" not in "".join(ChainEntry.objects.values_list("payload", flat=True))
    assert audit_decisions().problems == []


def test_retention_erases_whole_blocks(chain, settings):
    exported()
    later = datetime.now(UTC) + timedelta(days=settings.RECORD_KEEP_DAYS + 1)
    assert erasing.erase_old(later) == 30
    assert erasing.erase_old(later) == 0
    found = audit_decisions()
    assert (found.problems, found.erased["retention"]) == ([], 30)
    assert refuted(exported()) == []


@pytest.mark.django_db(transaction=True)
def test_no_byte_of_an_erased_value_is_left(chain, spool):
    WRITER.close()
    collecting.collect()
    entry = ChainEntry.objects.get(key=chain[4])
    secrets = [entry.salt.encode(), entry.subject.encode()]
    if connection.vendor == "sqlite":
        assert all(text in database_bytes() for text in secrets)
    erasing.erase_subject("person 1", by="t")
    content = b"".join(path.read_bytes() for path in spool.rglob("*")) + json.dumps(exported()).encode()
    if connection.vendor == "sqlite":
        content += database_bytes()
    assert str(entry.key).encode() in content  # erased records keep their place in the chain
    assert not any(text in content for text in secrets)


def database_bytes():
    name = str(connection.settings_dict["NAME"])
    return b"".join(path.read_bytes() for path in (Path(name), Path(name + "-wal")) if path.exists())


def test_replay_is_the_same_bit_for_bit(chain):
    assert replay("", "", None) == (30, [])
    entry = ChainEntry.objects.filter(kind="decision").first()
    document = json.loads(entry.payload)
    ChainEntry.objects.filter(pk=entry.pk).update(payload=json.dumps(document | {"probability": ["0" * 16] * 3}))
    assert replay("small-cart", "2020-01-01", 100) == (29, [str(entry.key)])


def test_a_sample_is_replayed_once_a_day(chain, recorded, monkeypatch, caplog):
    monkeypatch.setattr(replaying, "SAMPLE", 7)
    monkeypatch.setattr(replaying._Daily, "done", None)
    now = datetime.now(UTC)
    replaying.replay_daily(now)
    replaying.replay_daily(now)
    monkeypatch.setattr(replaying._Daily, "done", None)  # another worker
    replaying.replay_daily(now)
    (record,) = ChainEntry.objects.filter(kind="replayed")
    assert (json.loads(record.payload)["same"], json.loads(record.payload)["different"]) == (7, [])
    assert caplog.text == ""
    TreeModel.objects.filter(pk=recorded.pk).update(sha256="0" * 64)
    replaying.replay_daily(now + timedelta(days=1))
    assert sum(key in caplog.text for key in chain) == 7
    assert len(replay("", "", 1000).different) == 30


def mutations(lines, rng):
    """Yield changed copies of an exported chain, each with the name of its change."""
    entries = [i for i, line in enumerate(lines) if line["type"] == "entry"]
    blocks = [i for i, line in enumerate(lines) if line["type"] == "block"]
    full = [i for i in entries if lines[i]["payload"]]
    i, j = rng.sample(full, 2)

    def changed(place, **members):
        return [line | members if k == place else line for k, line in enumerate(lines)]

    text = lines[i]["payload"]
    digit = rng.choice([k for k, c in enumerate(text) if c.isdigit()])
    block = rng.choice(blocks)
    yield "digit", changed(i, payload=f"{text[:digit]}{(int(text[digit]) + 1) % 10}{text[digit + 1 :]}")
    yield "salt", changed(i, salt=rng.randbytes(16).hex())
    yield "commitment", changed(i, commitment=rng.randbytes(32).hex())
    yield (
        "recomputed",
        changed(
            i,
            payload=text[:-1] + " }",
            commitment=check_decisions.sha256(
                b"\0" + bytes.fromhex(lines[i]["salt"]) + (text[:-1] + " }").encode()
            ).hex(),
        ),
    )
    yield "missing", lines[:i] + lines[i + 1 :]
    yield "added", [*lines[:i], lines[i], *lines[i:]]
    yield "order", [lines[j] if k == i else lines[i] if k == j else line for k, line in enumerate(lines)]
    yield "erased without a record", changed(i, payload=None, salt=None)
    yield "key", changed(i, key=lines[j]["key"])
    yield "place", changed(i, seq=(lines[i]["seq"] or 0) + 1)
    yield (
        "header",
        changed(block, header=json.dumps(json.loads(lines[block]["header"]) | {"last_at": rng.randrange(2**60)})),
    )
    yield "block swapped", changed(block, header=lines[blocks[(blocks.index(block) + 1) % len(blocks)]]["header"])
    yield "cut off", [line for k, line in enumerate(lines) if k < blocks[-2] + 1 or line["type"] == "signature"]
    yield "unsigned", [line for line in lines if line["type"] != "signature"]


@pytest.mark.slow
def test_every_mutation_of_an_export_is_refuted(chain, count):
    erasing.erase_subject("person 3", by="t")
    lines = exported()
    assert refuted(lines) == []
    rng = random.Random(7)
    missed = [name for _ in range(4 * count) for name, changed in mutations(lines, rng) if not refuted(changed)]
    assert missed == []


def test_every_mutation_of_the_database_is_refuted(chain, recorded, count):
    exported()
    rng = random.Random(8)
    full = list(ChainEntry.objects.filter(kind="decision"))
    for _ in range(count):
        entry = rng.choice(full)
        other = rng.choice([own for own in full if own.pk != entry.pk])
        rows = ChainEntry.objects.filter(pk=entry.pk)
        for change in (
            lambda rows=rows, other=other: rows.update(payload=other.payload),
            lambda rows=rows: rows.update(salt=rng.randbytes(16).hex()),
            lambda rows=rows, entry=entry: rows.update(leaf=entry.leaf + 1),
            lambda rows=rows, entry=entry: rows.update(at=entry.at + 1),
            lambda rows=rows: rows.update(subject=rng.randbytes(32).hex()),
            lambda rows=rows: rows.update(commitment=rng.randbytes(32).hex()),
            lambda rows=rows: rows.update(payload="", salt=""),
            lambda rows=rows: rows.delete(),
            lambda: Block.objects.filter(number=2).update(digest=rng.randbytes(32).hex()),
            lambda: Block.objects.last().delete(),
            lambda: type(recorded).objects.filter(pk=recorded.pk).update(sha256=rng.randbytes(32).hex()),
        ):
            with transaction.atomic():
                change()
                assert audit_decisions().problems
                transaction.set_rollback(True)
    assert audit_decisions().problems == []


def test_audit_of_a_model_or_of_late_blocks_skips_other_content(chain, recorded, capsys):
    exported()
    names = [f"--model={recorded.family.name}", "--since=2026-01-01"]
    call_command("audit", "--decisions", *names, "--json")
    assert json.loads(capsys.readouterr().out)["checked"] == 30
    ChainEntry.objects.filter(number=5).update(salt="0" * 32)
    last = Block.objects.last()
    for own, found in (({}, 1), ({"since": last.last_at}, 0), ({"since": last.last_at + 1}, 0), ({"models": []}, 0)):
        assert len(audit_decisions(**own).problems) == found
    for options in (["--decisions", "--since=2026-13-01"], ["--decisions", "--model=nobody"], ["--since=2026-01-01"]):
        with pytest.raises(CommandError):
            call_command("audit", *options)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: ChainEntry.objects.filter(number=5).update(salt="no hexadecimal number"), "record 5: its content or its salt"),
        (lambda: ChainEntry.objects.filter(number=5).update(commitment="x" * 64), "(root)"),
        (lambda: ChainEntry.objects.filter(number=5).update(payload="no JSON"), "record 5: its content or its salt"),
        (lambda: Block.objects.filter(number=2).update(header="no JSON"), "block 2: its header cannot be read"),
        (lambda: Block.objects.filter(number=2).update(header='{"number": 2}'), "block 2: its header cannot be read"),
    ],
)  # fmt: skip
def test_unreadable_parts_of_the_chain_are_problems(chain, change, words):
    exported()
    assert change()
    assert any(words in text for text in audit_decisions().problems)


def test_checker_runs_alone(chain, tmp_path):
    path = tmp_path / "chain.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in exported()))
    command = [sys.executable, "-I", "-S", str(ROOT / "checker" / "check_decisions.py"), str(path)]
    assert subprocess.run(command, check=False, capture_output=True, text=True).stdout == "The chain is whole.\n"
    path.write_text(path.read_text().replace('"api": 1', '"api": 2').replace('\\"api\\":1', '\\"api\\":2', 1))
    assert subprocess.run(command, check=False, capture_output=True).returncode == 1


def test_model_stays_until_its_decisions_are_erased(recorded, owner):
    record_rows(recorded, 2)
    recorded = actions.retire(recorded, by=owner)
    actions.delete(recorded)
    later = datetime.now(UTC) + timedelta(days=400)
    purge(TreeModel, later)
    assert TreeModel.objects.filter(pk=recorded.pk).exists()
    assert audit_decisions().problems == []
    erasing.erase_decisions(list(ChainEntry.objects.values_list("key", flat=True)), by="t", why="mistake")
    purge(TreeModel, later)
    assert not TreeModel.objects.filter(pk=recorded.pk).exists()
    assert audit_decisions().problems == []
