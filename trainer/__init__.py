"""Classification trees that are proved optimal: estimators, trees and certificates.

Names are imported at first use, so that `import trainer` does not wait for scikit-learn or numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.version import VERSION as __version__

if TYPE_CHECKING:  # editors and type checkers read these imports; `__getattr__` loads the same names
    from trainer.data.inspect_table import inspect
    from trainer.data.rewards import regrets
    from trainer.families.exact.workbench import Workbench
    from trainer.sklearn_api.classifiers import *  # noqa: F403
    from trainer.sklearn_api.estimators import make_classifier
    from trainer.sklearn_api.loading import load
    from trainer.sklearn_api.notebook import progress_bars
    from trainer.tree.nodes import Tree

    ESTIMATOR_NAMES: dict[str, str]

__all__ = [
    "ESTIMATOR_NAMES",
    "Tree",
    "Workbench",
    "__version__",
    "inspect",
    "load",
    "make_classifier",
    "progress_bars",
    "regrets",
]


def __getattr__(name: str) -> Any:
    if name == "Tree":
        from trainer.tree.nodes import Tree

        return Tree
    if name == "Workbench":
        from trainer.families.exact.workbench import Workbench

        return Workbench
    if name == "inspect":
        from trainer.data.inspect_table import inspect

        return inspect
    if name == "regrets":
        from trainer.data.rewards import regrets

        return regrets
    if name == "progress_bars":
        from trainer.sklearn_api.notebook import progress_bars

        return progress_bars
    if name == "load":
        from trainer.sklearn_api.loading import load

        return load
    if name == "ESTIMATOR_NAMES":
        from trainer.registry import METHODS

        return {method.id: method.estimator for method in METHODS}
    if name == "make_classifier" or name.endswith("Classifier"):
        from trainer.sklearn_api import estimators

        if hasattr(estimators, name):
            return getattr(estimators, name)
    raise AttributeError(f"module 'trainer' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, *__getattr__("ESTIMATOR_NAMES").values()])
