"""`manage.py contract` runs `trainer.cli.contract`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("contract")
