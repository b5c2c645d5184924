"""The ordinary prediction call, without the general machinery: a known token, a model that it may call, rows without a fault.

`QuickPredictions` stands before all other middleware. It looks at the same things as the views behind it (transport, host, token
with expiry, throttle, who may call the model, size, every cell), and answers only where all is well. In every other case it
leaves the request as it was to the views, which find out again what is wrong and say it: errors are worded in one place.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from csp.utils import build_policy
from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from octweb.core.metrics import Steady
from octweb.core.throttles import WINDOWS, caller_of, rate
from octweb.registry.claims import certificate_status
from octweb.registry.compiled import Compiled, compiled
from octweb.registry.models import TreeModel
from octweb.registry.predicting import predict_rows
from octweb.registry.remembered import approved_model, may_call, model_by_id
from octweb.serving.authentication import lookup
from octweb.serving.inference import DEFAULT_OUTPUTS, OUTPUTS, infer
from octweb.serving.tensors import FLOATING, JSON_LENGTH, TEXT, ProtocolError, Tensor, parse
from trainer.errors import TrainerError

log = logging.getLogger(__name__)

V1 = re.compile(r"/api/v1/models/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/predict/\Z")
V2 = re.compile(r"/v2/models/([^/]+)(?:/versions/([0-9]{1,9}))?/infer\Z")
PREFIX = "Token "
JSON = "application/json"
FAULTS = (TrainerError, ProtocolError, ValueError, DisallowedHost, RequestDataTooBig, DatabaseError)
NOTHING: tuple[str, ...] = ()

Notes = tuple[str, ...]


class Served:
    """A model at hand: its compiled tree, and the parts of its answers that do not depend on the rows."""

    def __init__(self, model: TreeModel) -> None:
        self.model = model
        self.tree: Compiled = compiled(model)
        name, version, claim = model.family.name, model.version, certificate_status(model)
        head = {"model": str(model.pk), "name": name, "version": version, "certificate": claim}
        self.head_v1 = orjson.dumps(head)[:-1] + b',"predictions":['
        self.parameters = {k: v for k, v in claim.items() if v is not None}
        self.head_v2 = {"model_name": name, "model_version": str(version)}
        self.counts = {api: Steady(name, version, api, self.tree.tree.classes) for api in ("v1", "v2")}


def served(model: TreeModel) -> Served:
    """Kept with the remembered model, and so for as long as that is."""
    found = model.__dict__.get("_served")
    if found is None:
        found = model.__dict__["_served"] = Served(model)
    return found


class QuickPredictions:
    """Middleware; see the first lines of this file."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        # those that SecurityMiddleware and the others give to every answer
        self.headers = {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": str(settings.SECURE_REFERRER_POLICY),
            "Cross-Origin-Opener-Policy": str(settings.SECURE_CROSS_ORIGIN_OPENER_POLICY),
            "X-Frame-Options": str(settings.X_FRAME_OPTIONS),
            "Content-Security-Policy": str(build_policy()),
        }
        if settings.SECURE_HSTS_SECONDS:
            self.headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method == "POST" and request.META.get("HTTP_AUTHORIZATION", "")[: len(PREFIX)] == PREFIX:
            try:
                body = self._answer(request)
            except FAULTS:
                body = None
            except Exception:  # a fault of this file must cost time, not answers
                log.exception("a prediction takes the long way")
                body = None
            if body is not None:
                response = HttpResponse(body, content_type=JSON, headers=self.headers)
                response["Content-Length"] = str(len(body))
                return response
        return self.get_response(request)

    def _answer(self, request: HttpRequest) -> bytes | None:
        """The body of a good answer; None, or one of FAULTS, where the views have to look."""
        start, meta = time.perf_counter(), request.META
        v1, v2 = V1.match(request.path_info), V2.match(request.path_info)
        if (v1 is None and v2 is None) or meta.get("QUERY_STRING"):
            return None
        if settings.SECURE_SSL_REDIRECT and not request.is_secure():
            return None
        request.get_host()
        token = lookup(meta["HTTP_AUTHORIZATION"][len(PREFIX) :].encode("ascii"))
        if token is None or not token.user.is_active or (token.expiry is not None and token.expiry <= timezone.now()):
            return None
        caller, limit = caller_of(token.user, token), rate("user")
        if WINDOWS.take(caller, *limit, count=False):
            return None
        if v1 is not None:
            model, api, work = model_by_id(v1[1]), "v1", _rows
            if model is None or not may_call(token.user, model) or not _is_json(meta):
                return None
        else:
            assert v2 is not None
            model, api, work = approved_model(v2[1], int(v2[2]) if v2[2] else None), "v2", _tensors
            if model is None:
                return None
        if int(meta.get("CONTENT_LENGTH") or 0) > settings.MAX_PREDICT_BYTES:
            return None
        own = served(model)
        found = work(own, request)
        # only now, since a call that the views answer is counted by them
        if found is None or WINDOWS.take(caller, *limit):
            return None
        body, leaves = found
        counts = np.bincount(own.tree.tree.labels[leaves], minlength=len(own.tree.tree.classes)).tolist()
        own.counts[api].predicted(counts, time.perf_counter() - start)
        return body


