"""Store the missing sample tables as a user's data sets: `manage.py load_samples USERNAME`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import CommandParser
from django.core.management.base import BaseCommand, CommandError

from octweb.datasets import samples
from trainer.data.samples import SAMPLES


class Command(BaseCommand):
    help = "Give a user all sample data sets that the user does not have yet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            owner = get_user_model().objects.get_by_natural_key(options["username"])
        except get_user_model().DoesNotExist as error:
            raise CommandError(
                f"There is no user '{options['username']}'. Correct the name, or create the account first."
            ) from error
        for sample in SAMPLES:
            samples.load(owner=owner, slug=sample.slug)
        if options["verbosity"]:
            self.stdout.write(f"{len(SAMPLES)} sample data sets belong to {owner.username}.")
