"""Every address of the resolver, asked by owner, stranger and nobody: no crossing and no server error.

The list comes from the resolver, so an address that is added is covered by itself; one with a placeholder that this file cannot fill
fails the test until it is told how.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie

import pytest
from django.core.files.base import ContentFile
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from octweb.batch import actions as batch
from octweb.core.throttles import WINDOWS
from octweb.datasets import actions as datasets
from octweb.experiments import actions as experiments
from octweb.registry import actions as registry
from octweb.runs import actions as runs
from octweb.serving.actions import create_token
from octweb.workbench import actions as workbenches
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import trained

pytestmark = pytest.mark.django_db
METHODS = ("get", "post", "put", "patch", "delete")
# addresses of Django's own parts and of files, which hold nobody's objects
ELSEWHERE = ("admin/", "accounts/", "static/", "media/")

# what the owner's small objects do not have: approval, a comparison, rows of the training, a kept incumbent
ABSENT = (
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
    """The routes of all addresses, as they are written in the URL configuration."""
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, route)
        elif isinstance(entry, URLPattern):
            yield route


ROUTES = sorted({r for r in patterns(get_resolver()) if not r.startswith(ELSEWHERE)})
PARTS = [
    ROUTES[at : at + 60] for at in range(0, len(ROUTES), 60)
]  # to make the objects takes longer than to try an address


@contextmanager
def taken_back() -> Iterator[None]:
    """What is done to the database inside is undone, so that the next address finds all objects, and no call counts for it."""
    WINDOWS.forget()
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@dataclass
class Things:
    """One private object of each kind that belongs to the owner."""

    by_prefix: dict[str, str]
    family: str


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
    return Things(
        by_prefix={
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
        },
        family=model.family.name,
    )


def filled(route: str, things: Things) -> tuple[str, bool]:
    """The address of a route, and whether it names somebody's object; raises AssertionError for an unknown placeholder."""
    address = route.replace("^", "").replace("\\Z", "").replace("$", "").replace("\\.", ".").replace("/?", "")
    private = False
    own = next((v for p, v in things.by_prefix.items() if p in address), None)
    for placeholder in re.findall(r"<[^>]+>|\(\?P<[^>]+>[^)]*\)", address):
        name = re.search(r"(\w+)>", placeholder).group(1)
        if name == "kind":
            address = address.replace(placeholder, "run")
            continue
        if name in {"pk", "id", "key"}:
            assert own is not None, f"{route}: whose object is this? Add it to Things."
            value, private = own, True
            if name == "key" and "experiments/" in route:
                value = things.by_prefix["experiments/candidates/"]
        elif name == "name" and route.startswith("v2"):
            value, private = things.family, True
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
                "format": "json",
                "form": "html",
                "page": "index.html",
            }.get(name)
            assert value is not None, f"{route}: no value is known for <{name}>. Add one."
        address = address.replace(placeholder, value)
    return "/" + address, private


def answers(client: Client, address: str) -> dict[str, int]:
    """The status of each method."""
    found = {}
    for method in METHODS:
        response = getattr(client, method)(address)
        if response.streaming:
            for _ in response:
                pass
        found[method] = response.status_code
    return found


def api_client(user, cookies: SimpleCookie | None = None) -> APIClient:
    """A client of the user, which signs in unless it gets the cookies of one that did."""
    client = APIClient(raise_request_exception=False)
    if user is not None:
        client.force_authenticate(user)
        if cookies is None:
            client.force_login(user)
        else:
            client.cookies.load(cookies.output(header="", sep=";"))
    return client


@pytest.mark.parametrize("routes", PARTS, ids=lambda routes: routes[0])
def test_no_crossing_and_no_server_error(routes, things, owner, stranger):
    signed_in = {user: api_client(user).cookies for user in (owner, stranger)}
    for route in routes:
        with taken_back():
            _no_crossing(route, things, owner, stranger, signed_in)


def _no_crossing(route, things, owner, stranger, signed_in):
    address, private = filled(route, things)
    nobody, other = answers(api_client(None), address), answers(api_client(stranger, signed_in[stranger]), address)
    assert all(status < 500 for status in [*nobody.values(), *other.values()]), (route, nobody, other)
    if private:
        # 404 whether or not there is such an object; 405 tells only that the method is not for this address
        assert set(other.values()) <= {404, 405}, (route, other)
        assert set(nobody.values()) <= {302, 401, 404, 405}, (route, nobody)
    mine = answers(api_client(owner, signed_in[owner]), address)
    assert all(status < 500 for status in mine.values()), (route, mine)
    if private and not route.startswith(ABSENT):
        assert any(status not in {404, 405} for status in mine.values()), (route, mine)


def test_no_address_changes_anything_for_a_page_of_another_site(things, owner):
    """A foreign page can send the owner's cookie, and it can send neither the token of a form nor a header of its own."""
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
    """Every address of the administration, about the owner's objects where it names one."""
    found = []
    for route in sorted({r for r in patterns(get_resolver()) if r.startswith("admin/")}):
        own = next((v for p, v in things.by_prefix.items() if p.rstrip("s/") in route), things.by_prefix["models/"])
        found.append("/" + re.sub(r"<[^>]+>|\(\?P<[^>]+>[^)]*\)", own, route).replace("^", "").replace("$", ""))
    return found


def test_the_administration_is_closed_to_all_but_staff(things, stranger, owner):
    addresses = admin_addresses(things)
    assert len(addresses) > 30
    for client in (api_client(None), api_client(stranger), api_client(owner)):
        for address in addresses:
            if address.startswith(("/admin/login/", "/admin/logout/", "/admin/jsi18n/")):
                continue
            for method, status in answers(client, address).items():
                # the sign-in page, or none at all
                assert status in {302, 403, 404, 405}, (address, method, status)


def test_the_list_covers_the_application():
    assert len(ROUTES) > 50
    assert any(route.startswith("api/v1/models/") for route in ROUTES)
