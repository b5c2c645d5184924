"""JSON as the API takes it: strict, parsed by orjson."""

import orjson
from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser


class TooLarge(APIException):
    """The body is larger than this server accepts."""

    status_code = 413
    default_code = "too_large"


class StrictJSONParser(BaseParser):
    """application/json without NaN, infinities or duplicate work: bytes to Python objects in one pass."""

    media_type = "application/json"

    def parse(self, stream, media_type=None, parser_context=None):
        limit = settings.MAX_PREDICT_BYTES
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise TooLarge(f"The body is larger than {limit // 10**6} MB. Send the rows in several calls.")
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error}.") from error
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error
