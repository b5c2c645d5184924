"""Convert trees of other programs into trees of this one.

The converted tree predicts the same class for every row, or an error says why that is impossible. No code of
a source runs: scikit-learn's arrays, LightGBM's text or JSON, and PMML's XML are read as data.
"""

from trainer.convert.counted import count_rows, fitted_to, uncounted
from trainer.convert.lightgbm import from_lightgbm
from trainer.convert.pmml import from_pmml
from trainer.convert.rival import Rival, rival
from trainer.convert.sklearn import from_sklearn, to_sklearn
from trainer.convert.source import METHOD, ConvertedTree
from trainer.convert.sources import FORMS, convert, form_of

__all__ = [
    "FORMS",
    "METHOD",
    "ConvertedTree",
    "Rival",
    "convert",
    "count_rows",
    "fitted_to",
    "form_of",
    "from_lightgbm",
    "from_pmml",
    "from_sklearn",
    "rival",
    "to_sklearn",
    "uncounted",
]
