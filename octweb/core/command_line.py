"""Run a command, and report common installation problems in one sentence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from octweb import places
from octweb.private_files import FILE_COMMANDS, protect_new_files
from trainer.cli import COMMANDS

NO_TABLES = ("no such table", "does not exist", "undefinedtable")  # how SQLite and PostgreSQL report a missing table
MIGRATE = "The database has no tables yet, or those of an older version. Run `{program} migrate` first."

CANNOT_OPEN = "unable to open database file"  # SQLite reports this if the folder is missing or not writable
ANOTHER_FOLDER = "Set OCTWEB_DATA_DIR to a folder that can be written."
# All Django commands have these options; the parsers of the library do not.
DJANGO_OPTIONS = (
    "--version", "-v", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color",
)  # fmt: skip


def run(arguments: list[str]) -> None:
    """Run the command named by the arguments. The first argument is the program's name.

    Commands of the library run without Django, unless an option of Django is given. Exit with status 1 and one sentence
    if the database has no tables, or the data folder is not writable.
    """
    command = "".join(arguments[1:2])
    if command in COMMANDS and not any(argument.partition("=")[0] in DJANGO_OPTIONS for argument in arguments):
        from trainer.cli.dispatch import run_process

        data = Path(os.environ.get("OCTWEB_DATA_DIR") or places.data())
        os.environ.setdefault(
            "NUMBA_CACHE_DIR", str(places.kernels(data.resolve()))
        )  # settings.py sets the same default
        run_process(Path(arguments[0]).name, arguments[1:])
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    from trainer.cli.dispatch import exit_beside_compiler

    if command and command not in FILE_COMMANDS:
        protect_new_files()
    try:
        execute_from_command_line(arguments)
        exit_beside_compiler(0)  # a dossier trains on bootstraps
    except (OperationalError, ProgrammingError, ImproperlyConfigured, OSError) as error:
        message = _mendable(error, arguments[0])
        if "--traceback" in arguments or not message:
            raise
        sys.exit(f"CommandError: {message}")


def _mendable(error: Exception, program: str) -> str:
    """Return a sentence with a remedy for a common error, or "" for any other error."""
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    if isinstance(error, ImproperlyConfigured):
        return str(error)
    folder = Path(settings.DATA_DIR)
    if isinstance(error, OSError):
        ours = error.filename is not None and _belongs(Path(os.fsdecode(error.filename)), folder)
        return f"The data folder '{folder}' cannot be used: {error.strerror}. {ANOTHER_FOLDER}" if ours else ""
    text = str(error).lower()
    if CANNOT_OPEN in text:
        return f"The database in '{folder}' cannot be opened. {ANOTHER_FOLDER}"
    return MIGRATE.format(program=program) if any(words in text for words in NO_TABLES) else ""


def _belongs(path: Path, folder: Path) -> bool:
    """Return whether the path lies in the data folder or is one of its parents."""
    return path.is_relative_to(folder) or folder.is_relative_to(path)
