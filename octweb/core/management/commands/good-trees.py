"""`manage.py good-trees` runs `trainer.cli.good_trees`; Django finds commands only as files."""

from octweb.core.library_commands import django_command

Command = django_command("good-trees")
