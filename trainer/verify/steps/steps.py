"""Check of a proof: a file of steps, each a lower bound on the cost of all trees of a subproblem, with a reason that is recomputed.

The format is docs/proof-format.md.  Nothing in a proof is believed: rows, questions, weights, prices and limits come from the
model document and the data, and a step counts only after its reason has been checked.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trainer.verify.steps.counting import Counting
from trainer.verify.steps.frontier import cost_of, read_goals
from trainer.verify.steps.parts import FAR, Part
from trainer.verify.steps.sweep import Sweep
from trainer.verify.steps.topology import Topologies
from trainer.verify.steps.within import Cover, Within
from trainer.verify.subject import BadProof, Space

FORMAT, VERSIONS = "octweb-proof", (1, 2, 4, 5, 6)
MOST_LINE = 1 << 20  # characters of a line
MOST_STEPS = 5_000_000
MOST_COST = 1 << 61
MOST_VECTORS = 100_000
REASONS = ("floor", "count", "split", "similar", "within", "cases", "topology")


@dataclass(frozen=True)
class Proved:
    """What a proof shows: errors + penalty * leaves of each tree of the space is `cost` at least, in rows."""

    cost: Fraction
    steps: int
    errors: tuple[int, ...] = ()  # of trees with at most 1, 2, … leaves, the last of all others


Columns = tuple[int, ...] | None
Span = tuple[int, int]
ANY: Span = (0, FAR)
Engine = Counting | Sweep  # ways to count


@dataclass(frozen=True)
class _Step:
    follow: Callable[[], Part]  # what the step is about, made again
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
    _, header = next(lines, (0, {}))
    accept(header, VERSIONS, "of version 1, 2, 4, 5 or 6", space.digest)
    most = 1 << min(space.depth, 62)
    leaves = most if space.max_leaves is None else min(most, space.max_leaves)
    goals = read_goals(header, leaves)
    unit, leaf, scale = _prices(header, space, goals is not None)
    goal = 0 if goals else whole(header, "goal", 0)
    engine: Engine = Sweep(space, unit, leaf) if space.kind == "thresholds" else Counting(space, unit, leaf)
    check = _Check(space, engine)
    steps = held(lines, check.add)
    height = min(space.depth, engine.deepest)
    if goals is not None:
        root, largest = engine.root(), min(leaves, 1 << height)
        for t, goal in enumerate(goals, start=1):
            last = largest if t == len(goals) else t  # the last goal is one of all larger trees
            if max(check.known(root, height, last), engine.floor(root, height, last)) < goal:
                raise BadProof(f"nothing proves {goal} errors of trees with at most {last} leaves")
        return Proved(cost_of(goals, space.penalty), steps, tuple(goals))
    if check.case(None, (), height) < goal:
        raise BadProof(f"no step proves the goal {goal} for all rows")
    # unit * errors + leaf * leaves >= goal, less the one that each leaf costs above the penalty
    paid = Fraction(goal - (min(leaves, 1 << height) if scale > 1 else 0), scale)
    return Proved(Fraction(-(-paid.numerator // paid.denominator), unit // scale), steps)


class _Check:
    """The steps that hold so far."""

    def __init__(self, space: Space, engine: Engine) -> None:
        self.space, self.engine = space, engine
        self.steps: dict[int, _Step] = {}  # about trees without the restrictions
        self.held: dict[bytes, list[_Step]] = {}
        self.covers: dict[tuple[object, ...], list[tuple[int, Cover]]] = {}  # within them, with their heights
        self.cases: dict[tuple[Columns, Columns], list[tuple[int, int]]] = {}  # heights and bounds
        self.within = Within(engine) if isinstance(engine, Counting) else None

    def known(self, part: Part, height: int, leaves: int) -> int:
        """The best bound of a step for the same rows, questions or more, at least this height and this many leaves."""
        found = self.held.get(part.key, ())
        return max((s.bound for s in found if s.height >= height and s.leaves >= leaves), default=0)

    def covered(self, part: Part, height: int) -> Cover:
        """The best cover of a step within the restrictions; without one, one that says nothing."""
        found = [cover for own, cover in self.covers.get(part.within, ()) if own >= min(height, part.room)]
        nothing = (0, np.zeros((0, self.within.entries if self.within else 1), np.int64))
        return max(found, key=lambda cover: cover[0], default=nothing)

    def case(self, columns: Columns, asked: tuple[int, ...], height: int) -> int:
        """What is proved of the trees that ask `asked` and nothing but `columns` (None: all); fewer columns than may be asked."""
        space, engine = self.space, self.engine
        few = space.max_columns is not None and len(asked) >= space.max_columns
        found = [bound for own, bound in self.cases.get((columns, asked), ()) if own >= height]
        for some in [columns, asked] if few else [columns]:
            part = engine.root(some)
            own = min(height, part.room)  # a wish may limit the depth of all trees
            leaves = 1 << min(own, 62) if space.max_leaves is None else min(1 << min(own, 62), space.max_leaves)
            found += [self.known(part, own, leaves), engine.floor(part, own, leaves)]
            if self.within is not None:
                found.append(self.within.admitted(self.covered(part, own)))
        return max(found)

    def add(self, number: int, record: dict[str, Any]) -> None:
        """Keep the step of a line if its reason holds; raises BadProof."""
        engine, reason, path = self.engine, record.get("by"), record.get("path")
        if reason not in REASONS or not isinstance(path, list) or not all(type(q) is int and q >= 0 for q in path):
            raise BadProof("it has no path or no known reason")
        height, bound = whole(record, "height", 0), whole(record, "bound", 0)
        most = 1 << min(height, 62)
        leaves = min(most, whole(record, "leaves", 1)) if "leaves" in record else most
        if bound >= MOST_COST or height > 1000:
            raise BadProof("its bound or height is too large")
        listed = numbers(record, "columns")
        columns = None if listed is None else self._columns(set(listed))
        if reason == "topology":
            return self._topology(path, bound)
        if reason == "cases":
            return self._case(record, path, columns, height, bound)
        follow = partial(engine.follow, path, columns, self._classes(record))
        part = follow()
        if not part.rows.any():
            raise BadProof("no row follows its path")
        # a tree of this height is one of any larger height that its rows and questions admit
        far = height if height < engine.deepest else 1 << 20
        if reason == "within":
            return self._within(record, part, height, far, bound)
        if reason == "floor":
            proved = engine.floor(part, height, leaves)
        elif reason == "count":
            if height > 2:
                raise BadProof("only trees of depth two are counted")
            proved = engine.count(part, height, leaves, bound)
        elif reason == "similar":
            proved = self._similar(record, part, height, leaves)
        elif height < 1:
            raise BadProof("a leaf has no split")
        else:
            engine.split(part, height, leaves, bound, self.known)
            proved = bound
        if proved < bound:
            raise BadProof(f"the reason '{reason}' proves {proved}, not {bound}")
        step = _Step(follow, far, leaves if leaves < most else MOST_COST, bound)
        self.steps[number] = step
        self.held.setdefault(part.key, []).append(step)
        return None

    def _columns(self, some: set[int]) -> Columns:
        """Columns without a question make no difference."""
        every = set(self.space.column_of.tolist())
        return None if every <= some else tuple(sorted(some & every))

    def _classes(self, record: dict[str, Any]) -> Span:
        found = numbers(record, "classes")
        if found is None:
            return ANY
        if len(found) != 2 or found[0] > found[1]:
            raise BadProof("'classes' are not a first and a last class")
        return found[0], found[1] if found[1] < self.space.classes - 1 else FAR

    def _within(self, record: dict[str, Any], part: Part, height: int, far: int, bound: int) -> None:
        if self.within is None or "leaves" in record:
            raise BadProof("there are no restrictions that this reason could keep")
        rows = record.get("vectors", [])
        if not isinstance(rows, list) or len(rows) > MOST_VECTORS:
            raise BadProof("its vectors are none")
        entries = self.within.entries
        if not all(isinstance(v, list) and len(v) == entries and all(_fits(x) for x in v) for v in rows):
            raise BadProof(f"its vectors are not lists of {entries} whole numbers")
        cover = bound, np.array(rows, np.int64).reshape(len(rows), entries)
        self.within.check(part, height, cover, self.covered, self.known)
        self.covers.setdefault(part.within, []).append((far, cover))

    def _case(self, record: dict[str, Any], path: list[int], columns: Columns, height: int, bound: int) -> None:
        asked, column = tuple(sorted(set(numbers(record, "with") or ()))), whole(record, "column", 0)
        if path or self.space.max_columns is None:
            raise BadProof("only the trees of all rows are told apart by columns, and only if their number is limited")
        every = set(self.space.column_of.tolist())
        usable = every if columns is None else set(columns)
        if column in asked or column not in usable:
            raise BadProof("the column that it names makes no cases")
        without = self._columns(usable - {column})
        for some, own in ((columns, tuple(sorted({*asked, column}))), (without, asked)):
            if self.case(some, own, height) < bound:
                raise BadProof(f"the case {'with' if column in own else 'without'} column {column} is not proved")
        self.cases.setdefault((columns, asked), []).append((height if height < self.engine.deepest else 1 << 20, bound))

    def _topology(self, path: list[int], bound: int) -> None:
        shape, engine = self.space.shape, self.engine
        if shape is None or path or not isinstance(engine, Counting):
            raise BadProof("only the trees of all rows have a topology, and only where one is given")
        if not Topologies(engine).holds(engine.root(), shape, bound):
            raise BadProof(f"a tree of the topology costs less than {bound}")
        self.cases.setdefault((None, ()), []).append((1 << 20, bound))

    def _similar(self, record: dict[str, Any], part: Part, height: int, leaves: int) -> int:
        """The bound of an earlier step less what its further rows can cost."""
        other = self.steps.get(whole(record, "of", 1))
        if other is None:
            raise BadProof("the step that it names does not come before it")
        base = other.follow()
        if other.height < height or other.leaves < leaves or (part.allowed & ~base.allowed).any():
            raise BadProof("the step that it names covers fewer trees")
        if self.space.min_leaf > 1 and (part.rows & ~base.rows).any():
            raise BadProof("the step that it names lacks rows, and leaves have a smallest size")
        return other.bound - self.engine.unit * self.engine.weight_of(base.rows & ~part.rows)


def whole(record: dict[str, Any], name: str, least: int) -> int:
    """A whole number of a line; raises BadProof for anything else."""
    value = record.get(name)
    if type(value) is not int or value < least:
        raise BadProof(f"'{name}' is not a whole number of at least {least}")
    return value


def numbers(record: dict[str, Any], name: str) -> tuple[int, ...] | None:
    """A list of whole numbers, or None where it is not there."""
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(_fits(x) for x in value):
        raise BadProof(f"'{name}' is not a list of whole numbers")
    return tuple(value)


def _fits(value: object) -> bool:
    return type(value) is int and 0 <= value < MOST_COST


def accept(header: dict[str, Any], versions: tuple[int, ...], kind: str, digest: str) -> None:
    """Raises BadProof if the header is not of these versions of the format, which are of this kind, or not of these rows."""
    if header.get("format") != FORMAT or type(header.get("version")) is not int or header["version"] not in versions:
        raise BadProof(f"the file is not a proof {kind}")
    if header.get("rows") != digest:
        raise BadProof("the proof was made for another table: its fingerprint is not that of these rows")


def held(lines: Iterator[tuple[int, dict[str, Any]]], add: Callable[[int, dict[str, Any]], None]) -> int:
    """How many lines there are, all of which hold; raises BadProof, which names the first one that does not."""
    count = 0
    for number, record in lines:
        try:
            add(number, record)
        except BadProof as reason:
            raise BadProof(f"line {number}: {reason}") from None
        count += 1
    return count


def _prices(header: dict[str, Any], space: Space, errors: bool) -> tuple[int, int, int]:
    """Unit, leaf and scale, where only `errors` count those of errors; raises BadProof if they are too large."""
    scale = whole(header, "scale", 1)
    if scale > 1 and scale <= 1 << space.depth:
        raise BadProof("the scale must exceed the number of leaves")
    penalty = Fraction(0) if errors else space.penalty
    unit = scale * penalty.denominator
    leaf = scale * penalty.numerator + (1 if scale > 1 else 0)
    if unit * int(space.weights.sum()) + (leaf << min(space.depth, 62)) >= MOST_COST:
        raise BadProof("the scale is too large")
    return unit, leaf, scale
