"""Name the orders of changes.

This module is separate from `flip`, so that pages that only list the orders load no solver.
"""

from __future__ import annotations

from typing import Any

from trainer.errors import ParameterError

COLUMNS = "columns"
TOTAL = "total"
ORDERS = {COLUMNS: "Fewest columns first", TOTAL: "Smallest total"}
ORDER_TEXTS = {
    COLUMNS: "fewest columns first, then the smallest total",
    TOTAL: "the smallest total, however many columns change",
}


def least_of(word: Any) -> str:
    """Check the name of an order; raise ParameterError unless it is `COLUMNS` or `TOTAL`."""
    if not isinstance(word, str) or word not in ORDERS:
        raise ParameterError({"least": f"'{str(word)[:60]}' is not one of {', '.join(ORDERS)}."})
    return word
