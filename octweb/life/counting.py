"""Write the counts of this process, of answers and of calls, to the database every second."""

from __future__ import annotations

import atexit
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from django.db import DatabaseError, close_old_connections, connection, transaction
from django.utils import timezone

from octweb.core import rate_counts, tally
from octweb.core.tally import SECONDS_OF_DAY, Counts, Key
from octweb.life.models import MAX_NAME, DailyCount
from octweb.registry.models import State, TreeModel

log = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0  # a killed process loses the counts since its last write, about this long ago
END_SECONDS = 25.0  # an ending process waits this long for the writer thread; gunicorn kills it after 30
EPOCH = date(1970, 1, 1)


class _Writer(NamedTuple):
    """The thread that writes this process's counts, and the event that stops it."""

    thread: threading.Thread
    stop: threading.Event


def write_in_background() -> None:
    """Enable a writer thread in each process, started at its first count."""
    tally.begin_with(_begin)


def flush() -> int:
    """Write the counts in memory, and return how many rows were written. If this fails, they stay in memory."""
    counts = tally.drain()
    if not counts:
        return 0
    try:
        return add_counts(counts)
    except BaseException:
        tally.give_back(counts)
        raise


def add_counts(counts: Mapping[Key, int]) -> int:
    """Add counts to the database in one transaction, and return how many rows. Counts of purged models are dropped."""
    with transaction.atomic():
        models = {key.model for key in counts}
        known = {str(pk) for pk in TreeModel.objects.filter(pk__in=models).values_list("pk", flat=True)}
        numbers: Counter[tuple[str, date, str, str, str]] = Counter()
        for key, number in counts.items():
            if key.model in known:
                numbers[_row_key(key)] += number
        # all processes lock rows in the same order, which prevents deadlocks
        rows = [_values(key, number) for key, number in sorted(numbers.items())]
        with connection.cursor() as cursor:
            cursor.executemany(_statement(), rows)
    return len(rows)


def count_file(model: TreeModel, counts: Counts) -> None:
    """Count the answers of a batch prediction in the current transaction if the model is approved."""
    if model.state != State.APPROVED:
        return
    day = timezone.now().timestamp() // SECONDS_OF_DAY
    add_counts(
        {
            Key(str(model.pk), "batch", int(day), kind, name): number
            for kind, numbers in counts.items()
            for name, number in numbers.items()
        }
    )


def _begin() -> None:
    stop = threading.Event()
    writer = _Writer(threading.Thread(target=_write_for_ever, args=(stop,), name="counts", daemon=True), stop)
    atexit.register(_end, writer)
    writer.thread.start()


def _write_for_ever(stop: threading.Event) -> None:
    while not stop.wait(FLUSH_SECONDS):
        _try_to_write()


def _try_to_write() -> None:
    try:
        close_old_connections()
        flush()
        rate_counts.synchronise()
    except DatabaseError as error:
        log.warning("counts: the database does not answer, trying again: %s", error)
        connection.close()
    except Exception:  # the next try may succeed; a thread that ended would never write again
        log.exception("counts were not written")
        connection.close()


def _end(writer: _Writer) -> None:
    """Write the remaining counts when the process ends. After SIGTERM, gunicorn finishes its calls first."""
    writer.stop.set()
    writer.thread.join(END_SECONDS)
    _try_to_write()


def _row_key(key: Key) -> tuple[str, date, str, str, str]:
    name = key.name.replace("\x00", "")[:MAX_NAME]
    return key.model, EPOCH + timedelta(days=key.day), key.api, key.kind, name


def _values(key: tuple[str, date, str, str, str], number: int) -> list[object]:
    """Return the values of a row, converted for the database."""
    fields = [DailyCount._meta.get_field(name) for name in ("model", "day", "api", "kind", "name", "number")]
    return [field.get_db_prep_save(value, connection) for field, value in zip(fields, (*key, number), strict=True)]


def _statement() -> str:
    quote = connection.ops.quote_name
    table = quote(DailyCount._meta.db_table)
    key = ", ".join(quote(name) for name in ("model_id", "day", "api", "kind", "name"))
    number = quote("number")
    return (
        f"INSERT INTO {table} ({key}, {number}) VALUES (%s, %s, %s, %s, %s, %s) "  # noqa: S608  (our own names)
        f"ON CONFLICT ({key}) DO UPDATE SET {number} = {table}.{number} + excluded.{number}"
    )
