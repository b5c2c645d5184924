"""Errors of stored files. Imports nothing heavy, since child processes use it."""

from __future__ import annotations

from trainer.errors import DataError, ModelFileError


class DamagedDocument(ModelFileError):
    """The stored document of a model was changed."""


class StoreUnavailable(DataError):
    """The file store does not respond."""
