"""Search, sort and paginate lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import F, Q, QuerySet
from django.http import QueryDict

from octweb.core.methods import method_has

PAGE_SIZE = 30  # rows per page


class ListPaginator(Paginator):
    """Paginator that reads full rows only for the requested page."""

    def page(self, number: Any) -> Page:
        """Return a page. Select only its primary keys first, by an index if possible, then read these rows."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        keys = list(self.object_list.values_list("pk", flat=True)[start : start + self.per_page])
        objects = self.object_list.in_bulk(keys)
        return self._get_page([objects[key] for key in keys if key in objects], number, self)


def page_of(rows: QuerySet, query: QueryDict) -> Page:
    """Return the page that the query names. If it does not exist, return the first or the last page."""
    return ListPaginator(rows, PAGE_SIZE).get_page(query.get("page"))


def with_words(queryset: QuerySet, words: str, fields: Sequence[str]) -> QuerySet:
    """Keep rows in which every word occurs in some field. The field `method` also matches method titles."""
    for word in words.split():
        condition = Q()
        for field in fields:
            condition |= method_has(word) if field == "method" else Q(**{f"{field}__icontains": word})
        queryset = queryset.filter(condition)
    return queryset


def narrowed(
    queryset: QuerySet, query: QueryDict, *, fields: Sequence[str], sorts: Mapping[str, tuple[str, str]]
) -> tuple[QuerySet, dict[str, Any]]:
    """Filter rows by the words of `q`, and sort them by `sort`. Return them with the context of the list's form.

    `sorts` maps a key to its label and field, with a minus for descending order. Rows without a value come last.
    """
    words = query.get("q", "").replace("\x00", "").strip()[:200]
    queryset = with_words(queryset, words, fields)
    sort = query.get("sort", "")
    if sort not in sorts:
        sort = next(iter(sorts))
    field = sorts[sort][1]
    name = F(field.removeprefix("-"))
    order = name.desc(nulls_last=True) if field.startswith("-") else name.asc(nulls_last=True)
    list_context = {"words": words, "sort": sort, "sorts": [(key, label) for key, (label, _) in sorts.items()]}
    if field == "-created":  # the index of the table serves this order without a sort
        return queryset.order_by("-created", "-id"), list_context
    return queryset.order_by(order, "-created", "-id"), list_context
