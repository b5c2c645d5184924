"""`manage.py inspect` runs `trainer.cli.inspect`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("inspect")
