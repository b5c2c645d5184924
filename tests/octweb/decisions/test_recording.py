"""Each answer of a recorded model becomes exactly one record, even if processes are killed."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import struct
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from django.db import connection

from octweb.audit import actions as audit
from octweb.audit.models import Record
from octweb.core import spool
from octweb.core.spool import WRITER, FrameKind
from octweb.decisions import adding, collecting
from octweb.decisions.models import Block, ChainEntry, DecisionHead, RecordStream, SpoolPart
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.audit_trail import audit_models
from octweb.registry.models import Recording
from octweb.registry.prediction.compiled_models import compile_model
from octweb.registry.prediction.recording import ID_DIGITS, Ids, new_id, subject_digest
from tests.conftest import ROOT
from tests.octweb.decisions.conftest import ROW

pytestmark = pytest.mark.django_db


def post(client, path, body, **headers):
    return client.post(path, json.dumps(body), content_type="application/json", headers=headers)


def tensors(row):
    return {
        "inputs": [
            {"name": name, "datatype": "BYTES" if isinstance(cell, str) else "FP64", "shape": [1], "data": [cell]}
            for name, cell in row.items()
        ]
    }


def payloads():
    collecting.collect()
    return [json.loads(e.payload) for e in ChainEntry.objects.filter(kind="decision")]


def test_record_holds_what_the_kernel_saw(recorded, client_of, owner):
    client = client_of(owner)
    path = f"/api/v1/models/{recorded.pk}/predict/"
    answer = post(client, path, {"rows": [ROW]}, **{"Octweb-Subject": "case 17", "X-Request-ID": "r-1"}).json()
    (own,) = answer["predictions"]
    (record,) = payloads()
    tree = model_file(recorded).tree
    assert record["id"] == own["decision"]
    assert record["leaf"] == own["leaf"]
    assert tree.classes[record["label"]] == own["label"]
    bits = [struct.pack(">d", v).hex() for v in own["probabilities"].values()]
    assert record["probability"] == bits
    asked = {tree.schema[j].name for j in tree.used_columns}
    assert set(record["values"]) == asked
    assert record["values"]["width"] == {"bits": struct.pack(">d", 3.5).hex()}
    assert record["version_sha256"] == recorded.sha256
    assert record["call"] == "r-1"
    assert record["subject"] == subject_digest("case 17")
    assert "case 17" not in json.dumps(record)


def test_every_interface_returns_ids_of_its_records(recorded, client_of, owner):
    client = client_of(owner)
    name = recorded.family.name
    path = f"/api/v1/models/{recorded.pk}/predict/"
    ids = [p["decision"] for p in post(client, path, {"rows": [ROW] * 3}).json()["predictions"]]
    ids += [p["decision"] for p in post(client, path + "?explain=true", {"rows": [ROW] * 2}).json()["predictions"]]
    columns = {name: [cell] * 2 for name, cell in ROW.items()}
    ids += post(client, path, {"columns": columns}).json()["columns"]["decision"]
    text = f"{','.join(ROW)}\n{','.join(map(str, ROW.values()))}\n"
    table = client.post(path, text, content_type="text/csv").content.decode()
    ids += [line["decision"] for line in csv.DictReader(io.StringIO(table))]
    arrow = client.post(path, text, content_type="text/csv", headers={"Accept": "application/vnd.apache.arrow.stream"})
    ids += pa.ipc.open_stream(arrow.content).read_all()["decision"].to_pylist()
    ids.append(post(client, f"/v2/models/{name}/infer", tensors(ROW)).json()["parameters"]["decision"])
    scored = post(client, f"/invocations?model={name}", {"dataframe_records": [ROW]})
    ids.append(scored["Octweb-Decision"])
    found = payloads()
    assert [record["id"] for record in found] == ids
    assert [record["api"] for record in found] == [1] * 9 + [2, 3]
    assert len(set(ids)) == len(ids) == 11


def test_ids_are_unique_uuids_of_version_7_also_after_a_fork():
    now = time.time_ns()
    parts = [new_id(now) for _ in range(1000)]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"".join(new_id(now) for _ in range(1000)))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    content = os.read(reading, 16_000)
    parts += [content[i : i + 16] for i in range(0, len(content), 16)]
    parts += [new_id(now) for _ in range(1000)]
    os.close(reading)
    os.close(writing)
    found = [uuid.UUID(bytes=part) for part in parts]
    assert len(set(found)) == 3000
    assert {(key.version, key.variant) for key in found} == {(7, uuid.RFC_4122)}
    assert {(key.int >> 80, key.int % 2**32) for key in found} == {(now // 1_000_000, 0)}
    random = [key.int >> 32 & ~(0b11 << 30 | 7 << 44) for key in found]
    assert int(np.bitwise_or.reduce(random)) & (1 << 44) - 1 == (0xFFF << 32) | (1 << 30) - 1


@pytest.mark.parametrize("rows", [1, 2, 1999, 2000, 2001, 70_000])
def test_records_of_an_answer_have_their_ids_in_order(model, rows):
    compiled = compile_model(model)
    leaves = np.random.default_rng(rows).integers(0, len(compiled.records), rows).astype(np.int32)
    ids = Ids(str(uuid.uuid4())[:-ID_DIGITS], rows)
    answers = json.loads(b"[" + compiled.recorded(leaves, ids) + b"]")
    expected = [json.loads(compiled.records[v]) for v in leaves.tolist()]
    assert answers == [one | {"decision": key} for one, key in zip(expected, ids.texts(), strict=True)]


@pytest.mark.slow
def test_quick_answers_of_plain_numbers_are_recorded(register, staff, owner, client_of, numbers_document):
    model = register(document=numbers_document, title="Numbers")
    actions.approve(actions.ask_for_approval(model, by=owner), by=staff, recording=Recording.FULL)
    client = client_of(owner)
    names = [c.name for c in model_file(model).tree.schema]
    ids = []
    for rows in (1, 3, 2500):
        body = {"rows": [dict.fromkeys(names, 1.5) for _ in range(rows)]}
        answer = post(client, f"/api/v1/models/{model.pk}/predict/", body).json()
        ids += [p["decision"] for p in answer["predictions"]]
        assert answer["notes"] == []
    tensor = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [1, len(names)], "data": [1.5] * len(names)}]}
    ids.append(post(client, f"/v2/models/{model.family.name}/infer", tensor).json()["parameters"]["decision"])
    assert [record["id"] for record in payloads()] == ids


def test_drafts_counts_and_dry_runs_are_not_recorded(model, staff, client_of, owner):
    client = client_of(owner)
    path = f"/api/v1/models/{model.pk}/predict/"
    answers = [post(client, path, {"rows": [ROW]})]
    actions.approve(actions.ask_for_approval(model, by=owner), by=staff)
    answers.append(post(client, path, {"rows": [ROW]}))
    actions.set_recording(model, by=owner, recording=Recording.FULL, keep_days=None, reason="needed")
    answers.append(post(client, path, {"rows": [ROW]}, **{"Octweb-Dry-Run": "1"}))
    assert all("decision" not in a.json()["predictions"][0] for a in answers)
    assert payloads() == []


def test_site_can_demand_records(approved, client_of, owner, settings):
    settings.RECORD = "full"
    answer = post(client_of(owner), f"/api/v1/models/{approved.pk}/predict/", {"rows": [ROW]}).json()
    assert payloads()[0]["id"] == answer["predictions"][0]["decision"]


def test_refused_row_is_a_record_without_values(recorded, client_of, owner):
    path = f"/api/v1/models/{recorded.pk}/predict/"
    assert post(client_of(owner), path, {"rows": [ROW | {"width": "Jane"}]}).status_code == 422
    (record,) = payloads()
    assert (record["refused"], record["values"], "leaf" in record) == ("value", {}, False)
    assert "Jane" not in json.dumps(record)


def test_unusual_cells_are_noted(recorded, client_of, owner):
    row = ROW | {"width": 99, "colour": "mauve"}
    assert post(client_of(owner), f"/api/v1/models/{recorded.pk}/predict/", {"rows": [row]}).status_code == 200
    assert sorted(payloads()[0]["noted"]) == [["colour", "unknown"], ["width", "above"]]


def test_no_answer_without_room_for_its_record(recorded, client_of, owner, settings, monkeypatch):
    path = f"/api/v1/models/{recorded.pk}/predict/"
    client = client_of(owner)
    assert post(client, path, {"rows": [ROW]}).status_code == 200
    settings.RECORD_SPOOL_BYTES = 10
    WRITER.look_after()
    full = post(client, path, {"rows": [ROW]})
    assert (full.status_code, full["Retry-After"]) == (503, "10")
    settings.RECORD_SPOOL_BYTES = 10**9
    WRITER.look_after()

    def write(fd, content):
        return real(fd, content[: len(content) // 2])

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        assert post(client, path, {"rows": [ROW]}).status_code == 503
    assert post(client, path, {"rows": [ROW]}).status_code == 200
    assert len(payloads()) == 2


def test_answer_over_spool_limit_is_counted_if_allowed(recorded, client_of, owner, settings):
    settings.RECORD_FULL = "answer"
    path = f"/api/v1/models/{recorded.pk}/predict/"
    client = client_of(owner)
    assert "decision" in post(client, path, {"rows": [ROW]}).json()["predictions"][0]
    settings.RECORD_SPOOL_BYTES = 10
    WRITER.look_after()
    answer = post(client, path, {"rows": [ROW] * 3})
    assert answer.status_code == 200
    assert all("decision" not in prediction for prediction in answer.json()["predictions"])
    assert post(client, path, {"rows": [ROW | {"width": "Jane"}]}).status_code == 422
    protocol = post(client, f"/v2/models/{recorded.family.name}/infer", tensors(ROW)).json()
    assert "decision" not in protocol["parameters"]
    settings.RECORD_SPOOL_BYTES = 10**9
    WRITER.look_after()
    assert "decision" in post(client, path, {"rows": [ROW]}).json()["predictions"][0]
    assert len(payloads()) == 2
    (entry,) = ChainEntry.objects.filter(kind="unrecorded")
    payload = json.loads(entry.payload)
    assert (payload["rows"], payload["model"]) == (5, str(recorded.pk))
    assert payload["since"] <= payload["at"]
    assert "Jane" not in entry.payload


@pytest.mark.parametrize("ends", [False, True], ids=["a full minute", "the end of the process"])
def test_rows_without_record_are_reported_while_spool_is_full(recorded, client_of, owner, settings, ends):
    settings.RECORD_FULL = "answer"
    settings.RECORD_SPOOL_BYTES = 0
    path = f"/api/v1/models/{recorded.pk}/predict/"
    client = client_of(owner)
    post(client, path, {"rows": [ROW]})
    WRITER.look_after()
    key = bytes.fromhex(recorded.sha256) + recorded.pk.bytes
    WRITER.count_unrecorded(key, 2)
    assert post(client, path, {"rows": [ROW]}).status_code == 200
    collecting.collect()
    assert not ChainEntry.objects.filter(kind="unrecorded").exists()
    if ends:
        WRITER.close()
    else:
        rows, since, until = WRITER._unrecorded[key]
        WRITER._unrecorded[key] = (rows, since - 61 * 10**9, until)
        WRITER.look_after()
    collecting.collect()
    (entry,) = ChainEntry.objects.filter(kind="unrecorded")
    assert json.loads(entry.payload)["rows"] == 3
    assert [json.loads(e.payload)["seq"] for e in ChainEntry.objects.filter(stream=entry.stream)] == [0, 1]


def test_rows_without_record_survive_a_full_disk(recorded, client_of, owner, settings, monkeypatch):
    settings.RECORD_FULL = "answer"
    path = f"/api/v1/models/{recorded.pk}/predict/"
    client = client_of(owner)

    def fail(fd, content):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        assert post(client, path, {"rows": [ROW] * 4}).status_code == 200
        WRITER.look_after()
    WRITER.look_after()
    assert payloads() == []
    assert json.loads(ChainEntry.objects.get(kind="unrecorded").payload)["rows"] == 4


def test_readiness_names_the_age_of_the_oldest_record(recorded, client_of, owner, monkeypatch):
    client = client_of(owner)
    path = f"/api/v1/models/{recorded.pk}/predict/"
    now = time.time_ns()
    for seconds in (90, 30):
        monkeypatch.setattr(time, "time_ns", lambda seconds=seconds: now - seconds * 10**9)
        post(client, path, {"rows": [ROW]})
    monkeypatch.setattr(time, "time_ns", lambda: now)
    assert client.get("/readyz").json()["oldest_record_seconds"] == 90
    collecting.collect()
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["oldest_record_seconds"]) == (200, 0)
    monkeypatch.setattr(time, "time_ns", lambda: now - 5 * 10**9)
    post(client, path, {"rows": [ROW | {"width": "Jane"}]})
    monkeypatch.setattr(time, "time_ns", lambda: now)
    assert client.get("/readyz").json()["oldest_record_seconds"] == 5


def test_failed_sync_does_not_number_two_records_alike(recorded, client_of, owner, settings, monkeypatch):
    settings.RECORD_SYNC = "call"
    client = client_of(owner, scope="predict")
    path = f"/api/v1/models/{recorded.pk}/predict/"
    sync = os.fdatasync

    def fail(fd):
        raise OSError("the disk does not answer")

    monkeypatch.setattr(os, "fdatasync", fail)
    assert post(client, path, {"rows": [ROW]}).status_code == 503
    monkeypatch.setattr(os, "fdatasync", sync)
    answer = post(client, path, {"rows": [ROW]}).json()["predictions"][0]
    collecting.collect()
    decisions = ChainEntry.objects.filter(kind="decision")
    assert decisions.filter(key=answer["decision"]).count() == 1
    assert decisions.count() == 2


def test_subject_that_is_too_long_is_refused(recorded, client_of, owner):
    path = f"/api/v1/models/{recorded.pk}/predict/"
    answer = post(client_of(owner), path, {"rows": [ROW]}, **{"Octweb-Subject": "x" * 65})
    assert answer.status_code == 400
    assert payloads() == []


def test_file_cut_at_any_byte_keeps_every_whole_frame(recorded, client_of, owner, spool, count):
    client = client_of(owner)
    for rows in (1, 2, 3):
        post(client, f"/api/v1/models/{recorded.pk}/predict/", {"rows": [ROW] * rows})
    WRITER.close()
    (path,) = spool.glob("*.spool")
    content = path.read_bytes()
    ends = [f.end for f in spool_frames(content)]
    rng = np.random.default_rng(0)
    cuts = {*ends, *(end - 1 for end in ends), *rng.integers(0, len(content), 4 * count).tolist()}
    for cut in sorted(cuts):
        for own in (ChainEntry, SpoolPart, RecordStream, DecisionHead):
            own.objects.all().delete()
        collecting.SCHEMAS.clear()
        path.write_bytes(content[:cut])
        expected = sum(f.rows for f in spool_frames(content) if f.end <= cut)
        assert len(payloads()) == expected
        assert not path.exists()
        (stream,) = RecordStream.objects.all()
        assert stream.end == ("closed" if cut == len(content) else "cut")
        ended = ChainEntry.objects.filter(kind="ended").first()
        if cut < len(content):
            lost = cut - max([0, *(end for end in ends if end <= cut)])
            assert json.loads(ended.payload)["cut_bytes"] == lost


def spool_frames(content):
    return list(spool.read_frames(content, 0))


def test_blocks_are_sealed_when_full_or_old(recorded, client_of, owner, monkeypatch):
    monkeypatch.setattr(adding, "BLOCK_RECORDS", 4)
    post(client_of(owner), f"/api/v1/models/{recorded.pk}/predict/", {"rows": [ROW] * 10})
    collecting.collect()
    head = adding.hold()
    now = time.time_ns()
    assert [b.records for b in adding.seal(head, now)] == [4, 4]
    assert [b.records for b in adding.seal(head, now + 61 * 10**9)] == [2]
    assert list(Block.objects.values_list("number", "first")) == [(1, 1), (2, 5), (3, 9)]


def test_last_block_of_a_day_is_signed_into_the_chain(recorded, client_of, owner):
    post(client_of(owner), f"/api/v1/models/{recorded.pk}/predict/", {"rows": [ROW]})
    collecting.collect_due()
    tomorrow = datetime.fromtimestamp(time.time() + 86_400, UTC)
    collecting.collect_due(tomorrow)
    collecting.collect_due(tomorrow)
    (sealed,) = Record.objects.filter(what="decisions sealed")
    assert sealed.details["sha256"] == Block.objects.get().digest
    assert audit.broken() == []


WRITE = """
import sys, django
sys.path.insert(0, sys.argv[1])
django.setup()
from django.conf import settings
from pathlib import Path
settings.DATA_DIR = Path(sys.argv[2])
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import Caller, Recorder
import uuid
import numpy as np
from octweb.registry.document.model_files import model_file
model = TreeModel(pk=uuid.UUID(sys.argv[3]), sha256=sys.argv[4], document=open(sys.argv[5]).read())
recorder = Recorder(model)
tree = model_file(model).tree
rng = np.random.default_rng(int(sys.argv[6]))
for i in range(10**9):
    matrix = np.zeros((int(rng.integers(1, 40)), len(tree.schema)))
    ids = recorder.record("v1", Caller("token x", str(i)), matrix, tree.apply(matrix))
    sys.stdout.write("".join(f"{text}\\n" for text in ids.texts()))
    sys.stdout.flush()
