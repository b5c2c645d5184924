"""Run `manage.py predict`, and pause after the first piece of rows while the file OCTWEB_TEST_HOLD exists.

So a test with a small file finds the child process in the middle of its work on a machine of any speed.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["DJANGO_SETTINGS_MODULE"] = "octweb.settings"

from django.core.management import execute_from_command_line

from trainer.cli import predict
from trainer.prediction import predict_file

HOLD = Path(os.environ["OCTWEB_TEST_HOLD"])
predict_file.PIECE = 100
predict.REPORT_SECONDS = 0.0
real = predict._reporter


def held_news(stream):
    write = real(stream)

    def write_and_wait(phase: str, done: int, total: int) -> None:
        write(phase, done, total)
        while phase == "predicting" and HOLD.exists():
            time.sleep(0.05)

    return write_and_wait


predict._reporter = held_news
execute_from_command_line(sys.argv)
