"""Make counting and writing atomic with database locks; shared by three apps."""

from __future__ import annotations

from django.db import connection


def hold_lock(name: str) -> None:
    """Wait for the lock `name`, and hold it until the transaction ends.

    Call it inside `transaction.atomic()`, before counting rows against a limit. SQLite needs no lock: each transaction
    holds the only write lock from its start (`transaction_mode` IMMEDIATE).
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
