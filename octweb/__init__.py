"""octweb: the application; `octweb.inspect(X, y)` is the intake report of `trainer`."""

from __future__ import annotations

from typing import Any

__all__ = ["inspect"]


def __getattr__(name: str) -> Any:
    if name == "inspect":
        from trainer.data.inspect_table import inspect

        return inspect
    raise AttributeError(f"module 'octweb' has no attribute '{name}'")
