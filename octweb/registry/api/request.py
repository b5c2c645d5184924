"""Parse requests to the API of models: model, flags and rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import Http404
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request

from octweb.core.parsers import BodyTooLarge
from octweb.registry.lifecycle.access import may_call, may_read
from octweb.registry.models import State, TreeModel
from octweb.registry.prediction.retired import dry_run, refuse_if_retired, was_approved

YES = {"true", "1", "yes"}
NO = {"", "false", "0", "no"}


class AnyFormat(BaseContentNegotiation):
    """Content negotiation that leaves the response type, and the parameter `?format=`, to the view."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0] if parsers else None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


def callable_model(request: Request, pk: uuid.UUID, *, document: bool = True) -> TreeModel:
    """Return the model. Raises the same Http404 if it does not exist and if the caller may not call it.

    Raises Gone for a retired model, except in a dry run of its owner or an administrator. Others get Http404 if it was never approved.
    """
    try:
        model = _get_document(request, pk, document, may_call)
    except Http404:
        retired = was_approved(TreeModel.objects.filter(pk=pk, deleted_at=None, state=State.RETIRED)).first()
        if retired is not None and request.user.is_authenticated:
            refuse_if_retired(retired)
        raise
    if not dry_run(request, model):
        refuse_if_retired(model)
    return model


def readable_model(request: Request, pk: uuid.UUID, *, document: bool = True) -> TreeModel:
    """Return the model. Raises Http404 if it does not exist or the caller may not read it."""
    return _get_document(request, pk, document, may_read)


def _get_document(
    request: Request, pk: uuid.UUID, document: bool, may: Callable[[Any, Any, TreeModel], bool]
) -> TreeModel:
    models = TreeModel.objects.select_related("family")
    model = (models if document else models.defer("document")).filter(pk=pk).first()
    if model is None or not may(request.user, request.auth, model):
        raise Http404("There is no model with this id, or it is not yours and not approved. Check the id.")
    return model


def flag(request: Request, name: str) -> bool:
    """Return the value of a boolean query parameter, False if absent. Raises ValidationError."""
    value = request.query_params.get(name, "").lower()
    if value not in YES | NO:
        raise ValidationError({name: f"'{value[:40]}' is neither true nor false."})
    return value in YES


def rows_of(body: object) -> list[Any]:
    """Return the rows of a body. Raises ParseError, ValidationError, and BodyTooLarge for too many rows."""
    if not isinstance(body, dict):
        raise ParseError('The body must be an object with the member "rows": {"rows": [{"column": value}]}.')
    if unknown := set(body) - {"rows"}:
        raise ValidationError(
            {sorted(unknown)[0][:60]: 'The body has no such member. Send only "rows", or only "columns".'}
        )
    rows = body.get("rows")
    if not isinstance(rows, list):
        raise ValidationError({"rows": "This is not a list. Send a list of objects, one per row: column → value."})
    if len(rows) > settings.MAX_PREDICT_ROWS:
        raise BodyTooLarge(
            f"{len(rows):,} rows are too many; {settings.MAX_PREDICT_ROWS:,} is the limit of one call. Send them in several calls."
        )
    return rows
