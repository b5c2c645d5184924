"""Quick predictions equal those of the views, and invalid calls are left to the views."""

from __future__ import annotations

import gzip
import io
import json
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from octweb.core.known_heads import SHARED
from octweb.registry.lifecycle import actions
from octweb.serving import quick
from octweb.serving.actions import create_token, revoke_token
from octweb.serving.authentication import forget
from octweb.serving.inference import DEFAULT_OUTPUTS, OUTPUTS
from octweb.serving.models import ApiToken
from octweb.serving.plain_tensor import SMALL_BYTES, plain_request
from octweb.serving.tensors import parse
from octweb.wsgi import application
from tests.counted import calls_of
from tests.octweb.registry.api_predict_cases import ROW
from tests.octweb.small_models import small_table
from trainer.table import Table
from trainer.training.run import TrainRequest, train

# Python functions for a prediction of one row, this test among them, and some more after other tests of the process
MAX_CALLS = 107  # eight give the call its id and count it, four share its count between processes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("open_connection")]


@pytest.fixture(scope="module")
def numbers_document():
    """Provide the document of a tree over columns that are all numbers."""
    table, labels = small_table()
    numbers = Table(columns=table.columns[:3], row_numbers=table.row_numbers)
    return train(
        TrainRequest(table=numbers, labels=labels, method="cart", parameters={"depth": 4}, name="n")
    ).model.to_json()


@pytest.fixture
def numbers(register, numbers_document, staff, owner):
    model = register(document=numbers_document, title="numbers")
    actions.ask_for_approval(model, by=owner)
    return actions.approve(model, by=staff, reason="Tested.")


@pytest.fixture
def secret(owner):
    return create_token(owner=owner)[1]


@pytest.fixture
def ways(monkeypatch):
    """Provide a list of the calls that were answered on the quick path."""
    found = []
    real = quick.answer_of

    def watched(*arguments):
        found.append(real(*arguments))
        return found[-1]

    monkeypatch.setattr(quick, "answer_of", watched)
    return found


def wsgi(path: str, body: bytes, token: str, **changes) -> tuple[int, dict[str, str], bytes]:
    """Call the application as gunicorn does."""
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "HTTP_HOST": "localhost",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_AUTHORIZATION": f"Token {token}",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.url_scheme": "http",
        "REMOTE_ADDR": "127.0.0.1",
    } | changes
    seen = []
    answer = application(environ, lambda status, headers, *rest: seen.append((int(status[:3]), dict(headers))))
    return *seen[0], b"".join(answer)


def rows(n: int) -> list[dict]:
    table, _ = small_table()
    return [{c.name: c.values[i % 120].item() for c in table.columns[:3]} for i in range(n)]


def columns(n: int) -> dict[str, list]:
    return {name: [row[name] for row in rows(n)] for name in rows(1)[0]}


def tensor(n: int, **changes) -> dict:
    X = np.array([list(r.values()) for r in rows(n)])
    return {"name": "x", "datatype": "FP64", "shape": list(X.shape), "data": X.ravel().tolist()} | changes


def v1(model) -> str:
    return f"/api/v1/models/{model.pk}/predict/"


def v2(model) -> str:
    return f"/v2/models/{model.family.name}/infer"


GOOD_V1 = [
    {"rows": rows(1)},
    {"rows": rows(50)},
    {"rows": rows(200)},
    {"columns": columns(1)},
    {"columns": columns(150)},
    {"rows": [rows(1)[0] | {"flag": True}]},
]
GOOD_V2 = [
    {"inputs": [tensor(1)]},
    {"inputs": [tensor(40)], "id": "seven"},
    {"inputs": [tensor(2, data=[list(r.values()) for r in rows(2)])]},
    {"inputs": [tensor(3, datatype="FP32")], "outputs": [{"name": "leaf"}, {"name": "label"}]},
    {"inputs": [{"name": k, "datatype": "FP64", "shape": [1, 1], "data": [v]} for k, v in rows(1)[0].items()]},
]


@pytest.mark.parametrize(("address", "body"), [(v1, b) for b in GOOD_V1] + [(v2, b) for b in GOOD_V2])
def test_both_ways_give_the_same_answer(numbers, secret, ways, monkeypatch, address, body):
    content = json.dumps(body).encode()
    status, headers, answer = wsgi(address(numbers), content, secret)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert ways[-1] == answer
    monkeypatch.setattr(quick, "answer_of", lambda *arguments: None)
    status, long_headers, long_answer = wsgi(address(numbers), content, secret)
    assert status == 200
    assert json.loads(answer) == json.loads(long_answer)
    assert {k for k in long_headers if k.startswith(("X-", "Content-S", "Ref", "Cross"))} <= headers.keys()


