"""Parse a command line and run the command that it names."""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import NoReturn

from trainer.cli import COMMANDS
from trainer.cli.command import USAGE, CommandError, execute, load
from trainer.version import VERSION


def main(program: str, arguments: Sequence[str]) -> int:
    """Run the command that the arguments name and return its exit status.

    Parameters
    ----------
    program : str
        The words before the command, as the usage shows them: "octweb" or "python -m trainer".
    arguments : sequence of str
        The command and its arguments.

    Raises
    ------
    SystemExit
        If the arguments are wrong (status 2), or for --help (status 0).
    """
    name = next(iter(arguments), "--help")
    if name == "--version":
        print(VERSION)
        return 0
    if name in ("help", "--help", "-h"):
        print(usage(program))
        return 0
    if name not in COMMANDS:
        print(f"Unknown command: '{name}'. The commands are {', '.join(COMMANDS)}.", file=sys.stderr)
        return USAGE
    try:
        return run_command(program, arguments)
    except CommandError as error:
        print(f"CommandError: {error}", file=sys.stderr)
        return error.status


def run_command(program: str, arguments: Sequence[str]) -> int:
    """Run the command that the arguments name and return its exit status; raise CommandError."""
    name, *rest = arguments
    command = load(name)
    parser = ArgumentParser(prog=f"{program} {name}", description=command.HELP)
    command.add_arguments(parser)
    # `prepare_process` disabled garbage collection for the imports; freeze what they created and enable it again
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    return execute(command, vars(parser.parse_args(rest)))


def run_process(program: str, arguments: Sequence[str]) -> NoReturn:
    """Run a command and exit with its status; print a Python traceback on a crash.

    Exit at once if a compiler outlives the run, instead of waiting for it.
    """
    faulthandler.enable()
    status = main(program, arguments)
    exit_beside_compiler(status)
    sys.exit(status)


def exit_beside_compiler(status: int) -> None:
    """Exit at once if an abandoned thread still compiles, since LLVM crashes at a normal exit. Else return."""
    supervised = sys.modules.get("trainer.training.supervised_thread")
    if supervised is not None and supervised.compiler_runs():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def usage(program: str) -> str:
    """Return the list of all commands with their help."""
    lines = [f"    {name:<15}{load(name).HELP}" for name in COMMANDS]
    return "\n".join(["Optimal classification trees", "", f"    {program} COMMAND --help", "", "Commands:", *lines])
