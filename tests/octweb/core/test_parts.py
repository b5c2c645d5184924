"""Processes of `make run`: restarted after a kill up to a limit, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from django.core.management.base import CommandError

from octweb.core.management.commands import serve
from octweb.core.management.commands.serve import Command, _warming
from octweb.core.parts import MOST_STARTS, START_WINDOW, ServicePart, end
from tests.conftest import ROOT


def sleeper(name: str = "worker 1") -> ServicePart:
    part = ServicePart(name=name, command=["sleep", "600"], environment=dict(os.environ))
    part.start()
    return part


def test_killed_part_is_restarted_until_limit(capsys):
    part = sleeper()
    command = Command()
    try:
        for _ in range(MOST_STARTS - 1):
            before = part.process
            before.kill()
            before.wait()
            command._look_after(part)
            assert part.process.pid != before.pid
            assert part.process.poll() is None
        assert capsys.readouterr().err.count("The worker 1 ended unexpectedly (status -9); it is restarted.") == 4
        part.process.kill()
        part.process.wait()
        with pytest.raises(CommandError, match="The worker 1 ended 5 times within 10 minutes"):
            command._look_after(part)
    finally:
        end([part.process])


def test_old_restarts_are_not_counted():
    part = ServicePart(name="x", command=[], environment={})
    assert all(part.may_start(i * START_WINDOW / 3) for i in range(20))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_parts_end_when_their_parent_is_killed():
    code = (
        "import os, time, django; django.setup()\n"
        "from octweb.core.parts import ServicePart\n"
        "part = ServicePart(name='x', command=['sleep', '600'], environment=dict(os.environ)); part.start()\n"
        "print(part.process.pid, flush=True); time.sleep(600)"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "octweb.settings"}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + 300
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.05)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(("said", "parts"), [(None, 2), ("1", 2), ("0", 0)])
def test_kernels_are_compiled_unless_disabled(monkeypatch, said, parts):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.delenv("OCTWEB_WARM", raising=False)
    if said is not None:
        monkeypatch.setenv("OCTWEB_WARM", said)
    found = _warming({"OCTWEB_WARM": "0"})
    assert len(found) == parts
    # only the first process compiles the kernels of predictions
    assert [part.environment["OCTWEB_WARM"] for part in found] == ["1", "0"][:parts]
    assert ["backwards=True" in part.command[-1] for part in found] == [False, True][:parts]


def test_one_processor_gets_one_warming_process(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setenv("OCTWEB_WARM", "1")
    assert len(_warming({})) == 1


def test_kernels_are_compiled_while_database_is_prepared(monkeypatch, settings, tmp_path):
    """They start first, and end with an error of the preparation."""
    steps = []
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(serve, "_free_port", lambda *arguments: None)
    monkeypatch.setattr(serve, "protect_stored", lambda: None)
    monkeypatch.setattr(ServicePart, "start", lambda part, quiet: steps.append(part.name))
    monkeypatch.setattr(ServicePart, "process", None, raising=False)
    monkeypatch.setattr(
        serve, "_warming", lambda environment: [ServicePart(name="warming", command=[], environment={})]
    )
    monkeypatch.setattr(serve, "end", lambda processes: steps.append("end"))

    def fail(*arguments, **options):
        steps.append("migrate")
        raise RuntimeError("no database")

    monkeypatch.setattr(serve, "call_command", fail)
    with pytest.raises(RuntimeError, match="no database"):
        Command().handle(host="127.0.0.1", port=1, workers=1, threads=1, prepare_only=False)
    assert steps == ["warming", "migrate", "end"]
