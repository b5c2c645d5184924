"""Messages of `python -m tests.container` if an engine is missing, fails or builds, with a fake engine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

ENGINE = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$1 $2" in
  "info "*) {info} ;;
  "image inspect") case "$3" in --format) echo 1500000000 ;; *) exit 1 ;; esac ;;
  "pull "*) {pull} ;;
  "build "*) {build} ;;
  "run "*) case "$*" in
      *"pip download"*) {index} ;;
      *"id -u") echo 10001 ;;
      *"manage.py train"*) echo '{{"status": "optimal"}}' ;;
      *--detach*) echo abc ;;
    esac ;;
esac
"""
WORKS = {"info": ":", "pull": ":", "build": ":", "index": ":"}


@pytest.fixture
def said(tmp_path):
    """Provide a function that returns what the run prints and its status, if the engine's commands behave as given."""

    def run(wanted="0", **changes):
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "sh").symlink_to("/bin/sh")
        if changes.pop("engine", True):
            (folder / "docker").write_text(ENGINE.format(**WORKS | changes))
            (folder / "docker").chmod(0o755)
        environment = os.environ | {"PATH": str(folder), "CALLS": str(tmp_path / "calls"), "OCTWEB_CONTAINER": wanted}
        command = [sys.executable, "-m", "tests.container"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        return done.stdout + done.stderr, done.returncode

    return run


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine": False}, "docker is not installed; podman is not installed"),
        ({"info": "echo 'Is the daemon running?' >&2; exit 1"}, "docker does not answer: Is the daemon running?"),
        ({"pull": "echo 'no route to host' >&2; exit 1"}, "cannot have python:3.11: no route to host"),
        ({"index": "echo 'no such index' >&2; exit 1"}, "reach no index of packages: no such index"),
    ],
)
def test_container_that_cannot_be_built_is_skipped_with_reason(said, changes, words):
    text, status = said(**changes, wanted="1" if "index" in changes else "0")
    assert text.startswith("The image was ")
    assert words in text
    assert status == ("index" in changes)


def test_an_image_that_cannot_be_built_fails_the_run(said):
    text, status = said(build="echo 'no matching distribution' >&2; exit 1")
    assert (status, "The image is broken" in text, "no matching distribution" in text) == (1, True, True)


def test_built_image_is_run_unprivileged_and_removed(said, tmp_path):
    text, status = said()
    assert (text, status) == (
        "The image was built by docker and answers as a user without rights: 1,500 MB with its base.\n",
        0,
    )
    calls = (tmp_path / "calls").read_text().splitlines()
    runs = [line for line in calls if line.startswith("run ") and "pip download" not in line]
    assert len(runs) == 3
    assert all("--read-only" in line and "--cap-drop ALL" in line for line in runs)
    assert calls[-2].startswith("rm --force --volumes abc") or calls[-3].startswith("rm --force --volumes abc")
    assert calls[-1].startswith("image rm --force octweb-test-")
