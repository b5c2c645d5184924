"""API of personal data, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS, BodySerializer
from octweb.core.idempotency import idempotent
from octweb.core.ownership import check_deletable
from octweb.datasets import erasing
from octweb.datasets.models import Dataset
from octweb.datasets.serializers import VersionSerializer
from octweb.privacy import actions
from octweb.privacy.holdings import holdings
from octweb.privacy.training_rows import trained_models, uses_of
from octweb.privacy.views import chosen_user
from octweb.registry.models import State


class HeldItemSerializer(serializers.Serializer):
    """An object with rows about persons."""

    name = serializers.CharField()
    what = serializers.CharField()
    until = serializers.CharField()
    url = serializers.CharField()
    erase_url = serializers.CharField()


class HoldingSerializer(serializers.Serializer):
    """A kind of stored personal data."""

    key = serializers.CharField()
    title = serializers.CharField()
    about = serializers.CharField(help_text="whose data it is: users, or persons in rows")
    what = serializers.CharField()
    count = serializers.IntegerField(allow_null=True, help_text="null if it was not counted")
    more = serializers.BooleanField(help_text="there are more than `count`")
    until = serializers.CharField()
    erased = serializers.CharField()
    items = HeldItemSerializer(many=True)


class FoundRowSerializer(serializers.Serializer):
    """A stored row."""

    row = serializers.IntegerField(help_text="its number from 1, for the erasure")
    shown = serializers.IntegerField(help_text="its line in the uploaded file, if known")
    cells = serializers.DictField(child=serializers.CharField(allow_null=True))


class RowUseSerializer(serializers.Serializer):
    """A model that trained on a row, or may have."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.ChoiceField(State.choices)
    training = serializers.IntegerField(allow_null=True, help_text="of the rows; null if unknown")
    held_out = serializers.IntegerField(allow_null=True)


class FoundRowsSerializer(serializers.Serializer):
    """Rows that match, versions of the data set that have them, and models that trained on them."""

    rows = FoundRowSerializer(many=True)
    versions = serializers.ListField(child=serializers.UUIDField())
    models = RowUseSerializer(many=True)


class ErasureRequestSerializer(BodySerializer):
    """Rows to erase, and the reason."""

    rows = serializers.ListField(
        child=serializers.IntegerField(min_value=1), min_length=1, max_length=erasing.MAX_ERASED
    )
    why = serializers.ChoiceField(erasing.REASONS)
    remove = serializers.BooleanField(
        help_text="whether to remove the stored files of all versions that have one of the rows, too"
    )


class RowErasureSerializer(serializers.Serializer):
    """The version without the rows, models that trained on them, and versions with and without a stored file."""

    version = VersionSerializer()
    models = RowUseSerializer(many=True)
    removed = serializers.ListField(child=serializers.UUIDField(), help_text="versions whose file was removed")
    remaining = serializers.ListField(child=serializers.UUIDField(), help_text="versions that still have the rows")


class Privacy(APIView):
    """Personal data that is stored, its expiry, and how it is erased."""

    query_parameters = frozenset({"user"})

    @extend_schema(
        operation_id="privacy",
        parameters=[OpenApiParameter("user", str, description="a user name; only administrators may name others")],
        responses={200: HoldingSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request) -> Response:
        """Return everything to administrators, and to others what is theirs."""
        whose = chosen_user(request.user, request.query_params.get("user", ""))
        return Response(HoldingSerializer([h.to_json() for h in holdings(whose)], many=True).data)


class DatasetErasure(GenericAPIView):
    """Rows of a data set that match a cell, and their erasure."""

    serializer_class = ErasureRequestSerializer
    pagination_class = None
    query_parameters = frozenset({"column", "value"})

    def get_object(self) -> Dataset:
        """Return the data set. OPTIONS calls this to find out whether the caller may POST."""
        dataset: Dataset = Dataset.objects.get_for(self.request, self.kwargs["pk"])
        if self.request.method == "POST":
            check_deletable(self.request.user, dataset)
        return dataset

    @extend_schema(
        operation_id="datasets_erase_find",
        parameters=[
            OpenApiParameter("column", str, required=True),
            OpenApiParameter("value", str, required=True, description="text or number of the cell"),
        ],
        responses={200: FoundRowsSerializer} | PROBLEMS(400, 401, 403, 404, 422, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        """Return the rows with this cell, the versions that have them, and the models that trained on them."""
        dataset = self.get_object()
        column, value = (_required(request, name) for name in ("column", "value"))
        rows = erasing.find_rows(dataset, column, value)
        having = erasing.versions_with(dataset, [row.number for row in rows], by=request.user) if rows else {}
        names = [c["name"] for c in dataset.columns]
        found = {
            "rows": [{"row": r.number, "shown": r.shown, "cells": _texts(names, r.cells)} for r in rows],
            "versions": [version.pk for version in having],
            "models": [use.to_json() for use in trained_models(uses_of(having))],
        }
        return Response(FoundRowsSerializer(found).data)

    @extend_schema(
        operation_id="datasets_erase",
        request=ErasureRequestSerializer,
        responses={201: RowErasureSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429),
    )
    @idempotent
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        """Store a version without the rows. With `remove`, remove the files of all visible versions that have one."""
        dataset = self.get_object()
        form = ErasureRequestSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        erasure = actions.erase_rows(
            dataset, values["rows"], by=request.user, why=values["why"], remove=values["remove"]
        )
        answer = {
            "version": erasure.version,
            "models": [use.to_json() for use in erasure.models],
            "removed": [version.pk for version in erasure.removed],
            "remaining": [version.pk for version in erasure.remaining],
        }
        return Response(RowErasureSerializer(answer).data, status=201)


def _required(request: Request, name: str) -> str:
    if name not in request.query_params:
        raise ValidationError({name: "This parameter is missing. Name the column and the value of its cell."})
    return str(request.query_params[name])


def _texts(names: list[str], cells: tuple[Any, ...]) -> dict[str, str | None]:
    return {name: None if cell is None else str(cell) for name, cell in zip(names, cells, strict=True)}
