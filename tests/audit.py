"""Check pinned packages against the advisory database with pip-audit, as a part of `make lint`.

It fails if a pinned package has a known weakness that is not accepted below. Without a network it reports this and
succeeds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.lock import without_hashes

ROOT = Path(__file__).resolve().parent.parent
FILES = [f"requirements{name}.txt" for name in ("", "-hosts", "-pdf", "-fast", "-databases", "-sso")]
SECONDS = 90
ACCEPTED: dict[str, str] = {}  # advisory → why it does not concern octweb


def advisories(report: dict[str, Any]) -> list[str]:
    """Return one line for each weakness that is not accepted."""
    return [
        f"{package['name']} {package['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'no version yet'}"
        for package in report["dependencies"]
        for found in package.get("vulns", [])
        if not {found["id"], *found.get("aliases", [])} & ACCEPTED.keys()
    ]


def pins(folder: Path) -> Path:
    """Write all pins to one file, without hashes, and return its path."""
    path = folder / "pins.txt"
    path.write_text("\n".join(pin for name in FILES for pin in without_hashes((ROOT / name).read_text())) + "\n")
    return path


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output = folder / "audit.json"
        command = [
            sys.executable, "-m", "pip_audit", "--requirement", str(pins(folder)), "--no-deps", "--disable-pip",
            "--progress-spinner", "off", "--timeout", "5", "--format", "json", "--output", str(output),
        ]  # fmt: skip
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            said = process.stderr
        except subprocess.TimeoutExpired:
            said = f"no answer within {SECONDS} s"
        try:
            report = json.loads(output.read_text())
        except (OSError, ValueError):
            print(f"audit: left out, the advisory database does not answer: {' '.join(said.split())[-200:]}")
            return 0
    found = advisories(report)
    print("\n".join(found) or f"audit: no known weakness in {len(report['dependencies'])} pinned packages")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
