"""Run manage.py commands from any folder: `octweb COMMAND` or `python -m octweb COMMAND`.

Data are stored in the user's data folder, or in the folder that `--data FOLDER` or OCTWEB_DATA_DIR names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from octweb.core.command_line import run
from octweb.places import users_data
from trainer.cli.startup import prepare_process

USAGE = """octweb: optimal classification trees

    octweb serve                       pages and REST at http://127.0.0.1:8000/, with one training worker
    octweb train DATA.csv --target COLUMN --method exact
    octweb COMMAND --help              the options of a command

Data are stored in {folder} (--data FOLDER or OCTWEB_DATA_DIR: another one).

Commands:
{commands}

Commands of Django, such as migrate, work as well: octweb help --commands lists all.
"""


def main() -> None:
    """Run the command in the arguments of this process."""
    try:
        arguments, folder = without_data(sys.argv[1:])
    except ValueError as error:
        raise SystemExit(f"octweb: {error}") from None
    prepare(folder)
    prepare_process(next(iter(arguments), None))
    if arguments[:1] == ["--version"]:
        from trainer.version import VERSION

        print(VERSION)
    elif arguments in ([], ["help"], ["--help"], ["-h"]):
        print(usage())
    else:
        run(["octweb", *arguments])


OWN_DATA = ("convert", "export")  # these commands have their own option `--data`, which names a file of rows


def without_data(arguments: list[str]) -> tuple[list[str], str | None]:
    """Return the arguments without `--data FOLDER`, and the folder or None.

    Arguments after `--`, or after a command with its own `--data`, stay unchanged. Raises ValueError if the folder's
    name is missing or names a file.
    """
    rest: list[str] = []
    folder: str | None = None
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--" or (argument in OWN_DATA and not rest):
            rest.append(argument)
            break
        if argument != "--data" and not argument.startswith("--data="):
            rest.append(argument)
            continue
        folder = argument.partition("=")[2] if "=" in argument else next(remaining, "")
        if not folder or folder == "--":
            raise ValueError("--data needs the name of a folder: octweb --data FOLDER serve")
    if folder is not None and Path(folder).expanduser().exists() and not Path(folder).expanduser().is_dir():
        raise ValueError(f"--data names the folder of octweb's own data, and '{folder}' is a file")
    return [*rest, *remaining], folder


def prepare(folder: str | None) -> None:
    """Set the settings module and the data folder in the environment, for this process and its children."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
    if folder is not None:
        os.environ["OCTWEB_DATA_DIR"] = str(Path(folder).expanduser().resolve())
    data = os.environ.setdefault("OCTWEB_DATA_DIR", str(users_data()))
    # site-packages may be read-only, so numba must not write its cache there
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(data) / "numba"))


def usage() -> str:
    """Return the usage text: commands with their help, and the data folder."""
    import django
    from django.conf import settings
    from django.core.management import get_commands, load_command_class

    django.setup()
    commands = sorted((name, app) for name, app in get_commands().items() if app.startswith("octweb."))
    lines = [f"    {name:<15}{load_command_class(app, name).help}" for name, app in commands]
    return USAGE.format(folder=settings.DATA_DIR, commands="\n".join(lines))


if __name__ == "__main__":
    main()
