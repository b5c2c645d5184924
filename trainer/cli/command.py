"""Load and execute a command, and describe its errors."""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser
from typing import Any, Protocol, cast

from trainer.errors import ParameterError, TrainerError

FAILED = 1
USAGE = 2  # argparse uses the same exit status for wrong arguments
Options = dict[str, Any]  # the parsed arguments by name


class CommandError(Exception):
    """The reason why a command failed, in one sentence for the user."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


class Command(Protocol):
    """The members that every command module must have."""

    HELP: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, options: Options) -> int: ...


def load(name: str) -> Command:
    """Import the module of a command of `trainer.cli.COMMANDS`."""
    return cast(Command, importlib.import_module(f"trainer.cli.{name.replace('-', '_')}"))


def execute(command: Command, options: Options) -> int:
    """Run a command and return its exit status; raise CommandError for every error that the user can fix."""
    try:
        status = command.run(options)
        sys.stdout.flush()  # flush now, because a process that crashes on exit would lose buffered output
    except ParameterError as error:
        raise CommandError(str(error), USAGE) from error
    except (TrainerError, OSError) as error:
        raise CommandError(error_text(error)) from error
    return status


def error_text(error: Exception) -> str:
    """Return an error on one line, such as "The file 'a.json' cannot be opened: No such file or directory."."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"The file '{error.filename}' cannot be opened: {error.strerror}." if error.filename else error.strerror
    return " ".join(text.split())


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"note: {text}", file=sys.stderr)
