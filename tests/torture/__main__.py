"""Torture campaigns against real processes: kills, floods, a locked database, a full disk, a moved clock.

    python -m tests.torture [--runs 100] [--requests 10000] [--seconds 900] [--minutes 60] [--only kills,malformed]

Everything happens in a folder of its own, which is removed unless something broke. The database is SQLite, or the one that
DATABASE_URL names (it should be empty).
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.torture.editing import editing
from tests.torture.faults import clock_moved, database_locked, disk_full, sigterm, writers
from tests.torture.floods import malformed, memory
from tests.torture.kills import kills, revive
from tests.torture.manners import bodies, disk_of_the_server_full, http_manners, master
from tests.torture.mixed import mixed
from tests.torture.passing import passing
from tests.torture.site import Broken, Site
from tests.torture.uploads import bombs, storing, uploads

CAMPAIGNS: dict[str, Callable[..., str]] = {
    "kills": kills, "passing": passing, "editing": editing, "malformed": malformed, "writers": writers, "locked": database_locked, "clock": clock_moved,
    "disk": disk_full, "sigterm": sigterm, "memory": memory, "bombs": bombs, "uploads": uploads, "storing": storing,
    "http": http_manners, "bodies": bodies, "master": master, "full": disk_of_the_server_full, "mixed": mixed,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=900, help="bound of each campaign")
    parser.add_argument("--minutes", type=float, help="of the campaign `mixed`; else two, or the bound if that is less")
    parser.add_argument("--users", type=int, default=6, help="of the campaign `mixed`")
    parser.add_argument("--only", default=",".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="octweb-torture-"))
    site = Site(folder)
    broken = 0
    try:
        site.prepare()
        print("| campaign | result |\n|---|---|", flush=True)
        for name in arguments.only.split(","):
            amount = arguments.requests if name == "malformed" else arguments.runs
            seconds = arguments.seconds
            if name == "mixed":
                seconds = 60 * arguments.minutes if arguments.minutes else min(120.0, seconds)
            try:
                options = {"users": arguments.users} if name == "mixed" else {}
                result = CAMPAIGNS[name](site, random.Random(f"{arguments.seed} {name}"), amount, seconds, **options)
            except Broken as error:
                broken = broken + 1
                result = f"**broken**: {error}"
                revive(site)
            print(f"| {name} | {result} |", flush=True)
    finally:
        site.stop()
        if broken:
            print(f"the log is {folder / 'log'}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
