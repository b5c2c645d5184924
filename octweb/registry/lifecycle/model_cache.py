"""Models by id and by name, remembered for moments: at one row per call the look-up in the database costs more than the prediction.

A step of the review counts at once in the process that made it, in other processes after REMEMBERED seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import transaction

from octweb.registry.models import TreeModel

CACHE_SECONDS = 2.0  # seconds
MAX_CACHED = 1000

_cache: dict[Any, tuple[float, TreeModel]] = {}
_lock = threading.Lock()


def model_by_id(pk: str) -> TreeModel | None:
    """The model with its family and without its document; who may call it is for the caller to look at."""
    return _look_up(pk, lambda: _models().filter(pk=pk).first())


def model_by_name(name: str, version: int | None) -> TreeModel | None:
    """The model that is served under a name; without a version the one that was put there last."""

    def find() -> TreeModel | None:
        models = _models().served().filter(family__name=name)
        return (models if version is None else models.filter(version=version)).first()

    return _look_up((name, version), find)


def clear_now_and_on_commit() -> None:
    """Look all models up again, now and once more when the transaction that is under way is committed."""
    clear()
    transaction.on_commit(clear)


def clear() -> None:
    """Look all models up again."""
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
