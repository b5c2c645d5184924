"""Group many random cases into a few test items, because pytest's overhead per item exceeds the time of most cases."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

AT_ONCE = 30  # number of cases in an item


def seeds(count: int) -> Callable[[Callable[..., None]], Any]:
    """Run a test for each `seed` in range(count), several of them in one item. An error names its seed.

    The cases of an item share the fixtures of the test, so the test must be repeatable with them.
    """

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def several(first: int, **fixtures: Any) -> None:
            for seed in range(first, min(first + AT_ONCE, count)):
                try:
                    test(seed=seed, **fixtures)
                except BaseException as error:
                    error.add_note(f"seed {seed}")
                    raise

        signature = inspect.signature(test)
        first = inspect.Parameter("first", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        others = [p for name, p in signature.parameters.items() if name != "seed"]
        several.__signature__ = signature.replace(parameters=[first, *others])  # type: ignore[attr-defined]
        del several.__wrapped__  # pytest would otherwise take the parameters of the wrapped test
        return pytest.mark.parametrize("first", range(0, count, AT_ONCE))(several)

    return decorate
