"""The Django application octweb; `octweb.inspect(X, y)` is trainer's intake report."""

from __future__ import annotations

from typing import Any

__all__ = ["inspect"]


def __getattr__(name: str) -> Any:
    if name == "inspect":
        from trainer.data.inspect_table import inspect

        return inspect
    raise AttributeError(f"module 'octweb' has no attribute '{name}'")
