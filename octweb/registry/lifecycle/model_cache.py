"""Cache models by id and by name.

For a single row, the database query costs more than the prediction. A review step is visible at once in its own
process, and within CACHE_SECONDS in others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import transaction

from octweb.registry.models import TreeModel

CACHE_SECONDS = 2.0
MAX_CACHED = 1000

_cache: dict[Any, tuple[float, TreeModel]] = {}
_lock = threading.Lock()


def model_by_id(pk: str) -> TreeModel | None:
    """Return the model with its family and without its document, or None. The caller checks permissions."""
    return _look_up(pk, lambda: _models().filter(pk=pk).first())


def model_by_name(name: str, version: int | None) -> TreeModel | None:
    """Return the model served under a name, or None. Without a version, it is the default one."""

    def find() -> TreeModel | None:
        models = _models().served().filter(family__name=name)
        return (models if version is None else models.filter(version=version)).first()

    return _look_up((name, version), find)


def clear_now_and_on_commit() -> None:
    """Clear the cache now, and again when the current transaction commits."""
    clear()
    transaction.on_commit(clear)


def clear() -> None:
    """Remove all models from the cache."""
    with _lock:
        _cache.clear()


def _models() -> Any:
    return TreeModel.objects.select_related("family").defer("document")


def _look_up(key: Any, find: Callable[[], TreeModel | None]) -> TreeModel | None:
    now = time.monotonic()
    entry = _cache.get(key)
    if entry is not None and entry[0] > now:
        return entry[1]
    model = find()
    with _lock:
        if len(_cache) >= MAX_CACHED:
            _cache.clear()
        if model is not None:
            _cache[key] = (now + CACHE_SECONDS, model)
        else:
            _cache.pop(key, None)
    return model
