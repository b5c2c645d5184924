"""Make the pictures of pages: `python -m docs.pictures [NAME ...]` writes those that docs/pictures.md shows, all or the named ones.

The browser tests walk through the application on tables that they make themselves and leave a picture of every page; the pages
that no test opens are in `tests/browser/pictured.py`. What docs/pictures.md does not show is thrown away.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
WALKS = ("test_walk.py", "test_workspace.py", "test_decide.py", "pictured.py")
SHOWN = re.compile(r"\(pictures/([a-z0-9-]+)\.webp\)")


def shown() -> list[str]:
    """The names of the pictures on the page, in their order."""
    return SHOWN.findall((ROOT / "docs" / "pictures.md").read_text(encoding="utf-8"))


def walk(folder: Path) -> None:
    """Run the walks with `folder` for their pictures; without the shared data sets, so that they take scikit-learn's."""
    files = [str(ROOT / "tests" / "browser" / name) for name in WALKS]
    environment = os.environ | {"OCTWEB_PICTURES": str(folder), "OCTWEB_BENCH_DATA": str(folder / "none")}
    command = [sys.executable, "-m", "pytest", "-q", *files]
    subprocess.run(command, env=environment, cwd=ROOT, check=True)  # noqa: S603 - our own command


def main(names: list[str]) -> None:
    wanted = names or shown()
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        walk(made)
        missing = [name for name in wanted if not (made / f"{name}.webp").exists()]
        if missing:
            sys.exit(f"No walk made {', '.join(missing)}.")
        for name in wanted:
            shutil.copy(made / f"{name}.webp", FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
