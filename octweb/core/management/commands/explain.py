"""`manage.py explain` runs `trainer.cli.explain`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("explain")
