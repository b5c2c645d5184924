"""`manage.py warm`: compile the kernels once, so that the first run of a person does not wait for it."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError

from trainer.registry import precompiled_ids
from trainer.training.warm_up import warm


class Command(BaseCommand):
    help = "Train a tiny tree with every method that has compiled kernels; they are then kept in NUMBA_CACHE_DIR."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser):
        parser.add_argument("methods", nargs="*", help=f"some of {', '.join(precompiled_ids())}; all without a name")

    def handle(self, *args, **options):
        precompiled = precompiled_ids()
        if unknown := set(options["methods"]) - set(precompiled):
            raise CommandError(
                f"Nothing is compiled for {', '.join(sorted(unknown))}; there are {', '.join(precompiled)}."
            )
        for method in precompiled:
            if method in (options["methods"] or precompiled):
                warm(method)
                self.stdout.write(f"{method}: compiled")
