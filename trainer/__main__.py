"""`python -m trainer COMMAND`: the commands that need neither a database nor Django."""

import sys

from trainer.cli.dispatch import run_process
from trainer.cli.startup import prepare_process


def main() -> None:
    """Run the command that the arguments of this process name."""
    prepare_process(next(iter(sys.argv[1:]), None))
    run_process("python -m trainer", sys.argv[1:])


if __name__ == "__main__":
    main()
