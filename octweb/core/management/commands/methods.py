"""`manage.py methods` runs `trainer.cli.methods`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("methods")
