"""The Django application octweb. Its module offers the public names of the library, such as `octweb.load` and `octweb.inspect`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import trainer

    if name in dir(trainer):
        return getattr(trainer, name)
    raise AttributeError(f"module 'octweb' has no attribute '{name}'")


def __dir__() -> list[str]:
    import trainer

    return dir(trainer)
