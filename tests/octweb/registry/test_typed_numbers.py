"""Numbers as users type them: unambiguous ones are read, and ambiguous ones are refused.

The examples are a table that the page's own reading is tested with, too (tests/browser/test_workspace.py).
"""

from __future__ import annotations

import pytest

from octweb.registry.page.typed_numbers import typed_number
from tests.octweb.registry.typed_numbers_cases import EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e['text']}|{e['unit']}|{e['decimal_comma']}")
def test_ambiguous_numbers_stay_text(example):
    found = typed_number(example["text"], unit=example["unit"], decimal_comma=example["decimal_comma"])
    assert found == (example["text"] if example["number"] is None else example["number"])


def test_integers_are_read_as_integers():
    assert isinstance(typed_number("2,610"), int)
    assert isinstance(typed_number("2.5"), float)
