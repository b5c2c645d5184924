"""Cache parsed model files by content hash.

Documents never change, so entries never expire.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

from octweb.core.faults import DamagedDocument
from octweb.registry.models import TreeModel
from trainer.errors import ModelFileError
from trainer.tree.file import ModelFile, from_json

T = TypeVar("T")

MAX_ENTRIES = 64
# total length of cached documents; a parsed tree takes a small multiple of its text's length
MAX_CHARACTERS = 50_000_000


class DocumentCache(Generic[T]):
    """Thread-safe LRU cache of values computed from documents, limited in entries and in characters."""

    def __init__(self, entries: int = MAX_ENTRIES, characters: int = MAX_CHARACTERS) -> None:
        self.entries = entries
        self.characters = characters
        self._entries: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, sha256: str) -> T | None:
        with self._lock:
            entry = self._entries.get(sha256)
            if entry is None:
                return None
            self._entries.move_to_end(sha256)
            return entry[0]

    def put(self, sha256: str, model: T, size: int) -> None:
        with self._lock:
            if sha256 in self._entries:
                return
            self._entries[sha256] = (model, size)
            self._size += size
            while self._entries and (len(self._entries) > self.entries or self._size > self.characters):
                _, (_, evicted_size) = self._entries.popitem(last=False)
                self._size -= evicted_size

    def __len__(self) -> int:
        return len(self._entries)


_cache: DocumentCache[ModelFile] = DocumentCache()


def model_file(model: TreeModel) -> ModelFile:
    """Return the parsed document of a model. Raises DamagedDocument.

    A deferred `document` is read only on a cache miss.
    """
    file = _cache.get(model.sha256)
    if file is None:
        text = document_of(model)
        try:
            file = from_json(json.loads(text))
        except (ModelFileError, ValueError) as error:
            raise _damaged_error(model) from error
        _cache.put(model.sha256, file, len(text))
    return file


def read_documents(models: Iterable[TreeModel]) -> None:
    """Read the deferred documents of uncached models with one query."""
    deferred = {m.pk: m for m in models if "document" in m.get_deferred_fields() and _cache.get(m.sha256) is None}
    for pk, text in TreeModel.objects.filter(pk__in=deferred).values_list("pk", "document"):
        deferred[pk].document = text


def document_of(model: TreeModel) -> str:
    """Return the stored document. Raises DamagedDocument if its hash differs from the recorded one."""
    if hashlib.sha256(model.document.encode("utf-8", "surrogatepass")).hexdigest() != model.sha256:
        raise _damaged_error(model)
    return model.document


def is_damaged(model: TreeModel) -> bool:
    """Return whether the stored document is unreadable or changed."""
    try:
        model_file(model)
    except DamagedDocument:
        return True
    return False


def _damaged_error(model: TreeModel) -> DamagedDocument:
    return DamagedDocument(
        f"The stored document of {model} was damaged or changed outside octweb, so it cannot predict. "
        "Restore it from a backup, or train it again."
    )
