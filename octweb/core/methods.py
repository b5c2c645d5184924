"""Methods as a person reads them: by their titles, and found by title or id."""

from __future__ import annotations

from typing import Any

from django.db.models import Q


def title_of(method: str) -> str:
    """The title of a method; what is none of ours, such as a model that was brought along, keeps its word."""
    return _titles().get(method, method)


def method_has(word: str, field: str = "method") -> Q:
    """Rows whose method has this word in its id or in its title."""
    titled = [name for name, title in _titles().items() if word.lower() in title.lower()]
    return Q(**{f"{field}__icontains": word}) | Q(**{f"{field}__in": titled})


def _titles() -> dict[str, Any]:
    from trainer.registry import METHODS  # loads every kernel's module: not for commands that name no method

    return {method.id: method.title for method in METHODS}
