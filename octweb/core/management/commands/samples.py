"""`manage.py samples` runs `trainer.cli.samples`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("samples")
