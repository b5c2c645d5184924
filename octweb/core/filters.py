"""Search, filter by date and sort the lists of the API.

The query parameters are `search`, `since`, `until` and `ordering`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from octweb.core.lists import with_words

SEARCH = "search"
SINCE = "since"
UNTIL = "until"
ORDERING = "ordering"
NEWEST = "-created"  # default order; only this one supports cursors
MAX_SEARCH_CHARACTERS = 200  # characters


class ListFilters(BaseFilterBackend):
    """Filter and sort the list of a view by query parameters.

    `search_fields` of the view are the searched fields. `ordering_fields` maps values of `ordering` to fields. A view
    without `search_fields` has none of these parameters. `since` and `until` bound the field `created`.
    """

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        """Return the rows that pass the filters, in the requested order. Raises ValidationError."""
        if not hasattr(view, "search_fields"):
            return queryset
        query = request.query_params
        words = query.get(SEARCH, "")
        if "\x00" in words or len(words) > MAX_SEARCH_CHARACTERS:
            raise ValidationError(
                {SEARCH: f"Search for at most {MAX_SEARCH_CHARACTERS} characters, without null characters."}
            )
        queryset = with_words(queryset, words, view.search_fields)
        if text := query.get(SINCE, ""):
            queryset = queryset.filter(created__gte=parse_moment(SINCE, text, time.min))
        if text := query.get(UNTIL, ""):
            queryset = queryset.filter(created__lte=parse_moment(UNTIL, text, time.max))
        ordering = query.get(ORDERING, NEWEST)
        return queryset if ordering == NEWEST else _ordered(queryset, ordering, view.ordering_fields)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the query parameters for the OpenAPI document."""
        if not hasattr(view, "search_fields"):
            return []
        fields = ", ".join(field.replace("__", " ") for field in view.search_fields)
        orders = [sign + name for name in view.ordering_fields for sign in ("", "-")]
        date = "a date, which means its {}, or a time; without a zone in that of the site"
        words = {
            SEARCH: f"words, each in one of: {fields}",
            SINCE: f"created since then: {date.format('beginning')}",
            UNTIL: f"created until then: {date.format('end')}",
            ORDERING: "the order; rows without a value come last. Any other order than -created has pages by number, without cursors",
        }
        schemas = {ORDERING: {"type": "string", "enum": orders, "default": NEWEST}}
        return [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": text,
                "schema": schemas.get(name, {"type": "string"}),
            }
            for name, text in words.items()
        ]


def is_by_number(request: Request) -> bool:
    """Return whether the requested order supports only page numbers, not cursors."""
    return request.query_params.get(ORDERING, NEWEST) != NEWEST


def _ordered(queryset: QuerySet, ordering: str, fields: Mapping[str, str]) -> QuerySet:
    name = ordering.removeprefix("-")
    if name not in fields:
        known = ", ".join(fields)
        raise ValidationError(
            {ORDERING: f"'{ordering[:40]}' is not an order. Use one of {known}, with a minus for descending."}
        )
    field = F(fields[name])
    first = field.desc(nulls_last=True) if ordering.startswith("-") else field.asc(nulls_last=True)
    return queryset.order_by(first, "-created", "-pk")


def parse_moment(name: str, text: str, clock: time) -> datetime:
    """Parse a query parameter as `moment_in` does. Raises ValidationError for other texts."""
    moment = moment_in(text, clock)
    if moment is None:
        words = f"'{text[:40]}' is neither a date nor a time. Use 2026-03-31 or 2026-03-31T14:00:00+01:00."
        raise ValidationError({name: words})
    return moment


def moment_in(text: str, clock: time) -> datetime | None:
    """Parse a time, or a date, to which `clock` is added. Return None for other texts.

    Without a zone, the site's zone is used.
    """
    try:
        day = parse_date(text.strip())
        moment = datetime.combine(day, clock) if day is not None else parse_datetime(text.strip())
        if moment is None:
            return None
        aware = timezone.make_aware(moment) if timezone.is_naive(moment) else moment
        aware.astimezone(UTC)  # the database stores UTC, which cannot be before the year 1 or after 9999
        return aware
    except (ValueError, OverflowError):
        return None
