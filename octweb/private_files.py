"""Keeps what octweb stores readable by its owner only."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from trainer.cli import COMMANDS

log = logging.getLogger(__name__)

OTHERS = 0o077  # rights of the group and of everybody else
# Commands that write files for the person who calls them, with the rights that this person wants
FILE_COMMANDS = frozenset(
    [
        *COMMANDS,
        "complete",
        "convert",
        "dossier",
        "edit",
        "evaluate",
        "explain",
        "export",
        "frontier",
        "good-trees",
        "methods",
        "pareto",
        "predict",
        "train",
    ]
)


def protect_new_files() -> None:
    """Let this process and its children create files that only their owner can read."""
    os.umask(OTHERS)


def protect_folder(folder: Path) -> None:
    """Take the rights of others from a folder and everything in it; links are not followed.

    An installation of an older version is repaired so. A folder that all users share, such as /tmp, stays as it is.
    """
    if not folder.is_dir():
        return
    if folder.stat().st_mode & stat.S_ISVTX:
        log.warning("%s is a folder of all users: its content may be readable by others. Use another one.", folder)
        return
    refused = sum(not _take_rights(path) for path in (folder, *folder.rglob("*")))
    if refused:
        log.warning("%s files in %s belong to another user: others may read them.", refused, folder)


def _take_rights(path: Path) -> bool:
    """Return False for a file of another user."""
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)
    except FileNotFoundError:  # removed meanwhile
        return True
    except PermissionError:
        return False
    return True