def test_bearer_is_accepted_like_token(numbers, secret, ways):
    content = json.dumps(GOOD_V1[0]).encode()
    status, _, answer = wsgi(v1(numbers), content, "", HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert status == 200
    assert ways[-1] == answer
    assert wsgi(v1(numbers), content, "", HTTP_AUTHORIZATION=f"Basic {secret}")[0] == 401


def test_text_columns_and_notes_too(approved, secret, ways, monkeypatch):
    body = json.dumps({"rows": [ROW, ROW | {"colour": "purple"}]}).encode()
    answer = wsgi(v1(approved), body, secret)[2]
    assert ways[-1] == answer
    assert "purple" in json.loads(answer)["notes"][0]
    monkeypatch.setattr(quick, "answer_of", lambda *arguments: None)
    assert json.loads(wsgi(v1(approved), body, secret)[2]) == json.loads(answer)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"rows": [{"width": [1], "height": 1, "flag": 0}]}', "rows[0]: column 'width'"),
        (b'{"rows": [{"width": 1, "height": "1 m", "flag": 0}]}', "'height'"),
        (b'{"rows": [{"width": 1, "height": 1, "flag": 0, "odd": 1}]}', "'odd'"),
        (b'{"rows": [{"width": 1e400, "height": 1, "flag": 0}]}', ""),
        (b'{"rows": [{"width": 9007199254740993, "height": 1, "flag": 0}]}', "2^53"),
        (b'{"rows": {}}', "rows"),
        (b"[", "JSON"),
    ],
)
def test_errors_are_worded_by_the_slow_path(numbers, secret, ways, body, words):
    status, headers, answer = wsgi(v1(numbers), body, secret)
    assert ways == [None]  # looked at once, not again by the middleware
    assert status in (400, 422)
    assert headers["Content-Type"] == "application/problem+json"
    assert words in json.loads(answer)["detail"]


@pytest.mark.parametrize("cell", [True, "1", None, [1]])
def test_a_tensor_with_no_number_in_it_is_refused(numbers, secret, cell):
    bad = tensor(2)
    bad["data"][4] = cell
    status, _, answer = wsgi(v2(numbers), json.dumps({"inputs": [bad]}).encode(), secret)
    assert status == 400
    said = json.loads(answer)["error"]
    assert "row 1, column 1" in said or "Row 1: column 'height'" in said


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    cells=st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**70) | JSONS, max_size=6),
    shape=st.sampled_from([[1, 3], [2, 3], [3, 2], [6, 1], [1, 1], [3], [0, 3], [-1, -3], [1.0, 3], [True, 3]]),
    changes=st.dictionaries(
        st.sampled_from(["id", "name", "datatype", "parameters", "outputs", "data"]), JSONS, max_size=1
    ),
)
@pytest.mark.parametrize("padding", ["", " " * SMALL_BYTES])
def test_fast_parser_accepts_nothing_that_full_parser_refuses(padding, cells, shape, changes):
    tensor = {"name": "x", "datatype": "FP64", "shape": shape, "data": cells}
    own = {k: v for k, v in changes.items() if k in tensor}
    body = {"inputs": [tensor | own]} | {k: v for k, v in changes.items() if k not in tensor}
    content = (json.dumps(body) + padding).encode()
    plain = plain_request(content, DEFAULT_OUTPUTS)
    if plain is None:
        return
    full = parse(content, None, OUTPUTS, DEFAULT_OUTPUTS)
    assert (plain.id, plain.outputs) == (full.id, full.outputs)
    (a,), (b,) = plain.inputs, full.inputs
    assert (a.name, a.datatype, a.shape) == (b.name, b.datatype, b.shape)
    assert np.array_equal(a.values, b.values)


def test_large_bodies_use_full_parser_if_library_is_missing(monkeypatch):
    values = [0.5] * SMALL_BYTES
    body = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [len(values), 1], "data": values}]}
    monkeypatch.setattr("octweb.serving.plain_tensor.simdjson", None)
    assert plain_request(json.dumps(body).encode(), DEFAULT_OUTPUTS) is None
    body["inputs"][0] |= {"shape": [2, 1], "data": [0.5, 0.25]}
    assert plain_request(json.dumps(body).encode(), DEFAULT_OUTPUTS) is not None


