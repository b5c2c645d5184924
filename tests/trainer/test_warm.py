"""Every method can be warmed: a tiny training that ends by itself."""

from __future__ import annotations

import threading

import pytest

from trainer.methods import METHODS
from trainer.warm import COMPILED, MORE, warm


@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_a_method_is_soon_warm(method):
    ended = threading.Event()
    thread = threading.Thread(target=lambda: (warm(method), ended.set()), daemon=True)
    thread.start()
    assert ended.wait(300), (
        "the training has no limit, so it must end by itself, even where kernels are still to be compiled"
    )


def test_what_is_compiled_are_methods():
    known = {method.id for method in METHODS}
    assert set(COMPILED) <= known
    assert set(MORE) <= set(COMPILED)
