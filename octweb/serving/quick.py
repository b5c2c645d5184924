"""Answer valid prediction calls without Django's handler.

`QuickApplication` runs before Django's handler, and `QuickPredictions` before all other middleware. They check what the
views check: transport, host, token with expiry, throttle, permission to call the model, size, and every cell. They
answer only if all checks pass. Otherwise they leave the request unchanged to the views, which repeat the checks and
report the error.
"""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import orjson
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from knox.crypto import hash_token
from rest_framework.exceptions import APIException

from octweb.core import strict_json
from octweb.core.headers import security_headers
from octweb.core.known_heads import SHARED
from octweb.core.metrics import ModelCounters
from octweb.core.problems import Busy
from octweb.core.request_log import CALL
from octweb.core.tally import ROWS
from octweb.core.throttles import RATE, WINDOWS, caller_of, clock, rate, rate_headers
from octweb.registry.document.claims import certificate_parameters, certificate_status
from octweb.registry.lifecycle.access import may_call
from octweb.registry.lifecycle.model_cache import model_by_id, model_by_name
from octweb.registry.models import State, TreeModel
from octweb.registry.prediction.compiled_models import CompiledModel, compile_model
from octweb.registry.prediction.predictions import DECISION, Predictions, predict_rows, rows_by_leaf, tally_of
from octweb.registry.prediction.recording import Ids, caller_of_call, recorder_of
from octweb.registry.prediction.responses import columns_record
from octweb.registry.prediction.retired import DRY_RUN_HEADER
from octweb.serving.authentication import lookup_digest
from octweb.serving.body_budget import BODY_BUDGET
from octweb.serving.coding import compress_body
from octweb.serving.inference import DEFAULT_OUTPUTS, OUTPUTS, infer
from octweb.serving.json_rows import rows_matrix
from octweb.serving.plain_tensor import SMALL_BYTES, plain_request, small_tensor
from octweb.serving.tensors import FLOATING, JSON_LENGTH, TEXT, ProtocolError, Request, Tensor, parse
from octweb.serving.whole_body import whole_body
from octweb.serving.wire import CutOff, coding_headers
from trainer.data.rows import plain_numbers
from trainer.errors import TrainerError

log = logging.getLogger(__name__)

V1 = re.compile(r"/api/v1/models/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/predict/\Z")
V2 = re.compile(r"/v2/models/([-a-zA-Z0-9_]+)(?:/versions/([0-9]{1,9}))?/infer\Z")
SCHEMES = ("Token", "Bearer")
DRY_RUN = "HTTP_" + DRY_RUN_HEADER.upper().replace("-", "_")
JSON = "application/json"
FAULTS = (TrainerError, ProtocolError, ValueError, RequestDataTooBig, DatabaseError, CutOff, APIException)
LOOKED = "octweb.looked"  # marks a request in its environment as already checked here
ROUTES = {"v1": "api/v1/models/<uuid:pk>/predict/", "v2": "v2/models/<str:name>/infer"}
NOTHING: tuple[str, ...] = ()
NO_ID = "(decision) "  # takes the place of the id in cached answers; a served name has no such characters
NO_FIRST = Ids(NO_ID, 1).first.encode()

HEADER = "HTTP_" + JSON_LENGTH.upper().replace("-", "_")
KINDS = {"label": TEXT, "probabilities": "FP64", "leaf": "INT64"}
DEFAULT_REQUEST = Request(None, (), dict.fromkeys(DEFAULT_OUTPUTS, False))
PLAIN = frozenset(KINDS)  # a request for any other output takes the long way


class Answer(NamedTuple):
    """Response in preparation: the parsed rows, the leaf of each row, the counts of unusual cells, and a function for its body.

    `body` takes the ids of the recorded decisions, or None if answers are not recorded.
    """

    matrix: np.ndarray
    leaves: np.ndarray
    unusual: dict[str, dict[str, int]]
    body: Callable[[Ids | None], bytes]


