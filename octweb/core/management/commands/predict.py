"""`manage.py predict` runs `trainer.cli.predict`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("predict")
