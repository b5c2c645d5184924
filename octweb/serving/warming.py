"""Load in advance what the first call of a process needs.

These are the views, parts for model pages, and the kernels of predictions. Loading them opens no connection and starts
no thread. So gunicorn can do it before it forks (`preload_app`), and the processes answer at once.
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
    """Load all parts.

    Without `kernels`, the first call loads them, or compiles them if they are not cached, which takes seconds.
    """
    get_resolver().url_patterns  # noqa: B018  (imports all views)
    warm_pages()
    if kernels:
        warm_kernels()


def warm_pages() -> None:
    """Load the slowest parts of a first model page: numba's target description, the schema validator and the cell parser."""
    importlib.import_module("jsonschema")  # trainer imports it when it first checks a model file
    Cells.of(pa.array(["1"]))
    cpu_target.target_context.refresh()  # otherwise even a cached kernel takes half a second to load


def warm_kernels() -> None:
    """Load the kernels of prediction calls. They are compiled first if they are not cached."""
    matrix = rows_matrix(b'{"rows":[{"a":1.5e0}]}', ("a",), 1)
    apply(flatten([(None, -1, -1)], ()), np.ones((1, 1)) if matrix is None else matrix)
