"""A child process whose worker was killed ends by itself: its work is taken up again by another worker."""

from __future__ import annotations

import os
import threading
import time

FAILED = 1


def exit_with_parent() -> None:
    """Watch the process that OCTWEB_PARENT_PID names, if it is set, and end with it."""
    expected = os.environ.get("OCTWEB_PARENT_PID")
    if not expected:
        return

    def watch() -> None:
        while os.getppid() == int(expected):
            time.sleep(0.5)
        os._exit(FAILED)

    threading.Thread(target=watch, name="orphan", daemon=True).start()
