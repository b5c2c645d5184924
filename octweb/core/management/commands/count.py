"""`manage.py count` runs `trainer.cli.count`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("count")
