"""Every URL for every role: no access to others' objects, no server error, statuses as in `access.txt`.

The list comes from the resolver, so a new URL is tested automatically. One with a placeholder that this file cannot
fill fails the test until it is added here. `OCTWEB_WRITE_ACCESS=1` writes the table of statuses again. Read what has
changed.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from rest_framework.test import APIClient

from octweb.batch import actions as batch
from octweb.core.models import Membership, Team
from octweb.core.ownership import forget_roles
from octweb.core.throttles import WINDOWS
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.decisions import adding
from octweb.demo.models import Visit
from octweb.experiments import actions as experiments
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.serving.actions import create_token
from octweb.sources.models import SourceCount
from octweb.teams import actions as teams
from octweb.workbench import actions as workbenches
from octweb.workbench.models import Workbench
from tests.conftest import ROOT
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import trained

pytestmark = pytest.mark.django_db
METHODS = ("get", "post", "put", "patch", "delete")
TABLE = Path(__file__).parent / "access.txt"
API = ("api/v1/", "v2", "invocations", "ping")  # URLs for which a token counts
# anybody, a signed-in user, a visitor of the demo, the owner of the objects, a reviewer, an administrator, and tokens of the owner
# with the objects in a team: its owner, editor, reader and reviewer
TEAM_ROLES = {f"team-{role}": role for role in ("owner", "editor", "reader", "reviewer")}
ROLES = ("anonymous", "other", "visitor", "owner", "reviewer", "admin", "full", "predict", *TEAM_ROLES)
ALLOWED_MOST = {"owner", "admin"}
# what members of a team who change nothing may send
FOR_READERS = {
    "api/v1/models/<uuid:pk>/predict/",
    "api/v1/models/<uuid:pk>/explain/",
    "api/v1/models/<uuid:pk>/challenger/",  # as challenger of a model of the caller
    "api/v1/models/<uuid:pk>/challenger/promote/",  # 409: the caller has no such model
    "models/<uuid:pk>/",  # a row typed into the page
    "models/<uuid:pk>/try/",
    "models/<uuid:pk>/decision/",
    # each step says who may take it, and so does each change of a team
    "api/v1/models/<uuid:pk>/review/",
    "models/<uuid:pk>/review/<slug:verb>/",
    "api/v1/teams/<uuid:pk>/",
    "api/v1/teams/<uuid:pk>/members/",
}
# rows that safe methods may change: sessions, and when somebody signed in
STAMPS = {"sessions.session", "axes.accesslog", "axes.accessattempt"}
STAMP_FIELDS = {"last_login"}
# URLs of Django's own parts and of files, which contain no user's objects
ELSEWHERE = ("admin/", "accounts/", "static/", "media/")

OWN_PATHS = (str(ROOT).encode(), tempfile.gettempdir().encode() + b"/", str(Path.home()).encode() + b"/")
# what the owner's small objects do not have: approval, a comparison, rows of the training, a kept incumbent, a source
ABSENT = (
    "sources/samples/",
    "v2",
    "api/v1/models/<uuid:pk>/figures/nodes/",
    "runs/<uuid:pk>/trees/",
    r"api/v1/^workbenches/(?P<pk>[^/.]+)/figures/",
    "api/v1/models/<uuid:pk>/figures/reach/",
    "api/v1/models/<uuid:pk>/figures/leaf-frontier/",
    "api/v1/models/<uuid:pk>/figures/coefficient-frontier/",
    "api/v1/models/<uuid:pk>/figures/calibration/",
    "api/v1/models/<uuid:pk>/figures/roc/",
    "api/v1/models/<uuid:pk>/figures/precision-recall/",
    "api/v1/models/<uuid:pk>/comparison/cancel/",
    "models/<uuid:pk>/rows",
    "models/<uuid:pk>/groups/",
    "models/<uuid:pk>/dossier/<slug:form>/",
    "public/",
)


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    """Yield the routes of all URLs, as they are written in the URL configuration."""
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, route)
        elif isinstance(entry, URLPattern):
            yield route


def name_of(route: str) -> str:
    """Return the route as the table writes it, without spaces. The root is `/`."""
    return route.replace(" ", "") or "/"


ROUTES = sorted({r for r in patterns(get_resolver()) if not r.startswith(ELSEWHERE)})
NAMES = {name_of(route) for route in ROUTES}
PARTS = [
    ROUTES[at : at + 60] for at in range(0, len(ROUTES), 60)
]  # creating the objects takes longer than trying a URL


@contextmanager
def taken_back() -> Iterator[None]:
    """Undo all database changes inside, and count no calls, so that the next URL finds all objects."""
    WINDOWS.forget()
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    forget_roles()


@dataclass
class Things:
    """One private object of each kind, all of the owner."""

    by_prefix: dict[str, str]
    family: str
    team: Team

    def give_to_team(self, user: Any, role: str) -> None:
        """Let the data set and its model belong to the team, and the user have this role there."""
        for kind in (Dataset, TreeModel):
            kind.objects.update(team=self.team)
        Membership.objects.create(team=self.team, user=user, role=role)
        forget_roles()


@pytest.fixture
def things(owner, media) -> Things:
    csv = io.BytesIO(CSV.encode())
    dataset = datasets.create(owner=owner, file=csv, source_name="small.csv", target="class")
    upload = datasets.stage(owner=owner, file=io.BytesIO(CSV.encode()), source_name="other.csv")
    model = registry.register(owner=owner, document=trained("cart", depth=2), dataset=dataset, title="private one")
    rows = ContentFile(CSV.encode(), name="rows.csv")
    prediction = batch.enqueue(owner=owner, model=model, file=rows, source_name="rows.csv")
    experiment = experiments.start(
        owner=owner, dataset=dataset, candidates=[{"method": "cart"}], folds=3, test_share=0.2
    )
    gone = runs.cancel(runs.enqueue(owner=owner, dataset=dataset, method="cart"))
    runs.delete(gone)
    ended = runs.cancel(runs.enqueue(owner=owner, dataset=dataset, method="cart"))
    workbench = workbenches.open_for(owner=owner, dataset=dataset)
    decision = refused_decision(model)
    team = teams.create(by=owner, name="Risk")
    count = SourceCount.objects.create(owner=owner, source="bank", table="loans", name="Loans", target="paid")
    return Things(
        by_prefix={
            "teams/of/": str(dataset.pk),
            "teams/": str(team.pk),
            "sources/counts/": str(count.pk),
            "v1/counts/": str(count.pk),
            "sources/samples/": str(upload.pk),
            "deleted/": str(gone.pk),
            "delete/<slug:kind>": str(ended.pk),
            "experiments/candidates/": str(experiment.candidates.get().pk),
            "experiments/": str(experiment.pk),
            "datasets/uploads/": str(upload.pk),
            "datasets/": str(dataset.pk),
            "runs/": str(runs.enqueue(owner=owner, dataset=dataset, method="cart").pk),
            "models/": str(model.pk),
            "public/<": str(model.pk),
            "predictions/": str(prediction.pk),
            "workbenches/": str(workbench.pk),
            "tokens/": create_token(owner=owner, name="other")[0].token_key,
            "decisions/": str(decision),
        },
        family=model.family.name,
        team=team,
    )


def refused_decision(model: TreeModel) -> uuid.UUID:
    """Add a refused row of the model to the chain of decisions, and return its id."""
    key = uuid.uuid4()
    at = time.time_ns()
    payload = {
        "kind": "decision", "id": str(key), "at": at, "call": "", "row": 0, "model": str(model.pk), "version_sha256": model.sha256, "name": "",
        "api": 1, "by": "", "subject": "", "values": {}, "noted": [["width", "empty"]], "refused": "empty",
    }  # fmt: skip
    with transaction.atomic():
        adding.add(adding.hold(), [adding.EntryDraft("decision", key, at, payload, {"model": model.pk})])
    return key


def filled(route: str, things: Things) -> tuple[str, bool]:
    """Return the URL of a route, and whether it names a user's object.

    Raises AssertionError if the route is unknown.
    """
    address = route.replace("^", "").replace("\\Z", "").replace("$", "").replace("\\.", ".").replace("/?", "")
    private = False
    own = next((v for p, v in things.by_prefix.items() if p in address), None)
    for placeholder in re.findall(r"<[^>]+>|\(\?P<[^>]+>[^)]*\)", address):
        name = re.search(r"(\w+)>", placeholder).group(1)
        if name == "kind":
            address = address.replace(placeholder, "dataset" if "teams/" in route else "run")
            continue
        if name == "decision":
            value = things.by_prefix["decisions/"]
            private = True
        elif name in {"pk", "id", "key"}:
            assert own is not None, f"{route}: whose object is this? Add it to Things."
            value = own
            private = True
            if name == "key" and "experiments/" in route:
                value = things.by_prefix["experiments/candidates/"]
        elif name == "name" and route.startswith("v2"):
            value = things.family
            private = True
        else:
            value = {
                "other": things.by_prefix["datasets/"],
                "node": "0",
                "line": "1",
                "name": "json",
                "verb": "ask",
                "slug": "iris",
                "version": "1",
                "number": "1",
                "alarm": "1",
                "format": "json",
                "form": "html",
                "page": "index.html",
            }.get(name)
            assert value is not None, f"{route}: no value is known for <{name}>. Add one."
        address = address.replace(placeholder, value)
    return "/" + address, private


def answers(client: Client, address: str, methods: Iterable[str]) -> dict[str, int]:
    """Return the status of each method."""
    found = {}
    for method in methods:
        response = getattr(client, method)(address)
        if response.streaming:
            for _ in response:
                pass
        found[method] = response.status_code
    return found


def api_client(user, cookies: SimpleCookie | None = None) -> APIClient:
    """Return a client of the user. It signs in unless it gets the cookies of a client that did."""
    client = APIClient(raise_request_exception=False)
    if user is not None:
        client.force_authenticate(user)
        if cookies is None:
            client.force_login(user)
        else:
            client.cookies.load(cookies.output(header="", sep=";"))
    return client


@pytest.fixture
def clients(owner, stranger, staff, django_user_model) -> dict[str, Callable[[], APIClient]]:
    """Provide functions that return a new client of each role, because URLs may end a session."""
    visitor = django_user_model.objects.create_user("visitor")
    now = timezone.now()
    Visit.objects.create(user=visitor, begun=now, until=now + timedelta(days=1), origin="somewhere")
    reviewer = django_user_model.objects.create_user("rita", is_staff=True)
    users = {"other": stranger, "visitor": visitor, "owner": owner, "reviewer": reviewer, "admin": staff}
    users |= {name: django_user_model.objects.create_user(name) for name in TEAM_ROLES}
    found = {"anonymous": partial(api_client, None)}
    for role, user in users.items():
        found[role] = partial(api_client, user, api_client(user).cookies)
    for scope in ("full", "predict"):
        found[scope] = partial(token_client, create_token(owner=owner, name=scope, scope=scope)[1])
    return found


def token_client(secret: str) -> APIClient:
    client = api_client(None)
    client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    return client


@pytest.mark.parametrize("routes", PARTS, ids=lambda routes: routes[0])
def test_access_table_holds_for_every_role(routes, things, clients, settings, tmp_path):
    """Others also get nothing of private objects, and no URL answers with a server error."""
    settings.DOCS_DIR = tmp_path
    lines = [line for route in routes for line in _access(route, things, clients)]
    own = {name_of(route) for route in routes}
    known = TABLE.read_text(encoding="utf-8").splitlines()[2:] if TABLE.exists() else []
    if os.environ.get("OCTWEB_WRITE_ACCESS"):
        kept = [line for line in known if line.split()[0] in NAMES and line.split()[0] not in own]
        head = [
            "# status by role; methods with 405 for owner and administrator are left out. "
            + "OCTWEB_WRITE_ACCESS=1 pytest writes this file."
        ]
        head.append("route method " + " ".join(ROLES))
        TABLE.write_text("\n".join([*head, *sorted([*kept, *lines])]) + "\n", encoding="utf-8")
        return
    assert sorted(lines) == [line for line in known if line.split()[0] in own]


def test_access_table_has_no_old_addresses():
    routes = {line.split()[0] for line in TABLE.read_text(encoding="utf-8").splitlines()[2:]}
    assert routes - NAMES == set()


def _access(route: str, things: Things, clients: dict[str, Callable[[], APIClient]]) -> list[str]:
    """Return the lines of the table for a route: the status of each method for each role."""
    address, private = filled(route, things)
    found: dict[str, dict[str, int]] = {}
    methods = METHODS
    for role in sorted(ROLES, key=lambda name: name not in ALLOWED_MOST):
        if role in ("full", "predict") and not route.startswith(API):
            continue
        with taken_back():
            if role in TEAM_ROLES:
                things.give_to_team(get_user_model().objects.get(username=role), TEAM_ROLES[role])
            found[role] = answers(clients[role](), address, methods)
        assert all(status < 500 for status in found[role].values()), (route, role, found[role])
        if found.keys() == ALLOWED_MOST:
            # a method that neither may use is one that the address does not have: that saves half of all requests
            methods = tuple(m for m in METHODS if {found[most][m] for most in ALLOWED_MOST} != {405})
    if private:
        # 404 whether or not there is such an object; 405 tells only that the method is not for this address
        assert {*found["other"].values(), *found["visitor"].values()} <= {404, 405}, (route, found)
        assert set(found["anonymous"].values()) <= {302, 401, 404, 405}, (route, found)
        for role in ("team-reader", "team-reviewer"):
            changed = {
                m: s for m, s in found[role].items() if m not in ("get", "head", "options") and s not in {403, 404, 405}
            }
            assert not changed or route in FOR_READERS, (route, role, changed)
    if private and not route.startswith(ABSENT):
        assert any(status not in {404, 405} for status in found["owner"].values()), (route, found)
    return [
        f"{name_of(route)} {method.upper()} "
        + " ".join(str(found[role][method]) if role in found else "-" for role in ROLES)
        for method in methods
    ]


def rows_of_all_tables() -> dict[str, list[str]]:
    """Return the rows of every table, as text, without the stamps that reading may change."""
    found = {}
    for model in apps.get_models():
        if model._meta.label_lower in STAMPS:
            continue
        fields = [field.attname for field in model._meta.concrete_fields if field.name not in STAMP_FIELDS]
        found[model._meta.label_lower] = sorted(map(repr, model._base_manager.values_list(*fields)))
    return found


# what the body of a request that changes something could hold
BODY = {
    "add": ["forbid root width"], "wishes": [], "drop": [], "name": "another", "title": "another", "action": "ask", "confirm": "1", "target": "class",
    "to": "undo", "delete": "1", "test": "1", "webhook": "https://example.org/", "email": "on", "username": "sam", "level": "call", "show": "1",
    "scope": "full", "method": "cart", "slack": "0.1", "place": "root", "days": 3, "rows": [{"width": 1}],
}  # fmt: skip
# what reading may add: downloads are recorded, and the owner's first call makes the dossier, as docs/dossier.md says
LOOK = {"decisions.chainentry", "decisions.decisionhead"}  # who looked at a decision is a record
MAY_ADD = {
    "api/v1/models/<uuid:pk>/download/": {"audit.head", "audit.record"},
    "models/<uuid:pk>/download/<slug:name>/": {"audit.head", "audit.record"},
    "models/<uuid:pk>/check/files/": {"audit.head", "audit.record"},
    "api/v1/models/<uuid:pk>/dossier/": {"dossier.modeldossier"},
    "api/v1/decisions/<uuid:decision>/": LOOK,
    "api/v1/decisions/<uuid:decision>/letter/": LOOK,
    "models/<uuid:pk>/decisions/<uuid:decision>/": LOOK,
    "models/<uuid:pk>/decisions/<uuid:decision>/letter/": LOOK,
    "models/<uuid:pk>/decisions/<uuid:decision>/letter.pdf": LOOK,
    "dossier-key/": {"dossier.signingkey"},  # of the server, registered at its first use
}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["owner", "admin", "full"])
def test_safe_methods_change_no_row(role, things, clients):
    """Safe methods are GET, HEAD and OPTIONS, here with bodies. Even a stalled workbench stays unchanged."""
    Workbench.objects.update(status="failed", error="died")
    before = rows_of_all_tables()
    for route in ROUTES:
        if role == "full" and not route.startswith(API):
            continue
        address, _ = filled(route, things)
        with taken_back():
            _read(clients[role](), address)
            after = rows_of_all_tables()
        changed = {table for table in before if before[table] != after[table]}
        assert changed <= MAY_ADD.get(route, set()), (route, changed)


def _read(client: APIClient, address: str) -> None:
    """Send GET, HEAD and OPTIONS, each with a body of JSON and of a form."""
    for method in ("GET", "HEAD", "OPTIONS"):
        for kind in ("json", "multipart"):
            body = BODY if kind == "json" else {name: str(value) for name, value in BODY.items()}
            response = client.generic(method, address, *encoded(client, body, kind))
            if response.streaming:
                b"".join(response.streaming_content)


def encoded(client: APIClient, body: dict, kind: str) -> tuple[bytes, str]:
    """Return the bytes of a body and its content type."""
    content, content_type = client._encode_data(body, format=kind)
    return content, content_type


DEEP = "[" * 3_000 + "]" * 3_000
# values of JSON that no member is made for
ODD_VALUES = (
    "null", "true", "-1", "0", "1e400", "9" * 400, "1e308", "[]", "{}", "[null]", "[[1]]", '{"a": null}', '""', '"\\u0000"', '"\\ud800"',
    '"../../etc/passwd"', '"/etc/passwd"', '"%00"', f'"{"x" * 5_000}"', '"\\u202e"', "[1, 1]", '[{"width": {}}]', "NaN",
)  # fmt: skip
ODD_BODIES = (
    b"", b"null", b"[]", b"1", b'"x"', b"{", b"\xff\xfe", b"\x00", b'{"a":1,"a":2}', DEEP.encode(), b'{"a":' + DEEP.encode() + b"}",
    b'{"\\ud800":1}', b"NaN", b"-", b"\xef\xbb\xbf{}",
)  # fmt: skip
ODD_KINDS = ("application/json", "text/plain", "multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded; charset=utf-99", "a/b;;=", "text/csv")  # fmt: skip
ODD_TEXTS = ("", "\x00", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "-1", "9" * 400, "1e400", "nan", "../../etc/passwd", "/etc/passwd", "[" * 200, "x" * 5_000, "\u202e", "{}")  # fmt: skip
ODD_HEADERS = (
    {"HTTP_ACCEPT": "x" * 3_000}, {"HTTP_ACCEPT": "application/xml;q=nan"}, {"HTTP_ACCEPT_LANGUAGE": "\x00,,;q=a"}, {"HTTP_HOST": "a/b"},
    {"HTTP_RANGE": "bytes=9-1,-0,x"}, {"HTTP_IF_NONE_MATCH": '"' * 99}, {"HTTP_IF_MODIFIED_SINCE": "never"}, {"HTTP_COOKIE": "sessionid=\xff;;=;csrftoken"},
    {"HTTP_AUTHORIZATION": "Token"}, {"HTTP_AUTHORIZATION": "Token a b"}, {"HTTP_AUTHORIZATION": "Token \xff"}, {"HTTP_X_FORWARDED_FOR": "\xff, ::::"},
    {"HTTP_CONTENT_ENCODING": "gzip"}, {"HTTP_IDEMPOTENCY_KEY": "\x00"}, {"CONTENT_LENGTH": "x"}, {"HTTP_REFERER": "http://[::"}, {"HTTP_HX_REQUEST": "x"},
    {"HTTP_INFERENCE_HEADER_CONTENT_LENGTH": "-5"},
)  # fmt: skip
QUERIES = ("page", "q", "sort", "live_on", "class", "row", "wish", "next", "t", "depth", "cursor", "format", "rows", "fold", "columns", "state", "%00")  # fmt: skip


def _json_bodies(chosen: random.Random, count: int) -> list[tuple[bytes, str]]:
    """Return JSON bodies: odd ones, and good ones with one odd member."""
    found = [(body, "application/json") for body in ODD_BODIES]
    names = [
        *BODY,
        "parameters",
        "file",
        "inputs",
        "id",
        "kinds",
        "roles",
        "folds",
        "candidates",
        "columns",
        "place",
        "units",
        "recalls",
        "order",
    ]
    for name in names:
        for value in ODD_VALUES:
            good = {key: json.dumps(known) for key, known in BODY.items()} | {name: value}
            text = "{" + ",".join(f'"{key}":{member}' for key, member in good.items()) + "}"
            found.append((text.encode(), "application/json"))
    return chosen.sample(found, min(count, len(found)))


def _form_bodies(chosen: random.Random, count: int) -> list[tuple[bytes, str]]:
    """Return bodies of forms with one odd field, and bodies that contradict their content type."""
    found = [(body, kind) for kind in ODD_KINDS for body in (*ODD_BODIES[:8], b"a=%ff&b=%00", b"--x\r\n\r\n")]
    for name in BODY:
        for value in ODD_TEXTS:
            form = {key: str(known) for key, known in BODY.items()} | {name: value}
            found.append((urlencode(form).encode(), "application/x-www-form-urlencoded"))
    return chosen.sample(found, min(count, len(found)))


@pytest.mark.slow
@pytest.mark.parametrize("routes", PARTS, ids=lambda routes: routes[0])
def test_odd_calls_get_no_server_error_and_no_path(routes, things, clients, settings, pytestconfig):
    """Odd bodies, headers and query strings are sent to every URL by its owner and by an administrator."""
    settings.RATES = {}
    instances = pytestconfig.getoption("--instances")
    chosen = random.Random(instances)
    count = max(2, instances // 2)
    faults = []
    for route in routes:
        address, _ = filled(route, things)
        calls = [("GET", f"{address}?{name}={quote(text)}", b"", "", {}) for name in QUERIES for text in ODD_TEXTS]
        calls = chosen.sample(calls, min(count, len(calls)))
        calls += [
            ("GET", address, b"", "", headers) for headers in chosen.sample(ODD_HEADERS, min(count, len(ODD_HEADERS)))
        ]
        bodies = [*_json_bodies(chosen, count), *_form_bodies(chosen, count)]
        calls += [(method, address, *body, {}) for body in bodies for method in ("POST", "PUT", "PATCH")]
        for role in chosen.sample(["owner", "admin"], 1 if instances < 20 else 2):
            faults += _faults(clients[role](), calls)
    assert faults == []


def _faults(client: APIClient, calls: list[tuple[str, str, bytes, str, dict[str, str]]]) -> list[Any]:
    """Return the calls that got a server error or a path of this server. After a 405 its method is skipped."""
    found: list[Any] = []
    absent = set()
    for method, address, body, kind, headers in calls:
        if (method, address) in absent:
            continue
        with taken_back():
            response = client.generic(method, address, body, kind, **headers)
            content = b"".join(response.streaming_content) if response.streaming else response.content
        if response.status_code == 405:
            absent.add((method, address))
        if response.status_code == 500 or any(path in content for path in OWN_PATHS):
            found.append((method, address[:200], body[:300], kind, headers, response.status_code))
    return found


@pytest.mark.slow
def test_no_address_changes_anything_for_a_page_of_another_site(things, owner):
    """A foreign page can send the owner's cookie, but neither the token of a form nor a custom header."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(owner)
    refused = 0
    for route in ROUTES:
        address, _ = filled(route, things)
        for method in ("post", "put", "patch", "delete"):
            for headers in ({}, {"Origin": "https://elsewhere.example"}):
                answer = getattr(client, method)(address, headers=headers)
                assert answer.status_code in {401, 403, 404, 405}, (route, method, answer.status_code)
                refused += answer.status_code == 403
    assert refused > 100


def admin_addresses(things: Things) -> list[str]:
    """Return every URL of the administration, for the owner's objects if it names one."""
    found = []
    for route in sorted({r for r in patterns(get_resolver()) if r.startswith("admin/")}):
        own = next((v for p, v in things.by_prefix.items() if p.rstrip("s/") in route), things.by_prefix["models/"])
        found.append("/" + re.sub(r"<[^>]+>|\(\?P<[^>]+>[^)]*\)", own, route).replace("^", "").replace("$", ""))
    return found


@pytest.mark.slow
def test_the_administration_is_closed_to_all_but_staff(things, stranger, owner):
    addresses = admin_addresses(things)
    assert len(addresses) > 30
    for client in (api_client(None), api_client(stranger), api_client(owner)):
        for address in addresses:
            if address.startswith(("/admin/login/", "/admin/logout/", "/admin/jsi18n/")):
                continue
            for method, status in answers(client, address, METHODS).items():
                # the sign-in page, or none at all
                assert status in {302, 403, 404, 405}, (address, method, status)


def test_list_covers_every_app():
    assert len(ROUTES) > 50
    assert any(route.startswith("api/v1/models/") for route in ROUTES)
