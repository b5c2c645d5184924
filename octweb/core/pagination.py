"""Paginate lists of the API."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError as InvalidValue
from django.db.models import Q, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from octweb.core.filters import is_by_number
from octweb.core.lists import ListPaginator

CURSOR = "cursor"
MAX_CURSOR_CHARACTERS = 200  # characters
CURSOR_HELP = (
    "Where the page begins, as in `next` and `previous` of an answer. "
    "Unlike `page`, it takes the same time at any depth, and new rows do not shift the pages."
)


class Pages(PageNumberPagination):
    """Pagination by cursor (`?page_size=20`, then `next` and `previous`) or by number (`?page=2`).

    A view whose cursors should use another unique field than the primary key names it in `cursor_key`. A view of rows
    without `created` names their time field in `cursor_time`.
    """

    page_size_query_param = "page_size"
    max_page_size = 500
    django_paginator_class = ListPaginator
    by_cursor = False

    def get_page_size(self, request: Request) -> int:
        """Return the page size. Raises ValidationError for an invalid one, which REST framework would ignore."""
        sent = request.query_params.get(self.page_size_query_param)
        if sent is not None and not (sent.isascii() and sent.isdigit() and 0 < len(sent) < 10 and int(sent)):
            raise ValidationError({self.page_size_query_param: f"'{sent[:40]}' is not a whole number of at least 1."})
        return super().get_page_size(request)

    def paginate_queryset(self, queryset: QuerySet, request: Request, view: Any = None) -> list[Any]:
        """Return the rows of the page."""
        cursor = request.query_params.get(CURSOR)
        if "page" in request.query_params or is_by_number(request):
            if cursor is not None:
                words = "A cursor cannot be combined with a page number or an order. Leave one out."
                raise ValidationError({CURSOR: words})
            return super().paginate_queryset(queryset, request, view)
        self.by_cursor = True
        self.request = request
        self.key = getattr(view, "cursor_key", "id")
        self.time = getattr(view, "cursor_time", "created")
        return self._rows_by_cursor(queryset, self.get_page_size(request), cursor)

    def count_rows(self, queryset: QuerySet) -> int:
        """Return the number of all rows."""
        return queryset.count()

    def _rows_by_cursor(self, queryset: QuerySet, size: int, cursor: str | None) -> list[Any]:
        self.count = self.count_rows(queryset)
        backward = False
        rows = queryset.order_by(f"-{self.time}", f"-{self.key}")
        if cursor is not None:
            backward, moment, key = self._read(queryset, cursor)
            rows = self._beyond(rows, moment, key, backward=backward)
        page_rows = list(rows[: size + 1])
        more = len(page_rows) > size
        page_rows = page_rows[:size]
        if backward:
            page_rows.reverse()
        self.next_cursor = self._write(page_rows[-1], "after") if page_rows and (more or backward) else None
        self.previous_cursor = (
            self._write(page_rows[0], "before") if page_rows and cursor and (more or not backward) else None
        )
        return page_rows

    def _beyond(self, rows: QuerySet, moment: Any, key: Any, *, backward: bool) -> QuerySet:
        """Return the rows beyond a position. The first condition bounds the range that the index reads."""
        if backward:
            rows = rows.order_by(self.time, self.key).filter(**{f"{self.time}__gte": moment})
            return rows.filter(Q(**{f"{self.time}__gt": moment}) | Q(**{f"{self.key}__gt": key}))
        rows = rows.filter(**{f"{self.time}__lte": moment})
        return rows.filter(Q(**{f"{self.time}__lt": moment}) | Q(**{f"{self.key}__lt": key}))

    def _write(self, row: Any, side: str) -> str:
        moment = row._meta.get_field(self.time).value_to_string(row)
        place = json.dumps([side, moment, str(getattr(row, self.key))])
        return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")

    def _read(self, queryset: QuerySet, cursor: str) -> tuple[bool, Any, Any]:
        try:
            if len(cursor) > MAX_CURSOR_CHARACTERS:
                raise ValueError
            side, moment, key = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
            if side not in ("before", "after") or not key.isprintable() or not moment.isprintable():
                raise ValueError
            moment = queryset.model._meta.get_field(self.time).to_python(moment)
            if moment is None or (isinstance(moment, datetime) and moment.tzinfo is None):
                raise ValueError
            return side == "before", moment, queryset.model._meta.get_field(self.key).to_python(key)
        except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error, InvalidValue) as error:
            words = f"'{cursor[:40]}' is not a cursor. Copy one from `next` or `previous` of an answer."
            raise ValidationError({CURSOR: words}) from error

    def get_paginated_response(self, data: Any) -> Response:
        """Return the rows with the total count and the URLs of the next and previous page."""
        if not self.by_cursor:
            return super().get_paginated_response(data)
        return Response(
            {
                "count": self.count,
                "next": self._address(self.next_cursor),
                "previous": self._address(self.previous_cursor),
                "results": data,
            }
        )

    def _address(self, cursor: str | None) -> str | None:
        if cursor is None:
            return None
        address = remove_query_param(self.request.build_absolute_uri(), self.page_query_param)
        return str(replace_query_param(address, CURSOR, cursor))

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the query parameters for the OpenAPI document."""
        cursor = {
            "name": CURSOR,
            "required": False,
            "in": "query",
            "description": CURSOR_HELP,
            "schema": {"type": "string"},
        }
        return [*super().get_schema_operation_parameters(view), cursor]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the shape of a list response for the OpenAPI document."""
        response_schema = super().get_paginated_response_schema(schema)
        for name in ("next", "previous"):
            response_schema["properties"][name]["example"] = "http://api.example.org/accounts/?cursor=WyJhZnRlciJd"
        return response_schema
