"""`manage.py prune` runs `trainer.cli.prune`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("prune")
