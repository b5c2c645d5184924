"""Lists that are searched and sorted, all in the same way: words that must all occur, and a key of a fixed set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import QueryDict

from octweb.core.methods import method_has


def with_words(found: QuerySet, words: str, fields: Sequence[str]) -> QuerySet:
    """The rows that have every word in one of the fields; a field called method also has the title of the method."""
    for word in words.split():
        condition = Q()
        for field in fields:
            condition |= method_has(word) if field == "method" else Q(**{f"{field}__icontains": word})
        found = found.filter(condition)
    return found


def narrowed(
    found: QuerySet, query: QueryDict, *, fields: Sequence[str], sorts: Mapping[str, tuple[str, str]]
) -> tuple[QuerySet, dict[str, Any]]:
    """The rows that have every word of `q` in their fields, in the order of `sort`; and what the list's form shows.

    `sorts` has for each key its words and the field, with a minus for falling; rows without a value come last.
    """
    words = query.get("q", "").replace("\x00", "").strip()[:200]
    found = with_words(found, words, fields)
    sort = query.get("sort", "")
    if sort not in sorts:
        sort = next(iter(sorts))
    field = sorts[sort][1]
    name = F(field.removeprefix("-"))
    order = name.desc(nulls_last=True) if field.startswith("-") else name.asc(nulls_last=True)
    shown = {"words": words, "sort": sort, "sorts": [(key, label) for key, (label, _) in sorts.items()]}
    if field == "-created":  # an index has this order
        return found.order_by("-created", "-id"), shown
    return found.order_by(order, "-created", "-id"), shown
