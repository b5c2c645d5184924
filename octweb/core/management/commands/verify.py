"""`manage.py verify` runs `trainer.cli.verify`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("verify")
