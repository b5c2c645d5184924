"""`manage.py warm` runs `trainer.cli.warm`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("warm")
