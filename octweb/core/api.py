"""Serializers and fields shared by the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from octweb.core.permissions import MAX_NAME_CHARACTERS, MAX_NAMES
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


class BodySerializer(serializers.Serializer):
    """Serializer of a request body. A misspelt member is an error, so that none is ignored silently."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            unknown = sorted(str(name) for name in data if name not in known)
            if unknown:
                words = f"Known members: {', '.join(known)}." if known else "This body has no members."
                raise serializers.ValidationError(
                    {
                        name[:MAX_NAME_CHARACTERS]: [f"Not a member of this body. {words}"]
                        for name in unknown[:MAX_NAMES]
                    }
                )
        return super().to_internal_value(data)


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
