"""`manage.py convert` runs `trainer.cli.convert`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("convert")
