#!/usr/bin/env python
"""The command line of octweb: `manage.py train`, `predict`, `worker`, and Django's own commands."""

import os
import sys

from octweb.core.command_line import run
from trainer.cli.startup import prepare_process


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
    prepare_process(next(iter(sys.argv[1:]), None))
    run(sys.argv)


if __name__ == "__main__":
    main()
