"""What a web process would otherwise load at its first call: addresses with their views, what pages of models need, and the compiled
kernels of predictions.

It opens no connection and starts no thread, so that a gunicorn that loads the application before it forks (`preload_app`) has
processes that answer at once.
"""

from __future__ import annotations

import importlib

import numpy as np
import pyarrow as pa
from django.urls import get_resolver
from numba.core.registry import cpu_target

from octweb.serving.json_rows import rows_matrix
from trainer.data.parsing.cells import Cells
from trainer.tree.route import apply, flatten


def warm(*, kernels: bool = True) -> None:
    """Load it; without `kernels` their compiling, which takes seconds where nothing is kept of it, waits for the first call."""
    get_resolver().url_patterns  # noqa: B018  (imports all views)
    warm_pages()
    if kernels:
        warm_kernels()


def warm_pages() -> None:
    """Load what the first page of a model waits for longest: numba's description of the processor, the checker of schemas, and the reader of cells."""
    importlib.import_module("jsonschema")  # trainer imports it when it checks a model file
    Cells.of(pa.array(["1"]))
    cpu_target.target_context.refresh()  # without it even a kernel that is kept takes half a second to load


def warm_kernels() -> None:
    """Load the kernels of prediction calls, or compile them."""
    matrix = rows_matrix(b'{"rows":[{"a":1.5e0}]}', ("a",), 1)
    apply(flatten([(None, -1, -1)], ()), np.ones((1, 1)) if matrix is None else matrix)
