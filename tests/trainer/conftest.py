"""Fail tests of the library that hang."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.watchdog import watchdog


@pytest.fixture(autouse=True)
def _watched() -> Iterator[None]:
    with watchdog():
        yield
