"""`manage.py evaluate` runs `trainer.cli.evaluate`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("evaluate")
