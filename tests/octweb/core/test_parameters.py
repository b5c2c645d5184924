"""Unknown query parameters are refused by name."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.urls import resolve, reverse
from drf_spectacular.generators import SchemaGenerator

from octweb.core import parameters
from octweb.core.parameters import declared_parameters
from tests.conftest import ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/",
        "/api/v1/methods/",
        "/api/v1/datasets/",
        "/api/v1/runs/",
        "/api/v1/experiments/",
        "/api/v1/workbenches/",
        "/api/v1/models/",
        "/api/v1/predictions/",
        "/api/v1/tokens/",
        "/api/v1/models/{model}/",
        "/api/v1/models/{model}/figures/tree/",
        "/api/v1/models/figures/compare/",
        "/v2",
        "/v2/models/small-cart",
        "/ping",
        "/ping?model=small-cart",
    ],
)
def test_unknown_parameter_is_named_and_refused(client_of, owner, approved, address):
    address = address.format(model=approved.pk)
    client = client_of(owner)
    assert client.get(address).status_code in (200, 404)
    answer = client.get(f"{address}{'&' if '?' in address else '?'}live_on=2026-01-01")
    assert answer.status_code == 400
    assert "live_on: Not a parameter of this call." in answer.json()["detail"]


def test_refusal_lists_the_known_parameters(client_of, owner):
    detail = client_of(owner).get("/api/v1/runs/?stauts=failed").json()["detail"]
    assert detail.endswith(
        "Known parameters: cursor, dataset, ordering, page, page_size, search, since, status, until."
    )


@pytest.mark.parametrize("address", ["/api/v1/models/{model}/predict/", "/v2/models/small-cart/infer", "/invocations"])
def test_unknown_parameter_of_a_prediction_is_refused(client_of, owner, approved, address):
    rows = {"rows": [{"width": 1.0}]}
    answer = client_of(owner).post(address.format(model=approved.pk) + "?explian=true", rows, format="json")
    assert answer.status_code == 400
    assert "explian: Not a parameter" in answer.json()["detail"]


def test_stranger_learns_nothing_from_parameters(client_of, stranger, model):
    there = client_of(stranger).get(f"/api/v1/models/{model.pk}/?x=1")
    absent = client_of(stranger).get("/api/v1/models/00000000-0000-0000-0000-000000000000/?x=1")
    assert there.json() == absent.json()
    assert client_of().get("/api/v1/models/?x=1").status_code == 401


@pytest.mark.parametrize(
    ("path", "method", "names"),
    [
        ("/api/v1/models/abc/shares/", "DELETE", {"username"}),
        ("/api/v1/models/abc/shares/", "GET", set()),
        (
            "/api/v1/models/",
            "HEAD",
            {
                "cursor",
                "dataset",
                "method",
                "name",
                "ordering",
                "page",
                "page_size",
                "search",
                "since",
                "state",
                "status",
                "until",
            },
        ),
        ("/api/v1/models/figures/compare/", "GET", {"dataset"}),
        ("/api/v1/workbenches/abc/edits/3/", "GET", {"wait"}),
        ("/api/v1/nothing/", "GET", set()),
    ],
)
def test_declared_parameters_come_from_the_document(path, method, names):
    assert declared_parameters(path, method) == names


def test_pages_send_only_declared_parameters():
    """The templates are searched for addresses of figures with query strings."""
    checked = 0
    for template in sorted((ROOT / "templates").rglob("*.html")):
        for name, query in re.findall(r"{% url '([\w:-]+)'[^%]*%}\?([^\"#]+)\"", template.read_text(encoding="utf-8")):
            if not name.startswith(("api-", "workbench-")):
                continue
            pk = "00000000-0000-0000-0000-000000000000"
            path = reverse(name, args=[pk, 1] if name == "workbench-good-tree" else [pk])
            sent = {part.partition("=")[0] for part in query.replace("&amp;", "&").split("&")}
            assert sent <= declared_parameters(path, "GET"), (template.name, name)
            checked += 1
    assert checked >= 5


def test_document_is_built_once_by_several_threads(monkeypatch):
    built = []

    class SlowGenerator:
        def get_schema(self, **_):
            built.append(1)
            time.sleep(0.05)
            return {"paths": {}}

    monkeypatch.setattr(parameters, "LockedGenerator", SlowGenerator)
    parameters._build_document.cache_clear()
    try:
        with ThreadPoolExecutor(8) as pool:
            documents = list(pool.map(lambda _: parameters.schema_document(), range(8)))
    finally:
        parameters._build_document.cache_clear()
    assert documents == [{"paths": {}}] * 8
    assert built == [1]


def test_schema_address_waits_for_the_same_lock(monkeypatch, rf):
    """The first call of the schema and the first other call, in two threads, must not build it at once."""
    lock = threading.Lock()
    overlaps = []

    def build(self, request=None, public=False):
        overlaps.append(not lock.acquire(blocking=False))
        time.sleep(0.05)
        if lock.locked():
            lock.release()
        return {"paths": {}}

    monkeypatch.setattr(SchemaGenerator, "get_schema", build)
    parameters._build_document.cache_clear()
    view = resolve("/api/schema/").func
    calls = [parameters.schema_document, *[lambda: view(rf.get("/api/schema/"))] * 3]
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            list(pool.map(lambda call: call(), calls))
    finally:
        parameters._build_document.cache_clear()
    assert overlaps == [False] * len(calls)


def test_every_body_of_a_call_names_unknown_members():
    """Classes that read `request.data` are BodySerializers."""
    plain = []
    for path in (ROOT / "octweb").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for name in re.findall(r"(\w+)\(data=request\.data", source):
            if name[0].isupper():
                places = {
                    p for p in (ROOT / "octweb").rglob("*.py") if f"class {name}(" in p.read_text(encoding="utf-8")
                }
                assert places, name
                plain += [
                    name
                    for p in places
                    if not re.search(rf"class {name}\((BodySerializer|Erase|SampledRows)", p.read_text())
                ]
    assert plain == []


@pytest.mark.django_db
def test_unknown_member_of_a_body_is_named(client_of, owner):
    answer = client_of(owner).post("/api/v1/tokens/", {"nmae": "ci", "scope": "full"}, format="json")
    assert answer.status_code == 400
    errors = {error["attr"]: error["detail"] for error in answer.json()["errors"]}
    assert errors["nmae"].startswith("Not a member of this body. Known members: name, scope")
