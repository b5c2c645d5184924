"""Parse JSON bodies of the API strictly, based on orjson."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from octweb.core import strict_json


class BodyTooLarge(APIException):
    """The body is larger than this server accepts."""

    status_code = 413
    default_code = "too_large"


def limited(stream: Any) -> bytes:
    """Read the whole body. Raises BodyTooLarge if it exceeds the limit."""
    limit = settings.MAX_PREDICT_BYTES
    body = stream.read(limit + 1)
    if len(body) > limit:
        raise BodyTooLarge(f"The body is larger than {limit // 10**6} MB. Send the rows in several calls.")
    return body


class StrictJSONParser(BaseParser):
    """Parser of application/json that refuses NaN, infinities, and a name that appears twice in an object."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: dict[str, Any] | None = None) -> Any:
        body = limited(stream)
        try:
            return strict_json.loads(body)
        except ValueError as error:
            raise ParseError(f"The body is not valid JSON: {error}.{strict_json.constant_advice(body)}") from error
        except RecursionError as error:
            raise ParseError("The body is nested too deeply. Send fewer levels of lists and objects.") from error


class BytesParser(BaseParser):
    """Parser that returns the unparsed body. Subclasses set the media type."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: dict[str, Any] | None = None) -> Any:
        return limited(stream)
