"""The fork server of a worker: a fork behaves like a new process, and a dead server does no harm."""

from __future__ import annotations

import json
import os
import signal
import time

import psutil
import pytest
from django.conf import settings

from octweb.jobs.child import environment_of_child
from octweb.jobs.fork_server import LOST, ForkServer, fork, give_up, keep, living

ROWS = "a,class\n" + "\n".join(f"{i},{'yes' if i > 4 else 'no'}" for i in range(10)) + "\n"
LONG = "a,b,c,d,class\n" + "\n".join(
    f"{i * 7 % 101},{i * 13 % 97},{i * 3 % 89},{i * i % 83},{i * i * i % 7 % 2}" for i in range(400)
)
TRAIN = [*settings.COMMAND, "train", "rows.csv", "--target=class"]


@pytest.fixture(scope="module")
def environment():
    return environment_of_child()


@pytest.fixture(scope="module")
def server(environment):
    server = ForkServer(environment)
    yield server
    server.end()


def gone(process, seconds=60.0):
    until = time.monotonic() + seconds
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.02)
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def searching(folder, process):
    """Wait until the training has a tree. Before that there is none to keep."""
    until = time.monotonic() + 120
    progress = folder / "progress.jsonl"
    while not (progress.exists() and '"incumbent": 0.' in progress.read_text()) and time.monotonic() < until:
        assert process.poll() is None, (folder / "stderr").read_text()
        time.sleep(0.02)


def pipes(pid):
    """Return the pipes and sockets that a process has open."""
    folder = f"/proc/{pid}/fd"
    opened = {os.path.realpath(f"{folder}/{fd}").rpartition("/")[2] for fd in os.listdir(folder)}
    return {name for name in opened if name.startswith(("pipe:", "socket:"))}


def long_training(server, environment, folder):
    folder.mkdir(exist_ok=True)
    (folder / "rows.csv").write_text(LONG)
    arguments = ["--method=cut-h", "--depth=4", "--time-limit=600", "--progress=progress.jsonl", "--json"]
    return server.start([*TRAIN, *arguments], folder, environment)


@pytest.mark.slow
def test_fork_runs_command_without_affecting_the_next(server, environment, tmp_path):
    for folder, method in ((tmp_path / "one", "cart"), (tmp_path / "two", "bivariate")):
        folder.mkdir()
        (folder / "rows.csv").write_text(ROWS)
        given = environment | {"SOMETHING": method}
        process = server.start([*TRAIN, f"--method={method}", "--json"], folder, given)
        assert process.wait(120) == 0, (folder / "stderr").read_text()
        document = json.loads((folder / "stdout").read_text().splitlines()[-1])
        assert (document["method"], document["correct"], document["n"]) == (method, 10, 10)
    assert server.alive


def test_invalid_call_fails_as_in_a_separate_process(server, environment, tmp_path):
    process = server.start([*TRAIN, "--method=cart"], tmp_path, environment)
    assert process.wait(120) == 1
    assert "rows.csv" in (tmp_path / "stderr").read_text()
    assert (tmp_path / "stdout").read_text() == ""


def test_signals_reach_one_process_group_and_exit_is_reported(server, environment, tmp_path):
    killed, ended = (long_training(server, environment, tmp_path / name) for name in ("killed", "ended"))
    assert psutil.Process(killed.pid).ppid() == server.process.pid
    assert os.getpgid(killed.pid) == killed.pid
    searching(tmp_path / "killed", killed)
    searching(tmp_path / "ended", ended)
    assert not pipes(ended.pid) & (pipes(server.process.pid) | pipes(os.getpid()))
    os.killpg(killed.pid, signal.SIGKILL)
    assert killed.wait(60) == -signal.SIGKILL
    assert ended.poll() is None
    os.killpg(ended.pid, signal.SIGTERM)  # at SIGTERM a training keeps its best tree
    assert ended.wait(120) == 0
    assert json.loads((tmp_path / "ended" / "stdout").read_text().splitlines()[-1])["correct"] > 200


@pytest.mark.slow
def test_children_end_with_a_server_that_is_killed(environment, tmp_path):
    server = ForkServer(environment)
    process = long_training(server, environment, tmp_path / "job")
    child = psutil.Process(process.pid)
    searching(tmp_path / "job", process)
    os.killpg(server.process.pid, signal.SIGKILL)
    assert process.wait(60) == LOST
    assert gone(child)
    assert server.start([*TRAIN, "--method=cart"], tmp_path, environment) is None


def test_other_commands_or_settings_get_separate_processes(server, environment):
    assert server.takes([*TRAIN, "--method=cart"], environment | {"SOMETHING": "else"})
    assert not server.takes([*TRAIN, "--method=cart"], environment | {"OCTWEB_MAX_ROWS": "7"})
    assert not server.takes([*settings.COMMAND, "migrate"], environment)
    assert not server.takes(["python", "other.py", "train"], environment)
    assert not server.takes(settings.COMMAND, environment)


@pytest.mark.slow
def test_dead_worker_is_replaced(environment, tmp_path):
    (tmp_path / "rows.csv").write_text(ROWS)
    before = living(environment)
    os.killpg(before.process.pid, signal.SIGKILL)
    before.process.wait(60)
    process = fork([*TRAIN, "--method=cart", "--json"], tmp_path, environment)
    assert process.server is not before
    assert process.wait(120) == 0


def test_process_that_gave_up_starts_no_fork_server(environment, tmp_path):
    give_up()
    try:
        assert fork([*TRAIN, "--method=cart"], tmp_path, environment) is None
        assert living(environment) is None
    finally:
        keep()


def test_fork_server_ends_with_its_worker(server):
    """This is the last test, because it ends the process that the others share."""
    assert server.alive
    server.process.stdin.close()  # the same happens when the worker ends
    assert server.process.wait(120) == 0
