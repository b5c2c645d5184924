"""Check a proof about both kinds of errors: a proof of its own for each line.

A line states a fn + b fp >= least, where fn and fp are the errors in positive and in other rows. It is proved as a bound on the errors
of rows whose weights are multiplied by a or b. See docs/proof-format.md, "Errors of two classes".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from trainer.check.proof.steps.lines import (
    FORMAT,
    OF_EMPTY_CELLS,
    OF_LINES,
    Lines,
    ProvedBounds,
    Record,
    read_header,
    whole_number,
)
from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import BadProof, ProofSpace, require

MOST_LINES = 1000


class LineSpace(NamedTuple):
    """The space of a line, whose weights were divided by `divisor`.

    Each row has `copies`. Their errors are `copies` times the left side of the line, and `padding` more.
    """

    space: ProofSpace
    divisor: int
    copies: int = 1
    padding: int = 0


# maps the most leaves (0: no limit) and the factors of both kinds of errors to the space of a line
SpaceOfLine = Callable[[int, int, int], LineSpace]


def check_error_lines(lines: Lines, digest: str, space_of: SpaceOfLine, *, empty: bool) -> ProvedBounds:
    """Check a proof and return the lines that it proves; raise BadProof with the first invalid line.

    `digest` is the fingerprint of the training rows. `empty` says whether one of them has an empty cell.
    """
    header, _ = read_header(lines, (OF_LINES,), "of version 11", digest, 1, empty=empty)
    stated = header.get("lines")
    if not isinstance(stated, list) or len(stated) > MOST_LINES or not all(isinstance(line, dict) for line in stated):
        raise BadProof(f"'lines' is not a list of at most {MOST_LINES} objects")
    steps = 0
    proved = list[tuple[int, int, int, Fraction]]()
    records = _Steps(lines)
    for k, line in enumerate(stated):
        leaves, a, b = (whole_number(line, name, least) for name, least in (("leaves", 0), ("a", 1), ("b", 1)))
        own = space_of(leaves, a, b)
        bounds = check_proof(itertools.chain([(0, _header(line, own.space))], records.of_line(k)), own.space)
        steps += bounds.steps
        proved.append((leaves, a, b, (bounds.cost * own.divisor - own.padding) / own.copies))
    require(records.following is None, "a step names no line, or one that is out of order")
    return ProvedBounds(Fraction(0), steps, lines=tuple(proved))


def _header(line: Record, space: ProofSpace) -> Record:
    """Return the header of the proof of a line."""
    version = {"version": OF_EMPTY_CELLS, "like": 2} if space.empty else {"version": 2}
    return {"format": FORMAT, **version, "rows": space.digest, "scale": line.get("scale"), "goal": line.get("goal")}


class _Steps:
    """The steps of all lines, read one ahead."""

    def __init__(self, records: Lines) -> None:
        self.records = records
        self.following = next(records, None)

    def of_line(self, k: int) -> Lines:
        """Yield the next steps, as long as they name line k."""
        while self.following is not None and self.following[1].get("line") == k:
            step = self.following
            self.following = next(self.records, None)
            yield step
