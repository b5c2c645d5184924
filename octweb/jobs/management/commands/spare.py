"""`manage.py spare`: load what a training needs, wait for one line on standard input, and become that command.

Only a worker starts it (`octweb/jobs/spare.py`). The line is `{"arguments": ["train", …], "folder": "…"}`. Without a line, because the
worker has ended, it ends as well.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
from django.core.management import execute_from_command_line
from django.core.management.base import BaseCommand

from octweb.core.orphans import exit_with_parent
from octweb.jobs.spare import LOADED
from trainer.data.reader import load
from trainer.tree.route import apply, flatten

MODULES = {
    "train": "octweb.runs.management.commands.train",
    "edit": "octweb.workbench.management.commands.edit",
}


class Command(BaseCommand):
    help = "A process of a worker that waits for its next job; nothing for people."
    requires_system_checks: ClassVar[tuple[str, ...]] = ()

    def handle(self, *args, **options):
        exit_with_parent()
        for command in LOADED:
            import_module(MODULES[command])
        _load()
        line = sys.stdin.readline()
        if not line:
            return
        order = json.loads(line)
        folder = Path(order["folder"])
        os.chdir(folder)
        for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
            stream.flush()
            with (folder / name).open("wb") as file:
                os.dup2(file.fileno(), stream.fileno())
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), sys.stdin.fileno())
        sys.argv = [sys.argv[0], *order["arguments"]]
        execute_from_command_line(sys.argv)


def _load() -> None:
    """What is loaded only at its first use: numba's parts by a kernel, those of pyarrow by a table."""
    apply(flatten([(None, -1, -1)], ()), np.ones((1, 1)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text("a,class\n1,x\n2,y\n", encoding="utf-8")
        load(path, target="class", ignore=[])
