"""Export the classifiers by name, beside their stub for editors.

The generated stub `classifiers.pyi` has their signatures for editors. This module is separate, because type
checkers read a stub in place of the code beside it.
"""

from trainer.sklearn_api.estimators import ESTIMATORS

__all__ = sorted(cls.__name__ for cls in ESTIMATORS.values())

globals().update({cls.__name__: cls for cls in ESTIMATORS.values()})
