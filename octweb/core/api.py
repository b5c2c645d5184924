"""Serializers and fields shared by the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from octweb.core.problems import CONTENT_TYPE


class ProblemErrorSerializer(serializers.Serializer):
    """An invalid member of the call."""

    attr = serializers.CharField(allow_null=True)
    detail = serializers.CharField()
    code = serializers.CharField()


class ProblemSerializer(serializers.Serializer):
    """Problem details (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = ProblemErrorSerializer(many=True)
    error = serializers.CharField(help_text="the same as `detail`")


def PROBLEMS(*statuses: int) -> dict[Any, OpenApiResponse]:
    """Return the problem responses of these statuses for an OpenAPI annotation."""
    return {(status, CONTENT_TYPE): OpenApiResponse(ProblemSerializer) for status in statuses}


class StrictTextField(serializers.CharField):
    """A text field that refuses numbers and booleans, which REST framework would convert."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class Name(StrictTextField):
    """An optional name. Spaces are not stripped, so `octweb.core.names` can refuse a blank name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "default": "", "allow_blank": True, "trim_whitespace": False} | options)
