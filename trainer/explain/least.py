"""Which of two changes is the smaller one: the orders that can be asked for."""

from __future__ import annotations

from typing import Any

from trainer.errors import ParameterError

COLUMNS = "columns"
TOTAL = "total"
ORDERS = {COLUMNS: "Fewest columns first", TOTAL: "Smallest total"}
SAID = {
    COLUMNS: "fewest columns first, then the smallest total",
    TOTAL: "the smallest total, however many columns change",
}


def least_of(word: Any) -> str:
    """The order of a word, `COLUMNS` or `TOTAL`; raises ParameterError for any other."""
    if not isinstance(word, str) or word not in ORDERS:
        raise ParameterError({"least": f"'{str(word)[:60]}' is not one of {', '.join(ORDERS)}."})
    return word
