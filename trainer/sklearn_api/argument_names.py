"""Accept scikit-learn's names of constructor arguments.

The names of octweb are stored; a name of scikit-learn is another way to write one of them. Giving both is an error.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from trainer.errors import closest

SKLEARN_NAMES = {"max_depth": "depth", "min_samples_leaf": "min_leaf", "n_jobs": "threads", "random_state": "seed"}


def translate_names(estimator: str, defaults: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return constructor arguments under the names of octweb.

    Parameters
    ----------
    estimator : str
        The class, for errors.
    defaults : mapping
        The default of each argument that the class takes.
    arguments : mapping
        Values by name. `random_state` and `n_jobs` of None are the defaults; `n_jobs=-1` is the number of processors.

    Raises
    ------
    TypeError
        If the class has no such argument, or if one is given under both names.
    """
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        argument = SKLEARN_NAMES.get(name, name)
        if argument not in defaults:
            raise TypeError(
                f"{estimator}.__init__() got an unexpected keyword argument '{name}'.{_advice(name, argument, defaults)}"
            )
        if argument != name and argument in arguments:
            raise TypeError(f"{estimator}: '{name}' is scikit-learn's name of '{argument}'. Give one of them.")
        values[argument] = _value(name, value, defaults[argument])
    return values


def _advice(name: str, argument: str, defaults: Collection[str]) -> str:
    if argument != name:
        return f" It is scikit-learn's name of '{argument}', which this method does not have."
    return closest(name, [*defaults, *(theirs for theirs, ours in SKLEARN_NAMES.items() if ours in defaults)])


def _value(name: str, value: Any, default: Any) -> Any:
    if name in ("n_jobs", "random_state") and value is None:
        return default
    return (os.cpu_count() or 1) if name == "n_jobs" and value == -1 else value