class ServedModel:
    """Model with its compiled tree and the parts of its responses that do not depend on the rows."""

    def __init__(self, model: TreeModel) -> None:
        self.model = model
        self.tree: CompiledModel = compile_model(model)
        name = model.family.name
        version = model.version
        claim = certificate_status(model)
        head = {"model": str(model.pk), "name": name, "version": version, "certificate": claim}
        self.head_v1 = orjson.dumps(head)[:-1] + b',"predictions":['
        self.parameters = certificate_parameters(model)
        self.head_v2 = {"model_name": name, "model_version": str(version)}
        self.counts = {api: ModelCounters(name, version, api, self.tree.tree.classes) for api in ("v1", "v2")}
        self.leaves = [str(v.id) for v in self.tree.tree.nodes]
        self.tallies = {api: tally_of(model, api) for api in ("v1", "v2")}
        self.recorder = recorder_of(model)
        # response to one ordinary row, before and after the id of its record, by API, leaf and whether it is recorded
        self.singles: dict[tuple[str, int, bool], tuple[bytes, bytes]] = {}

    def count(self, api: str, answer: Answer, seconds: float) -> None:
        """Count a call in the metrics, and in the database's counts if the model is approved."""
        leaves = answer.leaves
        tally = self.tallies[api]
        if len(leaves) == 1:
            self.counts[api].predicted_one(self.tree.codes[leaves[0]], seconds)
        else:
            counts = np.bincount(self.tree.tree.labels[leaves], minlength=len(self.tree.tree.classes)).tolist()
            self.counts[api].predicted(counts, seconds)
        if tally is not None and len(leaves) == 1 and not answer.unusual:
            tally.add_row(self.leaves[leaves[0]])
        elif tally is not None:
            tally.add({ROWS: rows_by_leaf(leaves)} | answer.unusual)
        if tally is not None and tally.silent is not None:
            tally.compare(answer.matrix, leaves)


def served_model_of(model: TreeModel) -> ServedModel:
    """Return the served form of a model. It is stored on the cached instance and evicted with it."""
    served_model = model.__dict__.get("_served")
    if served_model is None:
        served_model = model.__dict__["_served"] = ServedModel(model)
    return served_model


class QuickApplication:
    """WSGI wrapper that answers prediction calls before Django's handler.

    `most` is the largest length of bodies that it handles, or None for any. Around `Wire` it handles short bodies,
    which it reads from the socket and for which it reserves bytes of the budget. Within `Wire` it handles bodies that
    `Wire` has read and reserved.
    """

    def __init__(self, application: Callable[..., Any], *, most: int | None = None) -> None:
        self.application = application
        self.most = most
        self.headers = [("Content-Type", JSON), *security_headers().items()]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        length = environ.get("CONTENT_LENGTH") or ""
        plain = length.isdigit() and not environ.get("HTTP_CONTENT_ENCODING") and LOOKED not in environ
        if not plain or environ["REQUEST_METHOD"] != "POST" or (self.most and int(length) > self.most):
            return self.application(environ, start_response)
        try:
            with BODY_BUDGET.reserve(int(length) if self.most else 0, timeout=0):
                body = answer_of(environ, lambda: _whole_body(environ))
        except Busy:  # the middleware Wire waits for the budget
            return self.application(environ, start_response)
        environ[LOOKED] = True
        # Django closes connections at the end of a request, but it does not see this request.
        connection = connections[DEFAULT_DB_ALIAS]
        if connection.connection is not None and not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        if body is None:
            return self.application(environ, start_response)
        body, coding = compress_body(body, environ.get("HTTP_ACCEPT_ENCODING", ""))
        start_response("200 OK", [*self.headers, *environ[RATE], *coding_headers(coding, len(body))])
        return [body]


