"""Read files from a folder of this machine or from an object store."""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pyarrow as pa
from pyarrow import fs

from trainer.errors import DataError

ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".txt", ".xlsx", ".arrow", ".feather")


class Storage(AbstractContextManager["Storage"], ABC):
    """A file, or all tables below a folder. `names` are those of the files below the folder, in their order."""

    label: str  # name of the file or folder, without its path and without credentials
    names: tuple[str, ...]

    @abstractmethod
    def stamp(self, name: str) -> str:
        """Return a text that changes when the file changes."""

    @abstractmethod
    def digest(self, name: str) -> str:
        """Return the SHA-256 of the bytes of a file."""

    @abstractmethod
    def open(self, name: str) -> Any:
        """Open a file for reading bytes at any position, as `pyarrow.parquet` needs it."""

    @abstractmethod
    def local(self, name: str) -> Path:
        """Return the path of a file on this machine, copied from elsewhere if needed."""

    def __exit__(self, *error: object) -> None:
        """Delete the copies of files."""


def storage_of(place: Path | str) -> Storage:
    """Return the storage of a path, or of a URI such as `s3://bucket/loans`; raise DataError if there is nothing."""
    return RemoteStorage(place) if isinstance(place, str) and "://" in place else LocalStorage(Path(place))


class LocalStorage(Storage):
    """Files of this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.label = path.name
        self.names = (path.name,) if path.is_file() else self._below()

    def _below(self) -> tuple[str, ...]:
        if not self._path.is_dir():
            raise DataError(f"There is no file or folder '{self._path}'. Correct the path.")
        paths = sorted(path.relative_to(self._path) for path in self._path.rglob("*") if path.is_file())
        return tables_of([str(path) for path in paths], self.label)

    def stamp(self, name: str) -> str:
        return self.digest(name)

    def digest(self, name: str) -> str:
        with self.local(name).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def open(self, name: str) -> Any:
        return pa.OSFile(str(self.local(name)))

    def local(self, name: str) -> Path:
        return self._path if self._path.is_file() else self._path / name


class RemoteStorage(Storage):
    """Files of an object store that pyarrow can read: S3, Google Cloud Storage, Azure or HDFS.

    Parquet files are read in place. Other files are copied into a temporary folder, each once.
    """

    def __init__(self, uri: str) -> None:
        try:
            self._files, self._path = fs.FileSystem.from_uri(uri)
            found = self._files.get_file_info(self._path)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataError(f"The source cannot be opened: {_without_secrets(uri, error)}. Correct its URI.") from error
        self.label = self._path.rstrip("/").rpartition("/")[2]
        self._is_file = found.type == fs.FileType.File
        self.names = (self.label,) if self._is_file else self._below()
        self._copies = TemporaryDirectory(prefix="octweb-count-")

    def _below(self) -> tuple[str, ...]:
        selector = fs.FileSelector(self._path, recursive=True, allow_not_found=True)
        infos = [info for info in self._files.get_file_info(selector) if info.is_file]
        base = self._path.rstrip("/") + "/"
        return tables_of(sorted(info.path.removeprefix(base) for info in infos), self.label)

    def _full(self, name: str) -> str:
        return self._path if self._is_file else f"{self._path.rstrip('/')}/{name}"

    def stamp(self, name: str) -> str:
        info = self._files.get_file_info(self._full(name))
        return f"{info.size} bytes of {info.mtime_ns}"

    def digest(self, name: str) -> str:
        with self._files.open_input_stream(self._full(name)) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def open(self, name: str) -> Any:
        return self._files.open_input_file(self._full(name))

    def local(self, name: str) -> Path:
        # the number keeps the files of different folders apart, and the ending shows the format
        copy = Path(self._copies.name) / f"{self.names.index(name)}-{Path(name).name}"
        if not copy.exists():
            unfinished = copy.with_name("unfinished")
            with self._files.open_input_stream(self._full(name)) as stream, unfinished.open("wb") as out:
                shutil.copyfileobj(stream, out)
            unfinished.rename(copy)
        return copy

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self._copies.cleanup()


def tables_of(names: list[str], folder: str) -> tuple[str, ...]:
    """Return the names of tables, without hidden ones; raise DataError if there is none."""
    tables = (name for name in names if name.lower().endswith(ENDINGS))
    visible = tuple(name for name in tables if not any(part.startswith((".", "_")) for part in Path(name).parts))
    if not visible:
        raise DataError(
            f"The folder '{folder}' has no file that ends in {', '.join(ENDINGS)}. Give a folder with such files."
        )
    return visible


def _without_secrets(uri: str, error: Exception) -> str:
    """Return the text of an error without the user, password and query of the URI."""
    scheme, _, rest = uri.partition("://")
    where = rest.partition("?")[0].rpartition("@")[2]
    return str(error).replace(uri, f"{scheme}://{where}").replace(rest, where)[:300]
