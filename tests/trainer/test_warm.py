"""Every method can be warmed: a tiny training that ends by itself."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from trainer.methods import METHODS
from trainer.warm import COMPILED, MORE, warm


@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_a_method_is_soon_warm(method):
    # a daemon thread, since a training that did not end would otherwise hold the whole run of tests
    done: Future[None] = Future()
    threading.Thread(target=lambda: _settle(done, method), daemon=True).start()
    done.result(timeout=300)  # there is no limit, so it must end by itself, even where kernels are still to be compiled


def _settle(done: Future[None], method: str) -> None:
    try:
        done.set_result(warm(method))
    except BaseException as error:
        done.set_exception(error)


def test_what_is_compiled_are_methods():
    known = {method.id for method in METHODS}
    assert set(COMPILED) <= known
    assert set(MORE) <= set(COMPILED)
