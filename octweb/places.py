"""Where the parts of octweb are: in the folder of the project, or, when it was installed as a wheel, beside this module."""

from __future__ import annotations

import sys
from pathlib import Path

from platformdirs import user_data_path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent  # the project's folder, or site-packages
_PACKED = (
    PACKAGE / "_packed"
)  # a wheel carries templates, static files, checkers and the format of proofs there (pyproject.toml)
INSTALLED = _PACKED.is_dir()
FILES = _PACKED if INSTALLED else ROOT
DOCUMENTATION = _PACKED / "site" if INSTALLED else ROOT / "build" / "docs"  # what `make docs` writes
# -P: a file in the working folder of a child must never be imported in place of a module
COMMAND = [sys.executable, "-P", "-m", "octweb"] if INSTALLED else [sys.executable, str(ROOT / "manage.py")]


def users_data() -> Path:
    """The folder of this user for data of octweb, as the operating system has it."""
    return user_data_path("octweb", appauthor=False)


def data() -> Path:
    """The data folder where OCTWEB_DATA_DIR does not name one."""
    return users_data() if INSTALLED else ROOT / "var"
