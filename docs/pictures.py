"""Make the pictures of pages for docs/pictures.md.

`python -m docs.pictures [NAME ...]` writes the pictures that this page shows: all, or the named ones. The
browser tests open the pages of the application on tables of their own, and save a picture of each.
`tests/browser/pictured.py` opens the pages that no test opens.
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


def picture_names() -> list[str]:
    """Return the names of the pictures on the page, in the order of the page."""
    return SHOWN.findall((ROOT / "docs" / "pictures.md").read_text(encoding="utf-8"))


def walk(folder: Path) -> None:
    """Run the browser tests on data sets of scikit-learn; they write pictures into `folder`."""
    files = [str(ROOT / "tests" / "browser" / name) for name in WALKS]
    environment = os.environ | {"OCTWEB_PICTURES": str(folder), "OCTWEB_BENCH_DATA": str(folder / "none")}
    command = [sys.executable, "-m", "pytest", "-q", *files]
    subprocess.run(command, env=environment, cwd=ROOT, check=True)  # noqa: S603 - our own command


def main(names: list[str]) -> None:
    names = names or picture_names()
    with tempfile.TemporaryDirectory() as scratch:
        new_pictures = Path(scratch)
        walk(new_pictures)
        missing = [name for name in names if not (new_pictures / f"{name}.webp").exists()]
        if missing:
            sys.exit(f"No walk made {', '.join(missing)}.")
        for name in names:
            shutil.copy(new_pictures / f"{name}.webp", FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
