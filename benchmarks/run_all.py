"""Run every benchmark in this folder without arguments, one after the other.

`python benchmarks/NAME.py -h` shows the options of one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    failed = []
    for path in sorted(FOLDER.glob("*.py")):
        if path.name in {Path(__file__).name, "common.py"}:
            continue
        print(f"== {path.name}", flush=True)
        if subprocess.run([sys.executable, str(path)], cwd=FOLDER.parent).returncode:
            failed.append(path.name)
    if failed:
        print("failed: " + ", ".join(failed))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
