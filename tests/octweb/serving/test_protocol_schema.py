"""Answers to generated requests conform to the published Open Inference Protocol.

`open_inference_rest.yaml` is that document, byte for byte (github.com/kserve/open-inference-protocol, specification/protocol, commit
d49cc23). Its addresses have a `$` before each name in braces, as the protocol's text writes variables; what stands in its place is
the value, so that a call's `/$` is `/`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from octweb.serving.actions import create_token

pytestmark = pytest.mark.django_db

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PROTOCOL = Path(__file__).parent / "open_inference_rest.yaml"
PUBLISHED = "719644d1cec52d1c98268ee16f3b75d6de7f523c6686463cbf06bf79134edbb2"  # SHA-256 of the published file
SETTINGS = {
    "deadline": None,
    "database": None,
    "derandomize": True,  # CI must not fail by chance
    "suppress_health_check": list(hypothesis.HealthCheck),
    "phases": [hypothesis.Phase.generate],
}


@pytest.fixture(autouse=True)
def _connection_stays_open():
    """Keep the database connection open after a request through WSGI.

    The end of such a request would close the connection that holds the test's transaction.
    """
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def values_in_place_of_variables(application):
    def call(environ, start_response):
        return application(environ | {"PATH_INFO": environ["PATH_INFO"].replace("/$", "/")}, start_response)

    return call


def attack(operation, headers: dict[str, str], known: dict[str, str], examples: int) -> tuple[list[str], Counter]:
    """Send valid and invalid generated requests to an operation. Return errors and statuses."""
    found: list[str] = []
    statuses: Counter = Counter()
    cases = st.one_of(operation.as_strategy(), operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))

    @hypothesis.settings(max_examples=examples, **SETTINGS)
    @hypothesis.given(cases)
    def run(case):
        # the protocol defines no response for a model that does not exist
        case.path_parameters.update({k: v for k, v in known.items() if k in case.path_parameters})
        response = case.call(headers=headers)
        statuses[response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS)
        except BaseExceptionGroup as group:
            found.extend(f"{operation.label}: {part}"[:1500] for part in group.exceptions)
        except AssertionError as error:
            found.append(f"{operation.label}: {error}"[:1500])

    run()
    return found[:2], statuses


@pytest.mark.slow
def test_answers_are_those_of_the_protocol(owner, approved):
    headers = {"Authorization": f"Token {create_token(owner=owner, scope='predict')[1]}"}
    known = {"MODEL_NAME": approved.family.name, "MODEL_VERSION": str(approved.version)}
    assert hashlib.sha256(PROTOCOL.read_bytes()).hexdigest() == PUBLISHED
    schema = schemathesis.openapi.from_path(PROTOCOL)
    schema.app = values_in_place_of_variables(get_wsgi_application())
    found = []
    total = Counter()
    for result in schema.get_all_operations():
        operation = result.ok()
        wrong, statuses = attack(operation, headers, known, 25 if operation.path.endswith("/infer") else 5)
        found += wrong
        total += statuses
    assert not found, "\n\n".join(found)
    assert total[200] >= 10  # what is generated for an address without parameters is one call
    assert total[400] >= 20
