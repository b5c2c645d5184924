"""Read the lines and the header of a proof file.

See docs/proof-format.md, "The file" and "Frontiers".
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from trainer.check.proof.subject import BadProof, require

# format version of proofs that give errors for each number of leaves
FORMAT = "octweb-proof"
OF_GOALS = 4
OF_ANY_HEIGHT = 9  # format version of steps that may hold for trees of any height
OF_PRICES = 10  # format version of steps whose rows pay for columns
OF_LINES = 11  # format version of bounds on both kinds of errors
OF_COUNTS = 12  # format version of steps from counts in place of rows
OF_EMPTY_CELLS = 8  # format version for rows with empty cells; the member 'like' then names the version of the steps
MOST_LINE = 1 << 20  # characters of a line
MOST_STEPS = 5_000_000
MOST_GOALS = 1 << 12
MOST_COST = 1 << 61
Record = dict[str, Any]
Lines = Iterator[tuple[int, Record]]


class ProvedBounds(NamedTuple):
    """The bound that a proof proves: errors + penalty * leaves is at least `cost` for each tree of the space, in rows."""

    cost: Fraction
    steps: int
    # lower bound for trees with at most 1, 2, … leaves; the last entry holds for all larger trees, too
    errors: tuple[int, ...] = ()
    # for F1 and MCC, lines a fn + b fp >= least for trees with at most so many leaves (0: any), as (leaves, a, b, least)
    lines: tuple[tuple[int, int, int, Fraction], ...] = ()


def read_proof(path: str | Path) -> Lines:
    """Yield the lines of a proof with their numbers, from 0 for the header; raise BadProof if one is not a JSON object."""
    with open(path, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if packed else raw
        try:
            for number, line in enumerate(iter(lambda: stream.readline(MOST_LINE + 1), b"")):
                require(
                    len(line) <= MOST_LINE and number <= MOST_STEPS,
                    f"line {number} is over {MOST_LINE} characters, or beyond the last allowed line, {MOST_STEPS}",
                )
                record = json.loads(line)
                require(isinstance(record, dict), f"line {number} is not a JSON object")
                yield number, record
        except (ValueError, EOFError, OSError, RecursionError, zlib.error) as error:
            raise BadProof(f"the file cannot be read: {str(error)[:200]}") from error


def read_header(
    lines: Lines, versions: Sequence[int], kind: str, digest: str, most: int, *, empty: bool
) -> tuple[Record, list[int]]:
    """Read the header of a proof of these versions, and its goals.

    `goals` are the errors of trees with at most 1, 2, … leaves, no more than `most`; the list is empty if the proof has a single goal.
    If some row has an `empty` cell, the file has version 8 and names the version that it follows otherwise.
    Raises BadProof for another header, or if the rows do not have this `digest`.
    """
    _, header = next(lines, (0, Record()))
    version = header.get("version")
    goals = numbers(header, "goals")
    require(header.get("format") == FORMAT, f"the format of the file is not '{FORMAT}'")
    require(
        header.get("rows") == digest, "the proof was made for another table: its fingerprint is not that of these rows"
    )
    if empty:
        require(version == OF_EMPTY_CELLS, "some row has an empty cell, which needs a proof of version 8")
        version = header.get("like")
    require(type(version) is int and version in versions, f"the file is not a proof {kind}")
    fits = goals is None or (whole_number(header, "scale", 1) == 1 and 1 <= len(goals) <= min(most, MOST_GOALS))
    require(
        fits and (version == OF_GOALS) == (goals is not None),
        "goals go with version 4 and scale 1, and there is at least one, and at most one for each number of leaves",
    )
    return header, list(goals or ())


def check_lines(lines: Lines, add: Callable[[int, Record], None]) -> int:
    """Check all lines and count them; raise BadProof, which names the first line that does not hold."""
    count = 0
    for number, record in lines:
        try:
            add(number, record)
        except BadProof as reason:
            raise BadProof(f"line {number}: {reason}") from None
        count += 1
    return count


def cost_of(goals: Sequence[int], leaf: Fraction, branching: Fraction = Fraction(0)) -> Fraction:
    """Return a lower bound on the cost of every tree, in rows; a tree of t leaves has t - 1 branchings."""
    return min(errors + t * leaf + (t - 1) * branching for t, errors in enumerate(goals, start=1))


def whole_number(record: Record, name: str, least: int) -> int:
    """Read an integer of a line; raise BadProof for anything else."""
    value = record.get(name)
    if type(value) is not int or value < least:
        raise BadProof(f"'{name}' is not a whole number of at least {least}")
    return value


def numbers(record: Record, name: str) -> tuple[int, ...] | None:
    """Read a list of integers of a line; None if it is missing."""
    value = record.get(name)
    if value is None:
        return None
    good = isinstance(value, list) and all(type(x) is int and 0 <= x < MOST_COST for x in value)
    require(good, f"'{name}' is not a list of whole numbers of at least 0")
    return tuple(value)