"""

COLLECT = """
import sys, django
sys.path.insert(0, sys.argv[1])
import os
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
from django.conf import settings
from pathlib import Path
settings.DATABASES["default"]["NAME"] = sys.argv[3]
settings.DATA_DIR = Path(sys.argv[2])
django.setup()
from octweb.decisions import collecting
collecting.BATCH_ROWS = 50
while True:
    collecting.collect()
"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_record_is_lost_or_doubled_by_sigkill(recorded, spool, tmp_path, count):
    """Writers and collectors are killed at random, and each answer that a caller got is recorded once."""
    code = {name: tmp_path / f"{name}.py" for name in ("write", "collect")}
    code["write"].write_text(WRITE)
    code["collect"].write_text(COLLECT)
    document = tmp_path / "model.json"
    document.write_text(recorded.document)
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "octweb.settings"}
    database = str(connection.settings_dict["NAME"])
    rng = np.random.default_rng(1)
    answered: set[str] = set()
    for kill in range(max(2, count // 2)):
        own = [str(recorded.pk), recorded.sha256, str(document), str(kill)]
        out = tmp_path / f"answered-{kill}"
        with out.open("wb") as stream:
            writer = start(code["write"], spool.parent, *own, environment=environment, stdout=stream)
            collector = start(code["collect"], spool.parent, database, environment=environment)
            try:
                wait_for(lambda path=out: path.stat().st_size > 5_000, writer)
                time.sleep(float(rng.uniform(0, 0.4)))
            finally:
                for process in (writer, collector) if kill % 2 else (collector, writer):
                    process.send_signal(signal.SIGKILL)
                    process.wait()
        answered.update(line for line in out.read_text().split("\n")[:-1])
    collecting.collect()
    assert answered
    kept = [str(key) for key in ChainEntry.objects.filter(kind="decision").values_list("key", flat=True)]
    assert len(kept) == len(set(kept))
    assert answered <= set(kept)
    assert list(spool.glob("*.spool")) == []
    numbers = list(ChainEntry.objects.values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    places: dict[str, list[int]] = {}
    for stream, seq in ChainEntry.objects.filter(kind="decision").values_list("stream", "seq"):
        places.setdefault(str(stream), []).append(seq)
    assert all(seqs == list(range(len(seqs))) for seqs in places.values())
    assert len(places) == max(2, count // 2)


def start(code, *arguments, environment, stdout=subprocess.DEVNULL):
    return subprocess.Popen(
        [sys.executable, str(code), str(ROOT), *map(str, arguments)], env=environment, stdout=stdout
    )


def wait_for(is_true, process):
    while not is_true():
        assert process.poll() is None, "the process ended by itself"
        time.sleep(0.02)


def test_change_outside_of_the_application_is_found(recorded):
    assert not any("recording" in text for text in audit_models([recorded]).problems)
    recorded.recording = Recording.COUNTS
    assert any("recording" in text for text in audit_models([recorded]).problems)


def test_stream_closed_by_its_process_has_no_end_record(recorded, client_of, owner):
    post(client_of(owner), f"/api/v1/models/{recorded.pk}/predict/", {"rows": [ROW]})
    collecting.collect()
    assert not RecordStream.objects.get().end
    WRITER.close()
    collecting.collect()
    assert RecordStream.objects.get().end == "closed"
    assert not ChainEntry.objects.filter(kind="ended").exists()
    assert FrameKind.CLOSED not in set(SpoolPart.objects.values_list("last", flat=True))
