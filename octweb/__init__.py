"""Package of the Django application. It also exposes the public names of the library, such as `octweb.load`.

`octweb.Client` calls a server.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

OWN_TRAINER = b'"""Classification trees that are proved optimal'  # its first bytes


def _check_trainer() -> None:
    """Raise ImportError if `trainer` is not octweb's own. A package on the index has the same name."""
    spec = find_spec("trainer")
    origin = spec.origin if spec is not None else None
    if origin is not None and Path(origin).read_bytes().startswith(OWN_TRAINER):
        return
    place = origin or next(iter(spec.submodule_search_locations or ()), "?") if spec is not None else "nowhere"
    raise ImportError(
        f"octweb needs its own package 'trainer', but Python finds another one: {place}. If you installed it, run "
        "'pip uninstall trainer' and then install octweb again with 'pip install --force-reinstall --no-deps', "
        "or give octweb an environment of its own. If it is a folder or file of yours, rename it."
    )


_check_trainer()

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
