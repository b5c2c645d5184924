"""What is wrong with something that is stored; light, because the children of workers ask for it, too."""

from __future__ import annotations

from trainer.errors import DataError, ModelFileError


class DamagedDocument(ModelFileError):
    """The stored document of a model is not the one that was stored."""


class StoreUnavailable(DataError):
    """The store of files does not answer."""
