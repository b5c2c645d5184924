"""Every method can be warmed: a tiny training that ends by itself."""

from __future__ import annotations

import pytest

from trainer.methods import METHODS
from trainer.warm import COMPILED, MORE, warm


@pytest.mark.parametrize("method", [m.id for m in METHODS if m.id not in COMPILED])
def test_a_method_without_kernels_of_its_own_is_soon_warm(method):
    warm(method)


def test_what_is_compiled_are_methods():
    known = {method.id for method in METHODS}
    assert set(COMPILED) <= known
    assert set(MORE) <= set(COMPILED)
