"""Write requirements*.txt from requirements*.in: exact versions, with the hashes of all their files.

    python -m tests.lock [--keep]

`make lock` takes the newest versions for the Python that runs this. With --keep only new packages are resolved, and
all others keep their versions. No address of an index is written, so any index or mirror that has the same files can be used.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Made by `make lock` from {name}.in; do not edit.\n"
# a pin and the lines of its hashes
PIN = re.compile(r"^[a-zA-Z0-9][^\n]*==(?:[^\n]*\\\n)*[^\n]*\n", re.MULTILINE)


def pins_of(text: str) -> list[str]:
    """Return each pin of a requirements file with its hashes."""
    return PIN.findall(text)


def without_hashes(text: str) -> list[str]:
    """Return each pin of a requirements file as `name==version`."""
    return [pin.split()[0] for pin in pins_of(text)]


def lock(name: str, below: set[str], *, keep: bool) -> set[str]:
    """Write the pins of {name}.in, except those in `below`, and return all of them."""
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old.txt"
        kept = sorted({pin for path in ROOT.glob(f"{name}.txt") for pin in without_hashes(path.read_text())})
        old.write_text("\n".join(kept) + "\n")
        command = [
            str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--generate-hashes", "--no-annotate", "--no-header",
            "--no-emit-index-url", "--no-emit-find-links", "--python", sys.executable, f"{name}.in",
            *(["--constraint", str(old)] if keep else []),
        ]  # fmt: skip
        resolved = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    lines = (ROOT / f"{name}.in").read_text().splitlines()
    included = [f"{line}\n" for line in lines if re.match(r"-r .*\.txt$", line)]
    pins = set(pins_of(resolved))
    own = sorted(pins - below)
    (ROOT / f"{name}.txt").write_text(HEADER.format(name=name) + "".join([*included, *own]))
    return pins


def main(keep: bool) -> None:
    """Write all files, each after those that it includes."""

    def pins(name: str, below: set[str]) -> set[str]:
        return lock(name, below, keep=keep)

    runtime = pins("requirements", set())
    hosts = pins("requirements-hosts", runtime)
    pdf = pins("requirements-pdf", runtime)
    fast = pins("requirements-fast", set())
    databases = pins("requirements-databases", runtime)
    sso = pins("requirements-sso", runtime)
    test = pins("requirements-test", hosts | pdf | fast | databases | sso)
    pins("requirements-bench", test)
    pins("requirements-clients", set())
    pins("requirements-docs", set())


if __name__ == "__main__":
    main(keep="--keep" in sys.argv[1:])
