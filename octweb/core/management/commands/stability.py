"""`manage.py stability` runs `trainer.cli.stability`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("stability")
