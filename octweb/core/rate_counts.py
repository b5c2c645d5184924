"""Share the counts of calls between processes and hosts, in the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connection, transaction
from django.utils.crypto import salted_hmac

from octweb.core.models import RateCount
from octweb.core.throttles import WINDOWS, WindowKey, Windows, clock, rate

ROWS_AT_ONCE = 300
Row = tuple[str, int]  # digest of the caller, end of the window


def synchronise(windows: Windows = WINDOWS) -> None:
    """Add this process's calls since the last time to the sums of all processes, and take the sums over."""
    calls = windows.drain()
    if not calls:
        return
    try:
        sums = add_calls(calls)
    except BaseException:
        windows.give_back(calls)
        raise
    windows.take_over(sums)


def add_calls(calls: dict[WindowKey, int]) -> dict[WindowKey, int]:
    """Add calls to the database. Return the sums of these windows and of those before them."""
    keys = {}
    for key in calls:
        for number in (key.number - 1, key.number):
            keys[_row(key._replace(number=number))] = key._replace(number=number)
    # all processes lock rows in the same order, which prevents deadlocks
    added = sorted((*_row(key), number) for key, number in calls.items() if number)
    with transaction.atomic():
        for rows in _batches(added):
            with connection.cursor() as cursor:
                cursor.execute(_statement(len(rows)), [value for row in rows for value in row])
        if added:
            longest = max(rate(scope)[1] for scope in ("user", "stranger"))
            RateCount.objects.filter(ends__lt=int(clock()) - 2 * longest).delete()
    return {keys[row]: total for row, total in _sums(keys).items() if row in keys}


def _row(key: WindowKey) -> Row:
    digest = salted_hmac("octweb.core.rate_counts", key.caller, algorithm="sha256").hexdigest()
    return digest, (key.number + 1) * key.seconds


def _sums(rows: Iterable[Row]) -> dict[Row, int]:
    found: dict[Row, int] = {}
    ends = {end for _, end in rows}
    for callers in _batches(sorted({caller for caller, _ in rows})):
        counts = RateCount.objects.filter(caller__in=callers, ends__in=ends)
        found |= {(caller, end): calls for caller, end, calls in counts.values_list("caller", "ends", "calls")}
    return found


def _batches(rows: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


def _statement(rows: int) -> str:
    quote = connection.ops.quote_name
    table = quote(RateCount._meta.db_table)
    values = ", ".join(["(%s, %s, %s)"] * rows)
    return (
        f"INSERT INTO {table} (caller, ends, calls) VALUES {values} "  # noqa: S608  (our own names)
        f"ON CONFLICT (caller, ends) DO UPDATE SET calls = {table}.calls + excluded.calls"
    )
