"""Look up titles of methods, and search by title or id; shared by seven apps."""

from __future__ import annotations

from typing import Any

from django.db.models import Q


def title_of(method: str) -> str:
    """Return the title of a method. Unknown ids, such as those of imported models, are returned unchanged."""
    return _titles().get(method, method)


def method_has(word: str, field: str = "method") -> Q:
    """Return a filter for rows whose method has this word in its id or title."""
    titled = [name for name, title in _titles().items() if word.lower() in title.lower()]
    return Q(**{f"{field}__icontains": word}) | Q(**{f"{field}__in": titled})


def _titles() -> dict[str, Any]:
    from trainer.registry import METHODS  # this imports all kernels, so only the functions that need it do so

    return {method.id: method.title for method in METHODS}
