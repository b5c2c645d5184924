"""`manage.py edit` runs `trainer.cli.edit`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("edit")