def _is_json(meta: dict[str, Any]) -> bool:
    """Whether the body says that it is JSON and the answer may be."""
    accept = meta.get("HTTP_ACCEPT", "*/*")
    return meta.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() == JSON and (
        "*/*" in accept or JSON in accept
    )


def _rows(own: Served, request: HttpRequest) -> tuple[bytes, np.ndarray] | None:
    """An answer of `/api/v1/`, and the leaves of its rows."""
    document = orjson.loads(request.body)
    if type(document) is not dict or len(document) != 1:
        return None
    rows = document.get("rows")
    if type(rows) is not list or not 0 < len(rows) <= settings.MAX_PREDICT_ROWS:
        return None
    matrix, notes = own.tree.matrix_of(rows), NOTHING
    if matrix is not None:
        leaves = own.tree.tree.apply(matrix)
    else:
        found = predict_rows(own.model, rows)
        leaves, notes = found.leaves, found.notes
    records = own.tree.records
    tail = b'],"notes":%s}' % orjson.dumps(notes)
    return own.head_v1 + b",".join([records[v] for v in leaves.tolist()]) + tail, leaves


def _tensors(own: Served, request: HttpRequest) -> tuple[bytes, np.ndarray] | None:
    """An answer of `/v2/` without binary tensors, and the leaves of its rows."""
    asked = parse(request.body, request.META.get(HEADER), OUTPUTS, DEFAULT_OUTPUTS)
    if any(asked.outputs.values()) or "path" in asked.outputs:
        return None
    matrix, notes = _one_matrix(own.tree, asked.inputs), NOTHING
    if matrix is not None:
        leaves = own.tree.tree.apply(matrix)
    else:
        found = infer(own.model, asked.inputs, settings.MAX_PREDICT_ROWS)
        leaves, notes = found.leaves, found.notes
    parameters = own.parameters | {"notes": "\n".join(notes)} if notes else own.parameters
    head = own.head_v2 | {"parameters": parameters}
    if asked.id is not None:
        head["id"] = asked.id
    numbers = leaves.tolist()
    outputs = b",".join([_output(own.tree, name, numbers) for name in asked.outputs])
    return orjson.dumps(head)[:-1] + b',"outputs":[' + outputs + b"]}", leaves


HEADER = "HTTP_" + JSON_LENGTH.upper().replace("-", "_")
KINDS = {"label": TEXT, "probabilities": "FP64", "leaf": "INT64"}


def _output(tree: Compiled, name: str, leaves: list[int]) -> bytes:
    ready = {"label": tree.labels, "probabilities": tree.shares, "leaf": tree.numbers}[name]
    shape = b"%d,%d" % (len(leaves), len(tree.tree.classes)) if name == "probabilities" else b"%d" % len(leaves)
    head = b'{"name":"%s","datatype":"%s","shape":[%s],"data":[' % (name.encode(), KINDS[name].encode(), shape)
    return head + b",".join([ready[v] for v in leaves]) + b"]}"


def _one_matrix(tree: Compiled, inputs: tuple[Tensor, ...]) -> np.ndarray | None:
    """The one tensor with all columns, if it is one and every cell is a plain number."""
    tensor = inputs[0]
    if len(inputs) > 1 or tensor.name in tree.names or tensor.datatype not in FLOATING:
        return None
    if len(tensor.shape) != 2 or tensor.shape[1] != len(tree.names) or tensor.shape[0] > settings.MAX_PREDICT_ROWS:
        return None
    return tree.checked(tensor.values)