class QuickPredictions:
    """Middleware that answers prediction calls if another server or a test calls Django's handler."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.headers = {"Content-Type": JSON} | security_headers()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method == "POST" and LOOKED not in request.META:
            body = answer_of(request.META, lambda: request.body)
            if body is not None:
                response = HttpResponse(body, headers=self.headers | dict(request.META[RATE]))
                response["Content-Length"] = str(len(body))
                return response
        return self.get_response(request)


def answer_of(environ: dict[str, Any], body: Callable[[], bytes | bytearray]) -> bytes | None:
    """Return the body of a successful response, or None if the views must handle the call."""
    try:
        return _answer(environ, body)
    except FAULTS:
        return None
    except Exception:  # an error in this module may cost time, but never an answer
        log.exception("a prediction takes the long way")
        return None


def _whole_body(environ: dict[str, Any]) -> bytes | bytearray:
    length = int(environ["CONTENT_LENGTH"])
    content = whole_body(environ["wsgi.input"], length)
    environ["wsgi.input"] = io.BytesIO(content)  # if the views handle the call, they read the body again
    if len(content) < length:
        raise CutOff
    return content


class Asked(NamedTuple):
    """What the head of a prediction call asks for.

    `model` is an id on `/api/v1`, otherwise a served name. `json_length` is the length of the JSON part of a body.
    """

    api: str
    model: str
    version: int | None
    digest: str
    length: int
    json_length: str | None

    @property
    def name(self) -> str:
        """The model as the caller named it."""
        return self.model if self.version is None else f"{self.model}/{self.version}"


def _read_head(environ: dict[str, Any]) -> Asked | None:
    """Return what the head of a call asks for, or None if the views must handle the call."""
    scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    path = environ.get("PATH_INFO", "")
    v2 = V2.match(path)
    v1 = None if v2 else V1.match(path)
    if scheme not in SCHEMES or environ.get("QUERY_STRING") or environ.get(DRY_RUN) or not _transport(environ):
        return None
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > settings.MAX_PREDICT_BYTES or not token.isascii():
        return None
    digest = hash_token(token)
    if v2 is not None:
        return Asked("v2", v2[1], int(v2[2]) if v2[2] else None, digest, length, environ.get(HEADER))
    return Asked("v1", v1[1], None, digest, length, None) if v1 is not None and _is_json(environ) else None


def _answer(environ: dict[str, Any], body: Callable[[], bytes | bytearray]) -> bytes | None:
    start = time.perf_counter()
    shared = environ.get(SHARED, {})
    asked = shared.get("asked") or _read_head(environ)
    if asked is None:
        return None
    shared["asked"] = asked
    api = asked.api
    token = lookup_digest(asked.digest)
    if token is None:
        return None
    user = token.user
    caller = caller_of(user, token)
    limit = rate("user")
    # a short body costs less than this check, which is repeated when the call is counted
    if asked.length >= SMALL_BYTES and WINDOWS.take(caller, *limit, count=False):
        return None
    if api == "v1":
        model = model_by_id(asked.model)
        if model is None or not may_call(user, token, model):
            return None
        if model.state == State.RETIRED:  # the views answer with the reason
            return None
        served_model = served_model_of(model)
        answer = _rows(served_model, body())
    else:
        model = model_by_name(asked.model, asked.version)
        if model is None or not may_call(user, token, model, public=True):
            return None
        served_model = served_model_of(model)
        answer = _tensors(served_model, body(), asked.json_length)
    # The call is counted only here, because the views count the calls that they answer.
    now = clock()
    if answer is None or WINDOWS.take(caller, *limit, now=now):
        return None
    environ[RATE] = rate_headers("user", caller, now=now)
    call = environ.get(CALL)
    if call is not None:
        call.route = ROUTES[api]
        call.is_timed = False
    ids = None
    if served_model.recorder is not None:
        recorded_caller = shared.get("caller")
        if recorded_caller is None:
            recorded_caller = shared["caller"] = caller_of_call(environ, user, token, asked.name)
        ids = served_model.recorder.record(api, recorded_caller, answer.matrix, answer.leaves)
    content = answer.body(ids)
    served_model.count(api, answer, time.perf_counter() - start)
    return content


def _transport(environ: dict[str, Any]) -> bool:
    """Return whether the call came to an allowed host, and over TLS if required.

    Return False also if only the views can tell.
    """
    if settings.USE_X_FORWARDED_HOST or not _is_ours(environ.get("HTTP_HOST", ""), tuple(settings.ALLOWED_HOSTS)):
        return False
    if not settings.SECURE_SSL_REDIRECT:
        return True
    name, value = settings.SECURE_PROXY_SSL_HEADER
    return environ.get("wsgi.url_scheme") == "https" or environ.get(name) == value


@lru_cache(maxsize=256)
def _is_ours(host: str, allowed: tuple[str, ...]) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, list(allowed))


def _is_json(meta: dict[str, Any]) -> bool:
    """Return whether the body is declared as JSON and `Accept` plainly allows JSON."""
    accept = meta.get("HTTP_ACCEPT", "*/*")
    sent = meta.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    return sent == JSON and accept in ("", "*/*", JSON, f"{JSON}, */*")


def _rows(served_model: ServedModel, content: bytes | bytearray) -> Answer | None:
    """Predict the rows of a body of `/api/v1/`. Return None, or raise one of FAULTS, if the views must handle it."""
    matrix = None
    notes = NOTHING
    unusual: dict[str, dict[str, int]] = {}
    rows: list[Any] = []
    if len(content) >= SMALL_BYTES and served_model.tree.numbers_only:
        matrix = rows_matrix(content, served_model.tree.names, settings.MAX_PREDICT_ROWS)
        matrix = None if matrix is None else served_model.tree.checked(matrix)
    if matrix is None:
        document = strict_json.loads(content)
        if type(document) is not dict or len(document) != 1:
            return None
        if "columns" in document:
            return _columns(served_model, document["columns"])
        sent = document.get("rows")
        if type(sent) is not list or not 0 < len(sent) <= settings.MAX_PREDICT_ROWS:
            return None
        rows = sent
        matrix = served_model.tree.matrix_of(rows)
    if matrix is not None:
        leaves = served_model.tree.tree.apply(matrix)
        if len(leaves) == 1:
            return Answer(matrix, leaves, unusual, partial(_single, served_model, "v1", int(leaves[0])))
    else:
        predictions = predict_rows(served_model.model, rows)
        if predictions.marks or predictions.proposals:
            return None
        matrix = predictions.matrix
        leaves = predictions.leaves
        notes = predictions.notes
        unusual = predictions.unusual_cells()
    return Answer(matrix, leaves, unusual, partial(_rows_answer, served_model, leaves, notes))


def _single(served_model: ServedModel, api: str, leaf: int, ids: Ids | None) -> bytes:
    """Return the response to one ordinary row: the cached bytes of its leaf, with the id of its recorded decision if any."""
    key = (api, leaf, ids is not None)
    parts = served_model.singles.get(key)
    if parts is None:
        parts = served_model.singles[key] = _parts_of_single(served_model, api, leaf, is_recorded=ids is not None)
    before, after = parts
    return before if ids is None else b"".join((before, ids.first.encode(), after))


def _parts_of_single(served_model: ServedModel, api: str, leaf: int, *, is_recorded: bool) -> tuple[bytes, bytes]:
    leaves = np.array([leaf])
    ids = Ids(NO_ID, 1) if is_recorded else None
    if api == "v2":  # the id comes before the labels
        before, _, after = _tensors_answer(served_model, DEFAULT_REQUEST, leaves, NOTHING, ids).partition(NO_FIRST)
        return before, after
    content = _rows_answer(served_model, leaves, NOTHING, ids)
    before, _, after = content.rpartition(NO_FIRST) if is_recorded else (content, b"", b"")
    return before, after


def _columns(served_model: ServedModel, columns: Any) -> Answer | None:
    """Predict rows that are sent in columns, for a response in columns.

    Return None unless all columns are present and all cells are ordinary numbers.
    """
    if type(columns) is not dict or columns.keys() != set(served_model.tree.names):
        return None
    lists = [columns[name] for name in served_model.tree.names]
    if set(map(type, lists)) != {list} or len(set(map(len, lists))) != 1:
        return None
    cells = [c for c in map(plain_numbers, lists) if c is not None]
    if len(cells) < len(lists) or not 0 < len(lists[0]) <= settings.MAX_PREDICT_ROWS:
        return None
    matrix = served_model.tree.checked(np.stack(cells, axis=1))
    if matrix is None:
        return None
    leaves = served_model.tree.tree.apply(matrix)
    return Answer(matrix, leaves, {}, partial(_columns_answer, served_model, matrix, leaves))


def _columns_answer(served_model: ServedModel, matrix: np.ndarray, leaves: np.ndarray, ids: Ids | None) -> bytes:
    decisions = () if ids is None else tuple(ids.texts())
    record = columns_record(Predictions(tree=served_model.tree.tree, matrix=matrix, leaves=leaves, decisions=decisions))
    head = served_model.head_v1.removesuffix(b',"predictions":[')
    return head + b',"columns":' + orjson.dumps(record) + b',"notes":[]}'


def _rows_answer(served_model: ServedModel, leaves: np.ndarray, notes: tuple[str, ...], ids: Ids | None) -> bytes:
    tail = b'],"notes":%s}' % orjson.dumps(notes)
    if ids is None:
        records = served_model.tree.records
        return served_model.head_v1 + b",".join([records[v] for v in leaves.tolist()]) + tail
    return b"".join((served_model.head_v1, served_model.tree.recorded(leaves, ids), tail))


def _tensors(served_model: ServedModel, content: bytes | bytearray, header: str | None) -> Answer | None:
    """Predict the rows of a body of `/v2`.

    Return None, or raise one of FAULTS, if the views must handle it, for example because of binary outputs.
    """
    is_small = header is None and len(content) < SMALL_BYTES
    small = small_tensor(content) if is_small else None
    if small is not None and small.id is None:
        matrix = _one_matrix(served_model.tree, (small.tensor,))
        if matrix is not None and len(matrix) == 1:
            leaves = served_model.tree.tree.apply(matrix)
            return Answer(matrix, leaves, {}, partial(_single, served_model, "v2", int(leaves[0])))
    request = plain_request(content, DEFAULT_OUTPUTS) if header is None else None
    request = request or parse(content, header, OUTPUTS, DEFAULT_OUTPUTS)
    if any(request.outputs.values()) or not request.outputs.keys() <= PLAIN:
        return None
    matrix = _one_matrix(served_model.tree, request.inputs)
    notes = NOTHING
    unusual: dict[str, dict[str, int]] = {}
    if matrix is not None:
        leaves = served_model.tree.tree.apply(matrix)
    else:
        predictions = infer(served_model.model, request.inputs, settings.MAX_PREDICT_ROWS)
        if predictions.marks:
            return None
        matrix = predictions.matrix
        leaves = predictions.leaves
        notes = predictions.notes
        unusual = predictions.unusual_cells()
    return Answer(matrix, leaves, unusual, partial(_tensors_answer, served_model, request, leaves, notes))


def _tensors_answer(
    served_model: ServedModel, request: Request, leaves: np.ndarray, notes: tuple[str, ...], ids: Ids | None
) -> bytes:
    parameters = served_model.parameters | {"notes": "\n".join(notes)} if notes else served_model.parameters
    if ids is not None:
        parameters = parameters | {DECISION: ids.first}
    head = served_model.head_v2 | {"parameters": parameters}
    if request.id is not None:
        head["id"] = request.id
    numbers = leaves.tolist()
    outputs = b",".join([_output(served_model.tree, name, numbers) for name in request.outputs])
    return orjson.dumps(head)[:-1] + b',"outputs":[' + outputs + b"]}"


def _output(tree: CompiledModel, name: str, leaves: list[int]) -> bytes:
    ready = {"label": tree.labels, "probabilities": tree.shares, "leaf": tree.numbers}[name]
    shape = b"%d,%d" % (len(leaves), len(tree.tree.classes)) if name == "probabilities" else b"%d" % len(leaves)
    head = b'{"name":"%s","datatype":"%s","shape":[%s],"data":[' % (name.encode(), KINDS[name].encode(), shape)
    return head + b",".join([ready[v] for v in leaves]) + b"]}"


def _one_matrix(tree: CompiledModel, inputs: tuple[Tensor, ...]) -> np.ndarray | None:
    """Return the matrix of a single tensor with all columns.

    Return None for other inputs and for cells that are not ordinary.
    """
    tensor = inputs[0]
    if len(inputs) > 1 or tensor.name in tree.names or tensor.datatype not in FLOATING:
        return None
    if len(tensor.shape) != 2 or tensor.shape[1] != len(tree.names) or tensor.shape[0] > settings.MAX_PREDICT_ROWS:
        return None
    return tree.checked(tensor.values)
