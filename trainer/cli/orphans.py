"""Drop the privileges of a child process, and end it when its worker ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import threading
import time

FAILED = 1
PR_SET_NO_NEW_PRIVS = 38


def exit_with_parent() -> None:
    """Drop privileges, and exit when the process with id OCTWEB_PARENT_PID ends; do nothing if the variable
    is unset.
    """
    expected = os.environ.get("OCTWEB_PARENT_PID")
    if not expected:
        return
    give_up_rights()

    def watch() -> None:
        while os.getppid() == int(expected):
            time.sleep(0.5)
        os._exit(FAILED)

    threading.Thread(target=watch, name="orphan", daemon=True).start()


def give_up_rights() -> None:
    """Disable core dumps and keep programs that start here from gaining privileges."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would leave rows of the data on disk
    # Linux only: setuid programs that start from here get no additional rights
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
