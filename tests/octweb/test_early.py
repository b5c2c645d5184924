"""A command that is terminated while it loads reports it and ends by the signal."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys

import pytest
from django.apps import apps

from tests.conftest import ROOT
from trainer.cli.startup import ENDED_WHILE_LOADING as WORDS

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(("command", "words"), [("good-trees", WORDS), ("train", WORDS), ("migrate", b"")])
def test_a_signal_while_a_command_loads(number, command, words):
    code = f"import os, trainer.cli.startup as e; e.prepare_process({command!r}); os.kill(os.getpid(), {int(number)})"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert process.stdout == b""
    if words:
        assert (process.returncode, process.stderr) == (-number, words)
    else:
        assert WORDS not in process.stderr


def test_garbage_collection_is_enabled_when_ready():
    gc.disable()
    try:
        apps.get_app_config("core").ready()
        assert gc.isenabled()
    finally:
        gc.enable()
