"""Check of a proof: a file of steps, each a lower bound on the cost of all trees of a subproblem, with a reason that is recomputed.

The format is docs/proof-format.md.  Nothing in a proof is believed: rows, questions, weights, prices and limits come from the
model document and the data, and a step counts only after its reason has been checked.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trainer.verify.proof_counting import Counting, Part
from trainer.verify.proof_space import BadProof, Space
from trainer.verify.proof_sweep import Sweep

FORMAT, VERSION = "octweb-proof", 1
MOST_LINE = 1 << 20  # characters of a line
MOST_STEPS = 5_000_000
MOST_COST = 1 << 61
REASONS = ("floor", "count", "split", "similar")


@dataclass(frozen=True)
class Proved:
    """What a proof shows: errors + penalty * leaves of each tree of the space is `cost` at least, in rows."""

    cost: Fraction
    steps: int


class Engine(Protocol):
    """What the steps need of a way to count."""

    @property
    def deepest(self) -> int: ...

    unit: int

    def root(self) -> Part: ...
    def follow(self, path: list[int]) -> Part: ...
    def weight_of(self, rows: np.ndarray) -> int: ...
    def floor(self, part: Part, height: int, leaves: int) -> int: ...
    def count(self, part: Part, height: int, leaves: int, bound: int) -> int: ...
    def split(self, part: Part, height: int, leaves: int, bound: int, known: Any) -> None: ...


@dataclass(frozen=True)
class _Step:
    part: Part
    height: int
    leaves: int
    bound: int


def read_proof(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a proof with their numbers from 0 (the header); raises BadProof if one is not a JSON object."""
    with open(path, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if packed else raw
        try:
            for number, line in enumerate(iter(lambda: stream.readline(MOST_LINE + 1), b"")):
                if len(line) > MOST_LINE or number > MOST_STEPS:
                    raise BadProof(f"line {number} is too long, or there are too many")
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise BadProof(f"line {number} is not a JSON object")
                yield number, record
        except (ValueError, EOFError, OSError, RecursionError) as error:
            raise BadProof(f"the file cannot be read: {str(error)[:200]}") from error


def check_proof(lines: Iterator[tuple[int, dict[str, Any]]], space: Space) -> Proved:
    """The bound that a proof shows for a space; raises BadProof, which names the first line that does not hold."""
    number, header = next(lines, (0, {}))
    unit, leaf, scale = _prices(header, space)
    goal = _whole(header, "goal", 0)
    engine: Engine = Sweep(space, unit, leaf) if space.kind == "thresholds" else Counting(space, unit, leaf)
    steps: dict[int, _Step] = {}
    held: dict[bytes, list[_Step]] = {}

    def known(part: Part, height: int, leaves: int) -> int:
        """The best bound of a step for the same rows, questions or more, at least this height and this many leaves."""
        found = held.get(part.key, ())
        return max((s.bound for s in found if s.height >= height and s.leaves >= leaves), default=0)

    for number, record in lines:
        try:
            step = _check_step(record, engine, steps, known, space)
        except BadProof as reason:
            raise BadProof(f"line {number}: {reason}") from None
        steps[number] = step
        held.setdefault(step.part.key, []).append(step)
    most = 1 << min(space.depth, 62)
    leaves = most if space.max_leaves is None else min(most, space.max_leaves)
    root = engine.root()
    height = min(space.depth, engine.deepest)
    if max(known(root, height, leaves), engine.floor(root, height, leaves)) < goal:
        raise BadProof(f"no step proves the goal {goal} for all rows")
    # unit * errors + leaf * leaves >= goal, less the one that each leaf costs above the penalty
    paid = Fraction(goal - (min(leaves, 1 << height) if scale > 1 else 0), scale)
    return Proved(Fraction(-(-paid.numerator // paid.denominator), unit // scale), len(steps))


def _check_step(record: dict[str, Any], engine: Engine, steps: dict[int, _Step], known: Any, space: Space) -> _Step:
    """The step of a line whose reason holds."""
    reason, path = record.get("by"), record.get("path")
    if reason not in REASONS or not isinstance(path, list) or not all(type(q) is int and q >= 0 for q in path):
        raise BadProof("it has no path or no known reason")
    height, bound = _whole(record, "height", 0), _whole(record, "bound", 0)
    most = 1 << min(height, 62)
    leaves = min(most, _whole(record, "leaves", 1)) if "leaves" in record else most
    if bound >= MOST_COST or height > 1000:
        raise BadProof("its bound or height is too large")
    part = engine.follow(path)
    if not part.rows.any():
        raise BadProof("no row follows its path")
    if reason == "floor":
        proved = engine.floor(part, height, leaves)
    elif reason == "count":
        if height > 2:
            raise BadProof("only trees of depth two are counted")
        proved = engine.count(part, height, leaves, bound)
    elif reason == "similar":
        proved = _similar(record, part, height, leaves, engine, steps, space)
    elif height < 1:
        raise BadProof("a leaf has no split")
    else:
        engine.split(part, height, leaves, bound, known)
        proved = bound
    if proved < bound:
        raise BadProof(f"the reason '{reason}' proves {proved}, not {bound}")
    # a tree of this height is one of any larger height that its rows and questions admit
    return _Step(part, height if height < engine.deepest else 1 << 20, leaves if leaves < most else MOST_COST, bound)


def _similar(
    record: dict[str, Any], part: Part, height: int, leaves: int, engine: Engine, steps: dict[int, _Step], space: Space
) -> int:
    """The bound of an earlier step less what its further rows can cost."""
    other = steps.get(_whole(record, "of", 1))
    if other is None:
        raise BadProof("the step that it names does not come before it")
    if other.height < height or other.leaves < leaves or (part.allowed & ~other.part.allowed).any():
        raise BadProof("the step that it names covers fewer trees")
    if space.min_leaf > 1 and (part.rows & ~other.part.rows).any():
        raise BadProof("the step that it names lacks rows, and leaves have a smallest size")
    return other.bound - engine.unit * engine.weight_of(other.part.rows & ~part.rows)


def _whole(record: dict[str, Any], name: str, least: int) -> int:
    value = record.get(name)
    if type(value) is not int or value < least:
        raise BadProof(f"'{name}' is not a whole number of at least {least}")
    return value


def _prices(header: dict[str, Any], space: Space) -> tuple[int, int, int]:
    """Unit, leaf and scale; raises BadProof if the header is not of this format or of these rows."""
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise BadProof(f"the file is not a proof of version {VERSION}")
    if header.get("rows") != space.digest:
        raise BadProof("the proof was made for another table: its fingerprint is not that of these rows")
    scale = _whole(header, "scale", 1)
    if scale > 1 and scale <= 1 << space.depth:
        raise BadProof("the scale must exceed the number of leaves")
    unit = scale * space.penalty.denominator
    leaf = scale * space.penalty.numerator + (1 if scale > 1 else 0)
    if unit * int(space.weights.sum()) + (leaf << min(space.depth, 62)) >= MOST_COST:
        raise BadProof("the scale is too large")
    return unit, leaf, scale
