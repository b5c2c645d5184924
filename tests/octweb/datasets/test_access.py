"""Every URL of data sets, for its owner, administrators, a stranger and nobody."""

from __future__ import annotations

import pytest
from django.urls import reverse

from octweb.datasets import urls
from octweb.datasets.models import Dataset, Upload
from tests.octweb.datasets.files import API, api

pytestmark = pytest.mark.django_db
OF_ONE = {"detail": "get", "edit": "get", "preview": "get", "discard": "post", "version": "get", "counts": "get"}
OF_ALL = {"list": "get", "new": "get", "sample": "post"}
CHANGES = {"edit": {"name": "taken"}, "preview": {"confirm": "1"}, "discard": {}, "version": {}}
OF_API = [("get", ""), ("get", "rows/"), ("get", "download/"), ("patch", ""), ("delete", "")]


def test_every_page_is_tried_here():
    assert {p.name for p in urls.urlpatterns} == set(OF_ONE) | set(OF_ALL)


def page_address(name, dataset, staged):
    if name == "sample":
        return reverse("datasets:sample", args=["balance-scale"])
    if name in OF_ALL:
        return reverse(f"datasets:{name}")
    return reverse(f"datasets:{name}", args=[(staged if name in ("preview", "discard") else dataset).pk])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OF_ONE, *OF_ALL])
def test_anonymous_user_is_sent_to_login(client, dataset, staged, name):
    for method in ("get", "post"):
        answer = getattr(client, method)(page_address(name, dataset, staged))
        assert answer.status_code == 302
        assert "/login" in answer.url
    assert (Dataset.objects.count(), Upload.objects.count()) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_ONE)
def test_a_stranger_finds_nothing(client, stranger, dataset, staged, name):
    client.force_login(stranger)
    address = page_address(name, dataset, staged)
    if OF_ONE[name] == "get":
        assert client.get(address).status_code == 404
    else:
        assert client.get(address).status_code == 405
    if name in CHANGES:
        assert client.post(address, CHANGES[name]).status_code == 404
    assert (Dataset.objects.get().name, Upload.objects.count()) == ("good", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["detail", "edit", "preview", "version"])
def test_owner_and_staff_see_pages(client, owner, staff, dataset, staged, name):
    for user in (owner, staff):
        client.force_login(user)
        assert client.get(page_address(name, dataset, staged)).status_code == 200


def test_the_list_of_a_stranger_is_empty(client, owner, staff, stranger, dataset):
    for user, count in ((owner, 1), (staff, 1), (stranger, 0)):
        client.force_login(user)
        assert len(client.get(reverse("datasets:list")).context["page"].object_list) == count
        assert api(user).get(API).json()["count"] == count


@pytest.mark.parametrize(("method", "rest"), OF_API)
def test_api_refuses_strangers_and_anonymous_calls(stranger, dataset, method, rest):
    for user, status in ((stranger, 404), (None, 401)):
        body = {"data": {"name": "taken"}, "format": "json"} if method == "patch" else {}
        answer = getattr(api(user), method)(f"{API}{dataset.pk}/{rest}", **body)
        assert answer.status_code == status
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert Dataset.objects.get().name == "good"


@pytest.mark.parametrize(("method", "rest"), OF_API)
def test_the_api_for_staff(staff, dataset, method, rest):
    body = {"data": {"name": "by staff"}, "format": "json"} if method == "patch" else {}
    assert getattr(api(staff), method)(f"{API}{dataset.pk}/{rest}", **body).status_code in (200, 204)


def test_anonymous_user_cannot_list_or_upload(dataset):
    assert api(None).get(API).status_code == 401
    assert api(None).post(API, {"name": "x"}, format="multipart").status_code == 401


@pytest.mark.parametrize("pk", ["0", "x", "00000000-0000-0000-0000-000000000000", "%00", "1e999"])
def test_invalid_ids_are_404(owner, client, pk):
    client.force_login(owner)
    assert api(owner).get(f"{API}{pk}/").status_code == 404
    assert client.get(f"/datasets/{pk}/").status_code == 404
