"""The API conforms to its OpenAPI document for generated requests, without server errors."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from octweb.serving.actions import create_token
from octweb.workbench import api
from tests.octweb.api_objects import ids

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("open_connection")]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.slow
def test_schema_is_generated_without_warnings(capsys):
    call_command("spectacular", "--fail-on-warn", "--validate", "--file=/dev/null")


def attack(operation: Any, known: dict[str, str], headers: dict[str, str], examples: int) -> int:
    """Send generated requests, every second one to an object that exists. Return how many succeeded."""
    answered = [0, 0]

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        answered[0] += 1
        kind = operation.path.removeprefix("/api/v1/").strip("/").split("/")[0]
        if case.path_parameters and answered[0] % 2:
            found = {"version": "1", "name": known["v2"]}
            found |= dict.fromkeys(("id", "key"), known[kind]) if kind in known else {}
            case.path_parameters.update({name: found[name] for name in found.keys() & case.path_parameters.keys()})
        response = case.call_and_validate(headers=headers, checks=CHECKS)
        answered[1] += response.status_code < 300

    send()
    return answered[1]


def walk(owner, staff, examples: int) -> None:
    _, secret = create_token(owner=owner, name="walk")
    headers = {"Authorization": f"Token {secret}"}
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application(), headers=headers)
    known = ids(owner, staff)
    count = 0
    answered = 0
    for get_all_operation in schema.get_all_operations():
        count += 1
        with transaction.atomic():  # the effects of an operation are undone, so that the next one finds all objects
            answered += attack(get_all_operation.ok(), known, headers, examples) > 0
            transaction.set_rollback(True)
    assert count >= 20
    assert answered >= count // 2  # otherwise the requests do not reach what they should test


@pytest.mark.slow
def test_generated_requests(owner, staff, media, settings, monkeypatch):
    monkeypatch.setattr(api, "MAX_WAIT_SECONDS", 0.2)  # there is no worker, so waiting for its answer would be useless
    settings.MAX_QUEUED_RUNS = 10_000
    walk(owner, staff, 6)
