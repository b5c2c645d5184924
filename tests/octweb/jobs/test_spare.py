"""The process that a worker keeps ready: it does one job as a process of its own would, and a dead one harms nothing."""

from __future__ import annotations

import json
import os
import signal
import time

import psutil
import pytest
from django.conf import settings

from octweb.jobs import spare
from octweb.jobs.child import environment_of_child

ROWS = "a,class\n" + "\n".join(f"{i},{'yes' if i > 4 else 'no'}" for i in range(10)) + "\n"


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setattr(settings, "SPARE", True)
    spare.keep(environment_of_child())
    yield spare._kept
    spare.give_up()
    assert not spare._kept


def test_a_spare_becomes_the_command_and_another_one_follows(kept, tmp_path):
    (tmp_path / "rows.csv").write_text(ROWS)
    waiting = kept[0]
    process = spare.take(
        [*settings.COMMAND, "train", "rows.csv", "--target=class", "--method=cart", "--json"], tmp_path
    )
    assert process is waiting
    spare.refill(environment_of_child())
    assert kept[0] is not waiting
    assert process.wait(120) == 0, (tmp_path / "stderr").read_text()
    said = json.loads((tmp_path / "stdout").read_text().splitlines()[-1])
    assert (said["method"], said["correct"], said["n"]) == ("cart", 10, 10)


def test_a_bad_call_ends_as_in_a_process_of_its_own(kept, tmp_path):
    process = spare.take([*settings.COMMAND, "train", "none.csv", "--target=class", "--method=cart"], tmp_path)
    assert process.wait(120) == 1
    assert "none.csv" in (tmp_path / "stderr").read_text()
    assert (tmp_path / "stdout").read_text() == ""


def test_other_commands_and_dead_spares_get_a_new_process(kept, tmp_path):
    assert spare.take([*settings.COMMAND, "verify", "model.json"], tmp_path) is None
    os.killpg(kept[0].pid, signal.SIGKILL)
    kept[0].wait(60)
    assert spare.take([*settings.COMMAND, "train", "rows.csv"], tmp_path) is None
    assert spare.take([*settings.COMMAND, "train", "rows.csv"], tmp_path) is None  # there is none now
    spare.refill(environment_of_child())
    assert kept[0].poll() is None


def test_without_a_job_it_ends_with_its_worker(kept):
    waiting = psutil.Process(kept[0].pid)
    kept[0].stdin.close()  # as when the worker has ended
    kept[0].wait(120)
    until = time.monotonic() + 60
    while waiting.is_running() and time.monotonic() < until:
        time.sleep(0.05)
    assert not waiting.is_running()


def test_a_process_that_keeps_none_starts_none(tmp_path):
    spare.refill(environment_of_child())
    assert not spare._kept
    assert spare.take([*settings.COMMAND, "train", "rows.csv"], tmp_path) is None
