"""`manage.py train` runs `trainer.cli.train`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("train")
