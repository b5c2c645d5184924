"""Check of a proof: a file of steps, each a lower bound on the cost of all trees of a subproblem, with a reason that is recomputed.

The format is docs/proof-format.md.  Nothing in a proof is believed: rows, questions, weights, prices and limits come from the
model document and the data, and a step counts only after its reason has been checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.steps.lines import (
    MOST_COST,
    Lines,
    ProvedBounds,
    Record,
    check_lines,
    cost_of,
    numbers,
    read_header,
    whole_number,
)
from trainer.check.proof.steps.parts import ANY, INFINITE_COST, ProofPart, Span
from trainer.check.proof.steps.sweep import Sweep
from trainer.check.proof.steps.topology import holds
from trainer.check.proof.steps.within import Cover, VectorRecursion
from trainer.check.proof.subject import BadProof, ProofSpace, require

VERSIONS = (1, 2, 4, 5, 6)
MOST_VECTORS = 100_000
ALWAYS = 1 << 20  # a height, where a step holds for any
Columns = tuple[int, ...] | None


class _Step(NamedTuple):
    follow: Callable[[], ProofPart]  # what the step is about, made again
    height: int
    leaves: int
    bound: int


def check_proof(lines: Lines, space: ProofSpace) -> ProvedBounds:
    """The bound that a proof shows for a space; raises BadProof, which names the first line that does not hold."""
    most = space.most_leaves(space.depth)
    header, goals = read_header(lines, VERSIONS, "of version 1, 2, 4, 5 or 6", space.digest, most, empty=space.empty)
    unit, leaf, scale = _prices(header, space, bool(goals))
    goal = 0 if goals else whole_number(header, "goal", 0)
    check = _Check(space, (Sweep if space.kind == "thresholds" else Counting)(space, unit, leaf))
    steps = check_lines(lines, check.add)
    engine = check.engine
    height = min(space.depth, engine.deepest)
    largest = space.most_leaves(height)
    for t, goal in enumerate(goals, start=1):
        last = largest if t == len(goals) else t  # the last goal is one of all larger trees
        shown = max(check.known(engine.root(), height, last), engine.floor(engine.root(), height, last))
        require(shown >= goal, f"nothing proves {goal} errors of trees with at most {last} leaves")
    if goals:
        return ProvedBounds(cost_of(goals, space.penalty), steps, tuple(goals))
    require(check.case(None, (), height) >= goal, f"no step proves the goal {goal} for all rows")
    # unit * errors + leaf * leaves >= goal, less the one that each leaf costs above the penalty
    paid = Fraction(goal - (largest if scale > 1 else 0), scale)
    return ProvedBounds(Fraction(-(-paid.numerator // paid.denominator), unit // scale), steps)


def _prices(header: Record, space: ProofSpace, errors: bool) -> tuple[int, int, int]:
    """Unit, leaf and scale, where only `errors` count those of errors; raises BadProof if they are too large."""
    scale = whole_number(header, "scale", 1)
    penalty = Fraction(0) if errors else space.penalty
    require(scale == 1 or scale > 1 << space.depth, "the scale must exceed the number of leaves")
    unit = scale * penalty.denominator
    leaf = scale * penalty.numerator + (scale > 1)
    require(unit * int(space.weights.sum()) + (leaf << min(space.depth, 62)) < MOST_COST, "the scale is too large")
    return unit, leaf, scale


class _Check:
    """The steps that hold so far."""

    def __init__(self, space: ProofSpace, engine: Counting | Sweep) -> None:
        self.space = space
        self.engine = engine
        self.steps: dict[int, _Step] = {}  # about trees without the restrictions
        self.held: defaultdict[bytes, list[tuple[np.ndarray, _Step]]] = defaultdict(list)
        # covers of trees within the restrictions, and bounds of cases of columns, both with their heights
        self.covers: defaultdict[tuple[object, ...], list[tuple[int, Cover]]] = defaultdict(list)
        self.cases: defaultdict[tuple[Columns, Columns], list[tuple[int, int]]] = defaultdict(list)
        self.within = VectorRecursion(engine) if isinstance(engine, Counting) else None
        self.columns = frozenset(space.column_of.tolist())  # that have a question

    def known(self, part: ProofPart, height: int, leaves: int) -> int:
        """The best bound of a step for the same rows, questions or more, at least this height and this many leaves."""
        found = [(own, s) for own, s in self.held.get(part.key, ()) if s.height >= height and s.leaves >= leaves]
        return max((s.bound for own, s in found if (own >= part.allowed).all()), default=0)

    def covered(self, part: ProofPart, height: int) -> Cover:
        """The best cover of a step within the restrictions; without one, one that says nothing."""
        found = [(-own, *cover) for own, cover in self.covers.get(part.within, ()) if own >= min(height, part.room)]
        nothing = (0, 0, np.zeros((0, self.within.entries if self.within else 1), np.int64))
        return max(found, key=lambda cover: cover[:2], default=nothing)[1:]  # of lower trees a step says more

    def case(self, columns: Columns, asked: tuple[int, ...], height: int) -> int:
        """What is proved of the trees that ask `asked` and nothing but `columns` (None: all); fewer columns than may be asked."""
        few = self.space.max_columns is not None and len(asked) >= self.space.max_columns
        found = [bound for own, bound in self.cases.get((columns, asked), ()) if own >= height]
        for some in [columns, asked] if few else [columns]:
            part = self.engine.root(some)
            own = min(height, part.room)  # a wish may limit the depth of all trees
            leaves = self.space.most_leaves(own)
            found += [self.known(part, own, leaves), self.engine.floor(part, own, leaves)]
            if self.within is not None:
                found += [self.within.admitted(cover) for far, cover in self.covers.get(part.within, ()) if far >= own]
        return max(found)

    def add(self, number: int, record: Record) -> None:
        """Keep the step of a line if its reason holds; raises BadProof."""
        reason = record.get("by")
        path = numbers(record, "path")
        if path is None:
            raise BadProof("it has no path")
        height = whole_number(record, "height", 0)
        bound = whole_number(record, "bound", 0)
        require(bound < MOST_COST and height <= 1000, "its bound or height is too large")
        # a tree of this height is one of any larger height that its rows and questions admit
        far = height if height < self.engine.deepest else ALWAYS
        listed = numbers(record, "columns")
        columns = None if listed is None else self._some(set(listed))
        if reason == "topology":
            return self._topology(path, bound)
        if reason == "cases":
            return self._case(record, path, columns, height, far, bound)
        follow = partial(self.engine.follow, path, columns, self._classes(record))
        part = follow()
        require(part.rows.any(), "no row follows its path")
        if reason == "within":
            return self._within(record, part, height, far, bound)
        most = 1 << min(height, 62)
        leaves = min(most, whole_number(record, "leaves", 1)) if "leaves" in record else most
        proved = self._proved(record, part, height, leaves, bound)
        require(proved >= bound, f"the reason '{reason}' proves {proved}, not {bound}")
        self.steps[number] = _Step(follow, far, leaves if leaves < most else MOST_COST, bound)
        return self.held[part.key].append((part.allowed, self.steps[number]))

    def _proved(self, record: Record, part: ProofPart, height: int, leaves: int, bound: int) -> int:
        """What the reason of a step proves; no more than the bound need be looked for."""
        reason = record.get("by")
        engine = self.engine
        if reason == "floor":
            return engine.floor(part, height, leaves)
        if reason == "count" and height <= 2:
            return engine.count(part, height, leaves, bound)
        if reason == "similar":
            return self._similar(record, part, height, leaves)
        require(reason == "split" and height > 0, "it has no known reason, or one that its height does not allow")
        engine.split(part, height, leaves, bound, self.known)
        return bound

    def _similar(self, record: Record, part: ProofPart, height: int, leaves: int) -> int:
        """The bound of an earlier step less what its further rows can cost."""
        other = self.steps.get(whole_number(record, "of", 1))
        if other is None:
            raise BadProof("the step that it names does not come before it")
        base = other.follow()
        more = other.height >= height and other.leaves >= leaves and not (part.allowed & ~base.allowed).any()
        require(more, "the step that it names covers fewer trees")
        lacks = self.space.min_leaf > 1 and (part.rows & ~base.rows).any()
        require(not lacks, "the step that it names lacks rows, and leaves have a smallest size")
        return other.bound - self.engine.unit * self.engine.weight_of(base.rows & ~part.rows)

    def _some(self, columns: set[int]) -> Columns:
        """Columns without a question make no difference."""
        return None if self.columns <= columns else tuple(sorted(self.columns & columns))

    def _classes(self, record: Record) -> Span:
        found = numbers(record, "classes")
        if found is None:
            return ANY
        require(len(found) == 2 and found[0] <= found[1], "'classes' are not a first and a last class")
        return found[0], found[1] if found[1] < self.space.classes - 1 else INFINITE_COST

    def _within(self, record: Record, part: ProofPart, height: int, far: int, bound: int) -> None:
        if self.within is None or "leaves" in record:
            raise BadProof("there are no restrictions that this reason could keep")
        rows = record.get("vectors", [])
        entries = self.within.entries
        if not isinstance(rows, list) or len(rows) > MOST_VECTORS:
            raise BadProof("its vectors are none")
        vectors = [numbers({"vectors": v}, "vectors") or () for v in rows]
        require(all(len(v) == entries for v in vectors), f"its vectors are not lists of {entries} whole numbers")
        cover = bound, np.array(vectors, np.int64).reshape(len(rows), entries)
        self.within.check(part, height, cover, self.covered, self.known)
        self.covers[part.within].append((min(far, part.room), cover))

    def _case(self, record: Record, path: Columns, columns: Columns, height: int, far: int, bound: int) -> None:
        asked = tuple(sorted(set(numbers(record, "with") or ())))
        column = whole_number(record, "column", 0)
        require(not path and self.space.max_columns is not None, "columns tell apart the trees of all rows, if limited")
        usable = set(self.columns if columns is None else columns)
        require(column in usable and column not in asked, "the column that it names makes no cases")
        for some, own in ((columns, tuple(sorted({*asked, column}))), (self._some(usable - {column}), asked)):
            require(self.case(some, own, height) >= bound, f"the cases {own} of columns {some} are not proved")
        self.cases[columns, asked].append((far, bound))

    def _topology(self, path: Columns, bound: int) -> None:
        shape = self.space.shape
        engine = self.engine
        if shape is None or path or not isinstance(engine, Counting):
            raise BadProof("only the trees of all rows have a topology, and only where one is given")
        require(holds(engine, engine.root(), shape, bound), f"a tree of the topology costs less than {bound}")
        self.cases[None, ()].append((ALWAYS, bound))
