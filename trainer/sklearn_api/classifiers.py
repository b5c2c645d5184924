"""The classifiers by name. `classifiers.pyi`, which is generated, has their signatures for editors.

A module of its own, because type checkers read a stub in place of the code beside it.
"""

from trainer.sklearn_api.estimators import ESTIMATORS

__all__ = sorted(cls.__name__ for cls in ESTIMATORS.values())

globals().update({cls.__name__: cls for cls in ESTIMATORS.values()})
