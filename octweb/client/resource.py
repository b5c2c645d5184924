"""Base class of objects on the server."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from octweb.client.connection import Connection


class Resource:
    """An object on the server, as it was when it was last read.

    Attributes
    ----------
    data : dict
        All members that the API answers; `object["name"]` reads one.
    """

    PATH = ""

    def __init__(self, connection: Connection, data: Mapping[str, Any]) -> None:
        self._connection = connection
        self.data = dict(data)

    @property
    def id(self) -> str:
        """The id of the object."""
        return str(self.data["id"])

    @property
    def path(self) -> str:
        """The path of the object below the API."""
        return f"{self.PATH}/{self.id}/"

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.id == self.id

    def __hash__(self) -> int:
        return hash((type(self), self.id))

    def refresh(self) -> Self:
        """Read the object again from the server, and return it."""
        self.data = self._connection.get(self.path)
        return self


def is_id(text: str) -> bool:
    """Return whether a text is the id of an object."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
