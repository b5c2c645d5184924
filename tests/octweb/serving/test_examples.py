"""The examples of the OpenAPI document are real calls and fit their own schemas.

`OCTWEB_WRITE_EXAMPLES=1 pytest tests/octweb/serving/test_examples.py -k real_calls` writes them again.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction

from octweb.core.parameters import schema_document
from octweb.core.spool import WRITER
from octweb.decisions.collecting import collect
from octweb.registry.lifecycle.actions import set_recording
from octweb.registry.models import Recording, TreeModel
from octweb.serving.examples import FILE, JSON, TAGS
from tests.octweb.api_objects import ids
from tests.octweb.runs.conftest import CSV
from tests.octweb.serving.example_objects import add_source, further_ids

EXAMPLES = json.loads(FILE.read_text(encoding="utf-8"))
MAX_BYTES = 6_000  # of an answer; the lists of larger ones, such as figures, are shortened
SUBJECT = "customer 4711"
PMML = """<PMML version="4.4" xmlns="http://www.dmg.org/PMML-4_4"><Header/><DataDictionary>
<DataField name="width" optype="continuous" dataType="double"/>
<DataField name="class" optype="categorical" dataType="string"><Value value="no"/><Value value="yes"/></DataField>
</DataDictionary><TreeModel functionName="classification"><MiningSchema><MiningField name="width"/>
<MiningField name="class" usageType="target"/></MiningSchema><Node score="no"><True/>
<Node score="no"><SimplePredicate field="width" operator="lessOrEqual" value="0.5"/></Node>
<Node score="yes"><SimplePredicate field="width" operator="greaterThan" value="0.5"/></Node>
</Node></TreeModel></PMML>"""
ROW = {"width": 0.5, "height": 0, "colour": "red"}
TENSORS = [
    {"name": "width", "shape": [1], "datatype": "FP64", "data": [0.5]},
    {"name": "height", "shape": [1], "datatype": "FP64", "data": [0]},
    {"name": "colour", "shape": [1], "datatype": "BYTES", "data": ["red"]},
]
# the bodies of the calls that have one, by operation
BODIES: dict[str, Any] = {
    "datasets_partial_update": {"name": "Loans of 2026", "target": "class"},
    "experiments_create": lambda known: {
        "dataset": known["datasets"],
        "candidates": [{"method": "cart", "parameters": {"depth": 2}}, {"method": "exact", "parameters": {"depth": 2}}],
        "folds": 3,
    },
    "runs_create": lambda known: {"dataset": known["datasets"], "method": "exact", "parameters": {"depth": 2}},
    "models_predict": {"rows": [ROW]},
    "models_explain": {"rows": [ROW]},
    "models_on_predict": {"rows": [ROW]},
    "models_shares_create": {"username": "sam", "level": "read"},
    "models_review_create": {"action": "ask"},
    "models_oversight_review": {"finding": "The shares of all leaves are as in the training rows."},
    "workbenches_good_trees_create": {"slack": "0.1"},
    "teams_create": {"name": "Fraud"},
    "teams_rename": {"name": "Credit"},
    "teams_member_set": {"username": "sam", "role": "editor"},
    "datasets_team_set": lambda known: {"team": known["teams"]},
    "tokens_create": {"name": "nightly job", "scope": "predict"},
    "invocations": {"dataframe_records": [ROW]},
    "v2_model_infer": {"inputs": TENSORS},
    "v2_version_model_infer": {"inputs": TENSORS},
    "v2_repository_index": {"ready": True},
    "workbenches_create": lambda known: {"dataset": known["datasets"]},
    "workbenches_edits_create": {"add": ["forbid root width"]},
    "datasets_erase": {"rows": [1, 2], "why": "request", "remove": False},
    "decisions_outcome": {"value": "b", "known_at": "2026-11-28", "source": "accounts"},
    "decisions_override": {"label": "b", "reason": "The customer brought a guarantor."},
    "decisions_objection": {"reason": "My income was recorded wrongly.", "received": "2026-11-28"},
    "decisions_erase": {"why": "request"},
    "subjects_erase": {"subject": SUBJECT, "why": "request"},
    "outcomes_create": lambda known: {"rows": [{"decision": known["decisions"], "value": "b"}]},
    "overrides_create": lambda known: {
        "rows": [{"decision": known["decisions"], "label": "b", "reason": "The customer brought a guarantor."}]
    },
    "objections_create": lambda known: {
        "rows": [{"decision": known["decisions"], "reason": "My income was recorded wrongly."}]
    },
    "models_compare": {"seconds": 60},
    "models_life_limit": {"watch": "leaf 3", "share": 0.6},
    "models_public_page_open": {"purpose": "Decide about small loans", "contact": "loans@example.org"},
    "models_publish_create": {},
    "models_recording_set": {"recording": "counts", "reason": "The model decides about machines only."},
    "runs_again_create": lambda known: {"dataset": known["datasets"]},
    "counts_create": {"source": "lake", "table": "loans.csv", "target": "class", "depth": 2},
    "sources_sample_create": {"table": "loans.csv"},
    "models_challenger_name": lambda known: {"to": known["free"]},
    "models_life_alarm_close": {"reason": "A campaign brought younger customers."},
    "models_price_find": {"days": 90},
    "models_team_set": lambda known: {"team": known["teams"]},
    "workbenches_save_create": {},
}
# the forms of the calls that send a file, whose examples show the answer alone
FORMS: dict[str, Any] = {
    "datasets_create": lambda known: {"file": rows_file(), "name": "Loans", "target": "class"},
    "datasets_versions_create": lambda known: {"file": rows_file()},
    "predictions_create": lambda known: {"file": rows_file(), "model": known["models"]},
    "models_create": lambda known: {
        "file": SimpleUploadedFile("tree.pmml", PMML.encode(), "application/xml"),
        "dataset": known["datasets"],
        "title": "Our old tree",
    },
}
QUERIES = {"datasets_erase_find": "?column=colour&value=red", "models_life": "?days=2"}
# operation: its object, if that is none of `ids`
OTHERS = {
    "models_compare": "imported",
    "runs_again_create": "ended",
    "models_comparison": "compared",
    "models_comparison_cancel": "compared",
    "models_team_set": "alone",
    "models_challenger_name": "alone",
    "models_price_find": "free",
    "models_price": "served",
    "models_price_cancel": "served",
    "models_life_alarm_close": "served",
    "models_watch": "served",
    "models_figures_calibration_retrieve": "rows",
    "models_figures_nodes_retrieve": "rows",
    "models_figures_nodes_thresholds_retrieve": "threshold",
    "models_figures_precision_recall_retrieve": "rows",
    "models_figures_roc_retrieve": "rows",
    "models_figures_tree_retrieve": "rows",
    "models_figures_leaf_frontier_retrieve": "sizes",
    "models_figures_coefficient_frontier_retrieve": "planes",
    "models_figures_reach_retrieve": "reach",
    "experiments_continue_create": "stopped",
    "experiments_candidates_open_create": "done",
    "experiments_candidates_retrain_create": "done",
    "workbenches_figures_draft_retrieve": "answered",
    "workbenches_figures_good_trees_retrieve": "answered",
    "workbenches_figures_questions_retrieve": "answered",
    "workbenches_figures_tolerance_retrieve": "answered",
    "workbenches_undo_create": "answered",
    "workbenches_save_create": "answered",
    "workbenches_unseen_create": "answered",
    "workbenches_redo_create": "undone",
    "counts_create": "counts",
    "counts_retrieve": "counts",
    "counts_cancel_create": "counts",
}
# operations of a served model; the others get a draft
SERVED = {
    "models_life", "models_oversight", "models_oversight_review", "models_figures_life_leaves_retrieve", "models_watch",
    "models_publish_destroy", "models_publish_create", "models_life_limit", "models_public_page_open",
    "models_recording_set",
}  # fmt: skip
# what differs from call to call: ids, moments, durations, keys
VARYING = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "6f1c1f0e-2b9a-4c53-9d0a-3f6f0c8e7a11"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)"), "2026-11-28T09:30:00Z"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b(?!T)"), "2026-11-28"),
    (re.compile(r"\btestserver\b"), "trees.example.org"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"),
]  # fmt: skip


class Call(NamedTuple):
    """An operation of the document."""

    name: str
    method: str
    path: str
    answers: dict[str, Any]


def calls(document: dict[str, Any]) -> list[Call]:
    return [
        Call(operation["operationId"], method, path, operation["responses"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in ("get", "post", "put", "patch", "delete")
    ]


def rows_file() -> SimpleUploadedFile:
    return SimpleUploadedFile("loans.csv", CSV.encode(), "text/csv")


def address_of(call: Call, known: dict[str, str]) -> str:
    kind = call.path.removeprefix("/api/v1/").strip("/").split("/")[0]
    own = known["served"] if call.name in SERVED else known.get(OTHERS.get(call.name, kind), "-")
    values = {
        "version": "1",
        "name": "lake" if kind == "sources" else known["v2"],
        "node": "0",
        "number": "1",
        "id": own,
        "decision": known["decisions"],
        "key": known["candidate"] if kind == "experiments" else own,
        "alarm": known["alarm"],
    }
    return re.sub(r"{(\w+)}", lambda place: values.get(place[1], "-"), call.path) + QUERIES.get(call.name, "")


def shortened(value: Any) -> Any:
    """Return JSON whose lists have at most three entries."""
    if isinstance(value, list):
        return [shortened(part) for part in value[:3]]
    return {name: shortened(part) for name, part in value.items()} if isinstance(value, dict) else value


def plain(value: Any) -> Any:
    """Return JSON with fixed values for what varies."""
    text = json.dumps(value)
    for pattern, fixed in VARYING:
        text = pattern.sub(fixed, text)
    return json.loads(text)


def example_of(client: Any, call: Call, known: dict[str, str]) -> dict[str, Any] | None:
    """Make the call, and return its example, or None if it does not succeed with these objects."""
    send = getattr(client, call.method)
    address = address_of(call, known)
    body = BODIES.get(call.name)
    body = body(known) if callable(body) else body
    if call.name in FORMS:
        response = send(address, FORMS[call.name](known), format="multipart")
    else:
        response = send(address) if body is None else send(address, body, format="json")
    if response.status_code >= 300 or str(response.status_code) not in call.answers:
        return None
    example: dict[str, Any] = {"status": response.status_code}
    if body is not None:
        example["request"] = plain(body)
    if response.get("Content-Type", "").startswith(JSON):
        answer = response.json() if len(response.content) <= MAX_BYTES else shortened(response.json())
        example["answer"] = plain(answer)
    return example if len(example) > 1 else None


@pytest.fixture
def spool(settings, tmp_path):
    """Let this process write records of decisions to a folder of its own."""
    settings.DATA_DIR = tmp_path / "data"
    settings.ERASURES = tmp_path / "data" / "erasures.jsonl"
    for end in (WRITER.close, WRITER.forget):
        end()
    yield
    for end in (WRITER.close, WRITER.forget):
        end()


@pytest.mark.slow
@pytest.mark.django_db
def test_examples_are_real_calls(owner, staff, stranger, media, client_of, settings, spool, tmp_path):
    settings.MAX_QUEUED_RUNS = 1_000
    known = ids(owner, staff)
    client = client_of(owner)
    known["decisions"] = recorded_decision(client, known["served"], staff)
    known["imported"] = imported(client, known)
    known["ended"] = client.post("/api/v1/runs/", BODIES["runs_create"](known), format="json").json()["id"]
    client.post(f"/api/v1/runs/{known['ended']}/cancel/")
    add_source(owner, settings, tmp_path / "lake")
    known |= further_ids(owner, staff, client, known, lambda: imported(client, known))
    found = {}
    for call in calls(schema_document()):
        with transaction.atomic():
            example = example_of(client, call, known)
            transaction.set_rollback(True)
        if example is not None:
            found[call.name] = example
    if os.environ.get("OCTWEB_WRITE_EXAMPLES"):
        FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    assert {name: shape(found[name]) for name in EXAMPLES} == {n: shape(e) for n, e in EXAMPLES.items()}


def imported(client: Any, known: dict[str, str]) -> str:
    return client.post("/api/v1/models/", FORMS["models_create"](known), format="multipart").json()["id"]


def recorded_decision(client: Any, served: str, staff: Any) -> str:
    """Return the id of a decision of a served model that is on record."""
    model = TreeModel.objects.get(pk=served)
    set_recording(model, by=staff, recording=Recording.FULL, keep_days=None, reason="It decides about persons.")
    address = f"/api/v1/models/{served}/predict/"
    answer = client.post(address, {"rows": [ROW]}, format="json", HTTP_OCTWEB_SUBJECT=SUBJECT)
    collect()
    return answer.json()["predictions"][0]["decision"]


def shape(example: dict[str, Any]) -> tuple[int, Any, Any]:
    """Return what a call must repeat: status, request, and the members of the answer."""
    answer = example.get("answer")
    return example["status"], example.get("request"), sorted(answer) if isinstance(answer, dict) else type(answer)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example_fits_its_schema(document, complaints, name):
    example = EXAMPLES[name]
    operation = next(o for v in document["paths"].values() for o in v.values() if o.get("operationId") == name)
    places = {"request": operation.get("requestBody", {}), "answer": operation["responses"][str(example["status"])]}
    for part in example.keys() & places.keys():
        content = places[part]["content"][JSON]
        assert content["example"] == example[part]
        assert complaints(content["schema"], example[part]) == []


def test_operations_without_example_have_nothing_to_show(document):
    """Their answers are empty, or files; a request has no body of JSON."""
    for call in calls(document):
        if call.name not in EXAMPLES:
            good = [answer.get("content", {}) for status, answer in call.answers.items() if status < "300"]
            assert not any(JSON in content for content in good), call.name
            assert "requestBody" not in document["paths"][call.path][call.method], call.name


def test_every_tag_has_a_description(document):
    used = {tag for call in calls(document) for tag in document["paths"][call.path][call.method]["tags"]}
    assert used == set(TAGS) == {tag["name"] for tag in document["tags"]}
    assert document["servers"]


def test_examples_contain_no_token():
    assert re.findall(r"\b[0-9a-f]{64}\b", json.dumps(EXAMPLES).replace(VARYING[-1][1], "")) == []
