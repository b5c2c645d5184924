"""Wrap the commands of `trainer.cli` as Django commands.

`manage.py help` and `call_command` need this.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError

from trainer.cli import command as library


def django_command(name: str) -> type[BaseCommand]:
    """Return the Django command class that runs a command of `trainer.cli`."""
    command = library.load(name)

    class Command(BaseCommand):
        help = command.HELP
        requires_system_checks: tuple[str, ...] = ()

        def add_arguments(self, parser: CommandParser) -> None:
            command.add_arguments(parser)

        def handle(self, *args: Any, **options: Any) -> None:
            out = options.get("stdout") or sys.stdout
            errors = options.get("stderr") or sys.stderr
            try:
                with redirect_stdout(out), redirect_stderr(errors):
                    status = library.execute(command, options)
            except library.CommandError as error:
                raise CommandError(str(error), returncode=error.status) from error
            if status:
                sys.exit(status)

    return Command
