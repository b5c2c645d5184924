"""Only the owner can read files in the data folder."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from octweb.private_files import FILE_COMMANDS, protect_folder
from tests.conftest import ROOT

START_SECONDS = 300


def readable_by_others(folder: Path) -> list[str]:
    """Return paths in the folder, itself included, on which group or others have any right."""
    paths = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    return [str(path) for path in paths if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not start")


@pytest.mark.slow
def test_data_folder_of_started_server_is_private(tmp_path):
    """A folder of an older version is repaired, and what the server and its worker write is private."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "octweb.sqlite3").touch(mode=0o644)
    (folder / "files").mkdir(mode=0o755)
    (folder / "files" / "old.parquet").touch(mode=0o644)
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "serve", "--port", str(port)],
        env=os.environ | {"OCTWEB_DATA_DIR": str(folder), "OCTWEB_WARM": "0"},
        umask=0o022,
    )
    try:
        wait_until_ready(port, process)
        assert (folder / "octweb.sqlite3-wal").exists()
        assert any((folder / "files" / "datasets").rglob("*.parquet"))
        assert readable_by_others(folder) == []
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_rights_of_others_are_taken_without_following_links(tmp_path):
    outside = tmp_path / "outside"
    outside.touch(mode=0o644)
    outside.chmod(0o644)
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "link").symlink_to(outside)
    (folder / "file").touch(mode=0o666)
    protect_folder(folder)
    assert readable_by_others(folder) == []
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_folder_of_all_users_keeps_its_rights(tmp_path):
    tmp_path.chmod(0o1777)
    protect_folder(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_every_file_command_exists():
    from django.core.management import get_commands

    assert set(get_commands()) >= FILE_COMMANDS
