"""Write requirements*.txt with exact versions, each from requirements*.in in a new environment."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Made by `make lock` from {name}.in; do not edit.\n"


def lock(name: str, below: set[str]) -> set[str]:
    """Install {name}.in in a new environment, and write the pins of its packages except those in `below`.

    Return all pins.
    """
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "-r", f"{name}.in"], check=True, cwd=ROOT)
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    pins = {line for line in frozen.splitlines() if "==" in line}
    lines = [line for line in (ROOT / f"{name}.in").read_text().splitlines() if line.startswith("-r ")]
    lines += sorted(pins - below, key=str.lower)
    (ROOT / f"{name}.txt").write_text(HEADER.format(name=name) + "\n".join(lines) + "\n")
    return pins


if __name__ == "__main__":
    runtime = lock("requirements", set())
    hosts = lock("requirements-hosts", runtime)
    pdf = lock("requirements-pdf", runtime)
    fast = lock("requirements-fast", set())
    databases = lock("requirements-databases", runtime)
    sso = lock("requirements-sso", runtime)
    test = lock("requirements-test", hosts | pdf | fast | databases | sso)
    lock("requirements-bench", test)
    lock("requirements-clients", set())
    lock("requirements-docs", set())
