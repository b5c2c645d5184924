"""Define errors of stored files. Imports nothing heavy, because child processes use it."""

from __future__ import annotations

from trainer.errors import DataError, ModelFileError


class DamagedDocument(ModelFileError):
    """The stored document of a model was changed outside octweb."""


class StoreUnavailable(DataError):
    """The file store does not respond."""


class BackupError(Exception):
    """A backup cannot be written or restored."""
