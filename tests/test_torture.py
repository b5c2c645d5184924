"""A short torture campaign (`make torture`): real processes are killed and flooded, and no data is lost.

Malformed requests, SIGTERM, bombs, bodies, uploads, a locked database and HTTP manners have separate tests in
`tests/octweb`. The long campaign includes them, and also the moved clock and the mixed load, which take minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
def test_a_short_campaign():
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_URL", "OCTWEB_"))
    }
    command = [sys.executable, "-m", "tests.torture", "--runs=1", "--seconds=2"]
    process = subprocess.run(
        [
            *command,
            "--only=kills,passing,writers,disk,master,full",
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=6000,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.count("| ") >= 6
