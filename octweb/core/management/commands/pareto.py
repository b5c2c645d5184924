"""`manage.py pareto` runs `trainer.cli.pareto`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("pareto")
