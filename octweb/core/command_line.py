"""Runs a command, and says in one sentence what a person can mend: a file that is not there, a database without tables."""

from __future__ import annotations

import sys

NO_TABLES = ("no such table", "does not exist", "undefinedtable")  # SQLite, PostgreSQL
MIGRATE = "The database has no tables yet, or those of an older version. Run `{program} migrate` first."


def run(arguments: list[str]) -> None:
    """Run the command that these arguments name, the program's name first; ends with status 1 where the database has no tables."""
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(arguments)
    except (OperationalError, ProgrammingError) as error:
        if "--traceback" in arguments or not any(words in str(error).lower() for words in NO_TABLES):
            raise
        sys.exit(f"CommandError: {MIGRATE.format(program=arguments[0])}")


def sentence(error: Exception) -> str:
    """An error on one line; that of the system as what it is about: "The file 'a.json' cannot be opened: No such file or directory."."""
    if isinstance(error, OSError) and error.strerror:
        about = f"The file '{error.filename}' cannot be opened: {error.strerror}." if error.filename else error.strerror
        return " ".join(about.split())
    return " ".join(str(error).split())
