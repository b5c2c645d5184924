"""Find the folders of octweb, in the project or in an installed wheel."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from platformdirs import user_data_path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent  # project folder, or site-packages in an installation
# a wheel contains templates, static files, checkers and proof-format.md here (see pyproject.toml)
_PACKED = PACKAGE / "_packed"
INSTALLED = _PACKED.is_dir()
FILES = _PACKED if INSTALLED else ROOT
DOCUMENTATION = _PACKED / "site" if INSTALLED else ROOT / "build" / "docs"  # `make docs` writes here
# -P keeps a child process from importing modules from its working folder
COMMAND = [sys.executable, "-P", "-m", "octweb"] if INSTALLED else [sys.executable, str(ROOT / "manage.py")]


def users_data() -> Path:
    """Return the user's data folder for octweb, by the conventions of the operating system."""
    return user_data_path("octweb", appauthor=False)


def data() -> Path:
    """Return the default data folder, used without OCTWEB_DATA_DIR."""
    return users_data() if INSTALLED else ROOT / "var"


def kernels(data_folder: Path) -> Path:
    """Return the default folder of compiled kernels.

    A checkout with its own writable `.venv` stores them there, as `make run` does, for all its data folders.
    """
    environment = ROOT / ".venv"
    is_own = not INSTALLED and Path(sys.prefix) == environment and os.access(environment, os.W_OK)
    return environment / "numba-cache" if is_own else data_folder / "numba"
