"""`manage.py rules` runs `trainer.cli.rules`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("rules")
