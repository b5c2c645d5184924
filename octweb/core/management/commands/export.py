"""`manage.py export` runs `trainer.cli.export`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("export")
