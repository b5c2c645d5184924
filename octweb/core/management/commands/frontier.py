"""`manage.py frontier` runs `trainer.cli.frontier`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("frontier")
