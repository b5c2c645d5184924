"""Health calls are answered for any host and scheme, because load balancers use addresses without TLS."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection

from octweb.core.views import HEALTH

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", HEALTH)
def test_any_host_and_no_tls(client, settings, address):
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["trees.example.org"]
    assert client.get(address, HTTP_HOST="10.1.2.3:8000").status_code == 200
    assert client.head(address, HTTP_HOST="10.1.2.3:8000").status_code == 200


def test_other_addresses_still_look_at_the_host(client, settings):
    settings.ALLOWED_HOSTS = ["trees.example.org"]
    assert client.get("/api/v1/models/", HTTP_HOST="10.1.2.3:8000").status_code == 400


@pytest.mark.parametrize("address", ["/readyz", "/v2/health/ready"])
def test_readyz_fails_without_database(client, monkeypatch, address):
    def gone(*arguments):
        raise DatabaseError

    monkeypatch.setattr(connection, "cursor", gone)
    assert client.get(address).status_code == 503
