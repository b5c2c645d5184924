"""Fork server of the tests. It works like `manage.py fork_server`, but also runs scripts."""

import os
import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["DJANGO_SETTINGS_MODULE"] = "octweb.settings"

import django
from django.core.management import execute_from_command_line

django.setup()

from octweb.jobs.management.commands.fork_server import load_and_serve, set_up_process
from trainer.cli.orphans import exit_with_parent

if (order := load_and_serve()) is not None:
    set_up_process(order)
    exit_with_parent()  # otherwise a worker would look for jobs for ever after the tests were killed
    if order["arguments"][0].endswith(".py"):
        sys.argv = order["arguments"]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        execute_from_command_line(sys.argv)
