"""`manage.py complete` runs `trainer.cli.complete`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("complete")
