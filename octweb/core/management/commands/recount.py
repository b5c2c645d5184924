"""`manage.py recount` runs `trainer.cli.recount`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("recount")
