"""Package of the Django application. It also exposes the public names of the library, such as `octweb.load`.

`octweb.Client` calls a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # editors and type checkers read these imports; `__getattr__` loads the same names
    from octweb.client import Client as Client
    from trainer import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name == "Client":
        from octweb.client import Client

        return Client
    import trainer

    if name in dir(trainer):
        return getattr(trainer, name)
    raise AttributeError(f"module 'octweb' has no attribute '{name}'")


def __dir__() -> list[str]:
    import trainer

    return sorted([*dir(trainer), "Client"])