def test_the_plain_parser_reads_numbers_exactly():
    draw = np.random.default_rng(0).integers(0, 2**64, 3000, dtype=np.uint64).view(np.float64)
    values = draw[np.isfinite(draw)]
    body = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [len(values), 1], "data": values.tolist()}]}
    found = plain_request(json.dumps(body).encode(), DEFAULT_OUTPUTS)
    assert found is not None
    assert np.array_equal(found.inputs[0].values.ravel(), values)


def test_unauthorised_call_gets_nothing(numbers, secret, ways, staff, stranger, settings, register, numbers_document):
    body = json.dumps({"rows": rows(1)}).encode()
    assert wsgi(v1(numbers), body, secret)[0] == 200
    assert wsgi(v1(numbers), body, "0" * 64)[0] == 401
    draft = register(document=numbers_document, title="draft")
    assert wsgi(v1(draft), body, secret)[0] == 200
    assert wsgi(v1(draft), body, create_token(owner=stranger)[1])[0] == 404
    assert wsgi(v2(draft), json.dumps({"inputs": [tensor(1)]}).encode(), secret)[0] == 404
    assert wsgi(v1(numbers), body, secret, HTTP_HOST="elsewhere.example")[0] == 400
    assert wsgi(v1(numbers), body, secret, CONTENT_TYPE="text/plain")[0] == 415
    settings.MAX_PREDICT_BYTES = 10
    assert wsgi(v1(numbers), body, secret)[0] == 413
    settings.MAX_PREDICT_BYTES = 10**6
    settings.MAX_PREDICT_ROWS = 1
    assert wsgi(v1(numbers), json.dumps({"rows": rows(2)}).encode(), secret)[0] == 413
    assert wsgi(v2(numbers), json.dumps({"inputs": [tensor(2)]}).encode(), secret)[0] == 400


@pytest.mark.parametrize("known", [False, True], ids=["first head", "known head"])
def test_changes_take_effect_immediately(numbers, secret, owner, known):
    heads = [{SHARED: {}}, {SHARED: {}}] if known else [{}, {}]
    body = json.dumps({"inputs": [tensor(1)]}).encode()

    def served():
        return wsgi(v2(numbers), body, secret, **heads[0])[0]

    def own():
        return wsgi(v1(numbers), json.dumps({"rows": rows(1)}).encode(), secret, **heads[1])[0]

    assert (served(), own()) == (200, 200)
    assert all(head[SHARED] for head in heads) if known else heads == [{}, {}]
    actions.retire(numbers, by=owner)
    assert (served(), own()) == (410, 410)
    ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    forget()
    assert (served(), own()) == (401, 401)
    revoke_token(ApiToken.objects.get())
    assert (served(), own()) == (401, 401)


def test_head_of_compressed_body_is_read_each_time(numbers, secret, settings, ways):
    """Bodies of one compressed length may have different lengths."""
    head = {"HTTP_CONTENT_ENCODING": "gzip", SHARED: {}}
    for n in (1, 2):
        body = gzip.compress(json.dumps({"inputs": [tensor(n)]}).encode())
        assert wsgi(v2(numbers), body, secret, **head)[0] == 200
        assert ways[-1]
    assert head[SHARED] == {}


def test_tls_is_asked_for_where_it_must_be(numbers, secret, settings, ways):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    body = json.dumps({"rows": rows(1)}).encode()
    wsgi(v1(numbers), body, secret)
    assert ways[-1] is None
    assert wsgi(v1(numbers), body, secret, HTTP_X_FORWARDED_PROTO="https")[0] == 200
    assert ways[-1]


def test_repeated_call_needs_no_database_query(numbers, secret, django_assert_num_queries):
    body = json.dumps({"inputs": [tensor(1)]}).encode()
    wsgi(v2(numbers), body, secret)
    with django_assert_num_queries(0):
        assert wsgi(v2(numbers), body, secret)[0] == 200


@pytest.mark.parametrize(("address", "body"), [(v1, GOOD_V1[0]), (v2, GOOD_V2[0])])
def test_prediction_takes_few_function_calls(numbers, secret, address, body):
    """The number of calls is a budget that does not depend on the machine."""
    content = json.dumps(body).encode()
    for _ in range(3):
        wsgi(address(numbers), content, secret)
    # settings that are read again every second may add calls to one of them
    assert min(calls_of(lambda: wsgi(address(numbers), content, secret)) for _ in range(5)) <= MAX_CALLS
