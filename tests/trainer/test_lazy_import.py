"""A deferred module is not loaded by its import and is the real one at its first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trainer.lazy_import import defer


def test_a_deferred_module_is_loaded_at_its_first_use():
    script = (
        "import sys; from trainer.lazy_import import defer; defer('wsgiref.util'); import wsgiref.util; "
        "assert type(sys.modules['wsgiref.util']).__name__ == '_Deferred'; "
        "assert wsgiref.util.shift_path_info; assert type(sys.modules['wsgiref.util']).__name__ == 'module'; "
        "from wsgiref.util import guess_scheme; assert guess_scheme({'HTTPS': 'on'}) == 'https'"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_loaded_module_stays_as_it_is():
    import json

    defer("json")
    assert sys.modules["json"] is json


def test_a_module_that_does_not_exist_is_refused():
    with pytest.raises(ModuleNotFoundError):
        defer("no_such_module_anywhere")


def test_cart_starts_without_what_no_tree_needs():
    script = (
        "import sys, numpy as np; from trainer.run import TrainRequest, train; from trainer.table import Labels, numeric_table; "
        "X = np.arange(8.0).reshape(-1, 1); y = np.array([0, 0, 0, 1, 1, 1, 1, 1], np.int32); "
        "labels = Labels(name='y', classes=('a', 'b'), codes=y); "
        "found = train(TrainRequest(table=numeric_table(X), labels=labels, method='cart')); assert found.tree.n_leaves == 2; "
        "assert 'sklearn.metrics' not in sys.modules; assert type(sys.modules['scipy.stats']).__name__ == '_Deferred'; "
        "from sklearn.neighbors import KNeighborsClassifier; from scipy.stats import rankdata; "
        "assert KNeighborsClassifier(1).fit(X, y).score(X, y) == 1.0 and rankdata([2, 1])[0] == 2"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
