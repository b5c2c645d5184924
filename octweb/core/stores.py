"""Store files in a bucket (S3 and compatible servers). Needs requirements-hosts.txt."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3Storage

from octweb.core.faults import StoreUnavailable

CONNECT_SECONDS = 5
READ_SECONDS = 60
ATTEMPTS = 4


def _said_clearly(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a storage method: convert errors of the client library to StoreUnavailable."""

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except (BotoCoreError, ClientError) as error:
            raise StoreUnavailable(
                f"The store of files does not answer ({type(error).__name__}). Nothing was changed; try again in a moment."
            ) from error

    return wrapped


class Bucket(S3Storage):
    """S3 storage of django-storages with timeouts, retries and our error class."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.client_config = self.client_config.merge(  # type: ignore[has-type]
            Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"mode": "standard", "max_attempts": ATTEMPTS},
            )
        )

    _save = _said_clearly(S3Storage._save)
    delete = _said_clearly(S3Storage.delete)
    exists = _said_clearly(S3Storage.exists)
    listdir = _said_clearly(S3Storage.listdir)
    size = _said_clearly(S3Storage.size)
    get_modified_time = _said_clearly(S3Storage.get_modified_time)

    @_said_clearly
    def _open(self, name: str, mode: str = "rb") -> Any:
        file = super()._open(name, mode)
        if "r" in mode:
            file._get_file()  # download the file here, where errors are converted, not at the first read
        return file
