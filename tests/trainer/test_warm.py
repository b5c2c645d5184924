"""Every method can be warmed by a tiny training that ends by itself, and other trainings then compile nothing more."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from trainer.methods import METHODS
from trainer.warm import COMPILED, MORE, warm

# in a process of its own, for what other tests have compiled would hide what warming left out
OTHER_TRAININGS = """
import gc, json
import numpy as np
from numba.core.dispatcher import Dispatcher
from trainer.run import TrainRequest, train
from trainer.table import Column, ColumnSchema, Kind, Labels, Table
from trainer.warm import COMPILED, warm

def compiled():
    return {d.py_func.__qualname__: len(d.signatures) for d in gc.get_objects() if isinstance(d, Dispatcher)}

def sample(rows, numeric, categorical):
    draw = np.random.default_rng(7)
    X = draw.normal(size=(rows, numeric)).round(1)
    C = draw.integers(0, 3, (rows, categorical)).astype(float)
    codes = ((X[:, 0] + X[:, 1] > 0) ^ (C[:, 0] == 1)).astype(np.int32)
    columns = [Column(schema=ColumnSchema(name=f"x{j}", kind=Kind.NUMERIC), values=X[:, j]) for j in range(numeric)]
    columns += [
        Column(schema=ColumnSchema(name=f"c{j}", kind=Kind.CATEGORICAL, categories=tuple("abc")), values=C[:, j])
        for j in range(categorical)
    ]
    table = Table(columns=tuple(columns), row_numbers=np.arange(1, rows + 1))
    return table, Labels(name="y", classes=("no", "yes"), codes=codes)

for method in COMPILED:
    warm(method)
before = compiled()
others = [
    ("exact", {"depth": 1}), ("exact", {"depth": 2, "leaf_penalty": 0.01}), ("exact", {"depth": 3, "min_leaf": 3}),
    ("exact", {"depth": 4, "class_weight": "balanced"}), ("exact", {"depth": 3, "recall": "yes: 0.5"}),
    ("exact-numeric", {"depth": 2}), ("exact-numeric", {"depth": 3, "leaf_penalty": 0.01}),
    ("odt", {"depth": 2, "max_card": 1}), ("odt", {"topology": "imbalanced"}), ("odt", {"depth": 3}),
    ("odt", {"depth": 2, "sensitivity": 0.9, "positive": "yes"}),
    ("bivariate", {"depth": 2}), ("bivariate", {"depth": 3, "min_leaf": 2}), ("oc1", {"depth": 3}),
    ("bendoct-accelerated", {"depth": 2}), ("bendoct-accelerated", {"depth": 3, "leaf_penalty": 0.01}),
    ("cut-h", {"depth": 1, "time_limit": 5}),
]
more = {}
for method, settings in others:
    table, labels = sample(35 if method == "cut-h" else 130, 3, 2)
    train(TrainRequest(table=table, labels=labels, method=method, parameters=settings))
    now = compiled()
    for name, signatures in now.items():
        if signatures != before.get(name, 0):
            more[name] = f"{method} {settings}"
    before = now
print(json.dumps(more))
"""


@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_a_method_is_soon_warm(method):
    # a daemon thread, since a training that did not end would otherwise hold the whole run of tests
    done: Future[bool] = Future()
    threading.Thread(target=lambda: _settle(done, method), daemon=True).start()
    # there is no limit, so it must end by itself, even where kernels are still to be compiled
    assert done.result(timeout=300)


def _settle(done: Future[bool], method: str) -> None:
    try:
        warm(method)
        done.set_result(True)
    except BaseException as error:
        done.set_exception(error)


@pytest.mark.slow
def test_other_trainings_compile_nothing_more():
    ran = subprocess.run([sys.executable, "-c", OTHER_TRAININGS], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {}


def test_what_is_compiled_are_methods():
    known = {method.id for method in METHODS}
    assert set(COMPILED) <= known
    assert set(MORE) <= set(COMPILED)
