"""Paths of octweb in the project folder or an installed wheel."""

from __future__ import annotations

import sys
from pathlib import Path

from platformdirs import user_data_path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent  # the project's folder, or site-packages
_PACKED = PACKAGE / "_packed"  # in a wheel: templates, static files, checkers, proof-format.md (see pyproject.toml)
INSTALLED = _PACKED.is_dir()
FILES = _PACKED if INSTALLED else ROOT
DOCUMENTATION = _PACKED / "site" if INSTALLED else ROOT / "build" / "docs"  # output of `make docs`
# -P: never import modules from the working folder of a child process
COMMAND = [sys.executable, "-P", "-m", "octweb"] if INSTALLED else [sys.executable, str(ROOT / "manage.py")]


def users_data() -> Path:
    """Return the user's data folder for octweb, by the conventions of the operating system."""
    return user_data_path("octweb", appauthor=False)


def data() -> Path:
    """Return the default data folder, used without OCTWEB_DATA_DIR."""
    return users_data() if INSTALLED else ROOT / "var"
