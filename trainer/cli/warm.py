"""`warm`: compile the kernels once, before the first run of a user."""

from __future__ import annotations

from argparse import ArgumentParser

from trainer.cli.command import CommandError, Options
from trainer.registry import precompiled_ids
from trainer.training.warm_up import warm

HELP = "Train a tiny tree with every method that has compiled kernels; they are cached in NUMBA_CACHE_DIR."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("methods", nargs="*", help=f"some of {', '.join(precompiled_ids())}; all without a name")
    parser.add_argument(
        "--backwards", action="store_true", help="begin with the last method, for a second process beside the first"
    )


def run(options: Options) -> int:
    known = precompiled_ids()
    if unknown := set(options["methods"]) - set(known):
        raise CommandError(
            f"No kernels are compiled for {', '.join(sorted(unknown))}. Choose among: {', '.join(known)}."
        )
    methods = [method for method in known if method in (options["methods"] or known)]
    for method in reversed(methods) if options["backwards"] else methods:
        warm(method)
        print(f"{method}: compiled")
    return 0
