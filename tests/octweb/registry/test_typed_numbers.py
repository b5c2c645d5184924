"""Numbers as people type them: what has one meaning is read, what has two stays text and is refused."""

from __future__ import annotations

import pytest

from octweb.registry.typed_numbers import typed_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3.5", 3.5), ("3,5", 3.5), ("0,125", 0.125), (",5", 0.5), ("-3,25", -3.25), ("−7", -7), ("12", 12),
        ("2,610", 2610), ("1,234,567", 1234567), ("1,234.5", 1234.5), ("2.500,00", 2500), ("1.234.567", 1234567),
        ("2.610", 2.61), ("1 234,5", 1234.5), ("2.500,00 €", 2500), ("1e-3", 0.001), ("12345,678", 12345.678),
    ],
)  # fmt: skip
def test_numbers_are_read_as_they_are_meant(text, number):
    assert typed_number(text, unit="\u202f€") == number


@pytest.mark.parametrize(
    "text",
    ["wide", "3,5,1", "1,23,456", "1.2.3", "3 %", "2,5.1", "3 5", "1 23", ",", "", "nan", "inf", "1e999", "1_000"],
)
def test_what_is_no_number_stays_text(text):
    assert typed_number(text, unit="€") == text


def test_a_comma_with_two_meanings_stays_text_where_the_file_had_decimal_commas():
    assert typed_number("2,610", decimal_comma=True) == "2,610"
    assert typed_number("2,61", decimal_comma=True) == 2.61
    assert typed_number("1,234,567", decimal_comma=True) == 1234567
