#!/usr/bin/env python
"""The command line of octweb: `manage.py train`, `predict`, `worker`, and Django's own commands."""

import gc
import os
import sys

from octweb.core.command_line import run
from octweb.core.early import speak_if_ended


def main() -> None:
    gc.disable()  # what is loaded stays; `CoreConfig.ready` switches it on again
    speak_if_ended(next(iter(sys.argv[1:]), None))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
    # many small products: threads only cost time; must be said before NumPy is imported
    if sys.argv[1:2] in (["verify"], ["dossier"]):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run(sys.argv)


if __name__ == "__main__":
    main()
