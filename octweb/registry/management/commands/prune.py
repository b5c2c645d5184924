"""`manage.py prune MODEL.json OUTPUT.json`: the model without the questions that change no answer."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError

from octweb.core.command_line import sentence
from trainer.errors import TrainerError
from trainer.tree.file import read_model, write
from trainer.tree.idle import pruned


class Command(BaseCommand):
    help = (
        "Write a model without the questions that change no answer: every row gets the class that it got before. For trees that were "
        "grown split by split (cart, oc1, bivariate, converted); searches of whole trees leave no such question."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("model", metavar="MODEL.json")
        parser.add_argument("output", metavar="OUTPUT.json")

    def handle(self, *args, **options):
        try:
            before = read_model(options["model"])
            after = pruned(before)
            write(after, options["output"])
        except (TrainerError, OSError) as error:
            raise CommandError(sentence(error)) from error
        self.stdout.write(f"{before.tree.n_leaves} leaves before, {after.tree.n_leaves} now: {options['output']}")
