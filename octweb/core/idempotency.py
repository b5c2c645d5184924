"""Execute a creating call only once, even if it is sent again with the same Idempotency-Key."""

from __future__ import annotations

import functools
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from drf_orjson_renderer.renderers import ORJSONRenderer
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.core.models import StoredAnswer
from octweb.core.problems import Conflict, Unprocessable

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
MAX_KEY_CHARACTERS = 200  # characters
LIFE = timedelta(hours=24)  # answers are kept this long
ABANDONED = timedelta(minutes=10)  # a call that has no answer after this time was lost with its process
DESCRIPTION = (
    f"At most {MAX_KEY_CHARACTERS} visible ASCII characters, for example a UUID. Within 24 hours the same call with the same key is not executed "
    f"again: its answer is repeated, with the header {REPLAYED}. Another call with the same key gets 422."
)
PARAMETER = {"name": HEADER, "in": "header", "schema": {"type": "string"}, "description": DESCRIPTION}
Handler = Callable[..., Response]


class InProgress(Conflict):
    """The first call with this key is still running."""

    wait = 1  # seconds that the client should wait before it tries again


def key_of(request: Request) -> str:
    """Return the Idempotency-Key of a call, or "". Raises ValidationError for an invalid key."""
    key = request.headers.get(HEADER, "").strip()
    if len(key) > MAX_KEY_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise ValidationError(
            {HEADER: f"A key has at most {MAX_KEY_CHARACTERS} visible ASCII characters. Use for example a UUID."}
        )
    return key


def idempotent(handler: Handler) -> Handler:
    """Let a creating view method repeat its answer for a call that is sent again with its Idempotency-Key."""
    return _idempotent(handler, keep=lambda data: ORJSONRenderer().render(data).decode(), restore=_stored_body)


def idempotent_by_id(handler: Handler) -> Handler:
    """Let a creating view method repeat its answer for a call that is sent again, without storing its content.

    Only the id is stored. `restored(request, id, **kwargs)` of the view returns the answer, so that erased content stays erased.
    """
    return _idempotent(handler, keep=lambda data: json.dumps(data["id"]), restore=_restored_by_view)


def idempotent_secret(handler: Handler) -> Handler:
    """Refuse a creating call that is sent again, since its answer has a secret, which is not stored."""
    return _idempotent(handler, keep=lambda data: "", restore=_stored_body)


def purge(now: datetime) -> int:
    """Delete the expired answers of all users; return how many."""
    deleted, _ = StoredAnswer.objects.filter(created__lt=now - LIFE).delete()
    return deleted


def _idempotent(handler: Handler, *, keep: Callable[[Any], str], restore: Callable[..., Any]) -> Handler:
    @functools.wraps(handler)
    def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = key_of(request)
        if not key:
            return handler(view, request, *args, **kwargs)
        stored, is_new = _claim(request.user, key, digest_of(request))
        if not is_new:
            return _replay(stored, lambda body: restore(body, view, request, kwargs))
        try:
            response = handler(view, request, *args, **kwargs)
        except BaseException:
            stored.delete()
            raise
        stored.status = response.status_code
        stored.body = keep(response.data)
        stored.location = response.headers.get("Location", "")
        stored.save(update_fields=["status", "body", "location"])
        return response

    answer.is_idempotent = True  # type: ignore[attr-defined]
    return answer


def _claim(owner: Any, key: str, digest: str) -> tuple[StoredAnswer, bool]:
    """Return the stored answer of a key, and whether this call has to produce it.

    Raises Unprocessable if the key belongs to a different call, and InProgress while the first call is running.
    """
    now = timezone.now()
    with transaction.atomic():
        is_old = Q(created__lt=now - LIFE) | Q(status=None, created__lt=now - ABANDONED)
        StoredAnswer.objects.filter(is_old, owner=owner, key=key).delete()
        stored, is_new = StoredAnswer.objects.get_or_create(
            owner=owner, key=key, defaults={"digest": digest, "created": now}
        )
    if stored.digest != digest:
        raise Unprocessable(f"This {HEADER} was used for another call. Take a new key for a new call.")
    if not is_new and stored.status is None:
        raise InProgress(f"A call with this {HEADER} is being executed. Send the call again in a moment.")
    return stored, is_new


def _stored_body(body: Any, *_: Any) -> Any:
    return body


def _restored_by_view(body: Any, view: Any, request: Request, kwargs: Mapping[str, Any]) -> Any:
    return view.restored(request, body, **kwargs)


def _replay(stored: StoredAnswer, restore: Callable[[Any], Any]) -> Response:
    if not stored.body:
        raise Conflict(
            f"This {HEADER} was used to create an object whose secret was shown once. Delete the object, and take a new key."
        )
    headers = {REPLAYED: "true"} | ({"Location": stored.location} if stored.location else {})
    return Response(restore(json.loads(stored.body)), status=stored.status, headers=headers)


def digest_of(request: Request) -> str:
    """Return the keyed SHA-256 of a call: method, address, members and files. The boundary of a form has no effect.

    The key keeps others from guessing short contents, such as an outcome.
    """
    digest = hmac.new(settings.SECRET_KEY.encode(), f"{request.method} {request.get_full_path()}\n".encode(), "sha256")
    data = request.data
    if not hasattr(data, "lists"):
        digest.update(json.dumps(data, sort_keys=True, default=str).encode())
        return digest.hexdigest()
    for name, values in sorted(data.lists()):
        for value in values:
            digest.update(json.dumps([name, str(value)]).encode())
            for chunk in value.chunks() if hasattr(value, "chunks") else ():
                digest.update(chunk)
            if hasattr(value, "seek"):
                value.seek(0)
    return digest.hexdigest()


def document_keys(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the Idempotency-Key header to every creating call of the OpenAPI document. A hook of drf-spectacular."""
    for operations in result["paths"].values():
        call = operations.get("post", {})
        if "201" in call.get("responses", {}):
            call["parameters"] = [*call.get("parameters", []), PARAMETER]
            for status in ("409", "422"):
                call["responses"].setdefault(status, call["responses"]["400"])
    return result
