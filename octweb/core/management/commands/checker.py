"""`manage.py checker` runs `trainer.cli.checker`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("checker")
