"""Name the array types of all modules, with the reason for each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

VALUE = np.float64  # feature values; float64 compares thresholds exactly as they were read
CODE = np.int32  # category and class codes; -1 means missing
COUNT = np.int64  # numbers and weights of rows; integers keep sums exact
BIT = np.uint8  # binary features, one byte per cell; solvers that need words pack them

FloatArray = npt.NDArray[np.float64]
CodeArray = npt.NDArray[np.int32]
CountArray = npt.NDArray[np.int64]
BitArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]

MISSING_CODE = -1
