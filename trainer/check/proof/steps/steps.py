"""Check a proof step by step.

Each step is a lower bound on all trees of a subproblem, and its reason is recomputed. Nothing in a proof is trusted.
Rows, questions, weights, prices and limits come from the model document and the data, and a step counts only after its
reason has been checked. docs/proof-format.md states the rules; each function that applies one names it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.steps.lines import (
    MOST_COST,
    OF_ANY_HEIGHT,
    OF_COUNTS,
    OF_PRICES,
    Lines,
    ProvedBounds,
    Record,
    check_lines,
    cost_of,
    numbers,
    read_header,
    whole_number,
)
from trainer.check.proof.steps.parts import ALWAYS, ANY, INFINITE_COST, ProofPart, Span
from trainer.check.proof.steps.priced import PricedCounting
from trainer.check.proof.steps.sets import SetCounting
from trainer.check.proof.steps.sweep import Sweep
from trainer.check.proof.steps.topology import costs_at_least
from trainer.check.proof.steps.within import Cover, VectorRecursion
from trainer.check.proof.subject import BadProof, ProofSpace, require

VERSIONS = (1, 2, 4, 5, 6, OF_ANY_HEIGHT, OF_PRICES)
PRICED_REASONS = ("floor", "count", "split", "cases")  # reasons of steps with prices of columns
MOST_VECTORS = 100_000
Columns = tuple[int, ...] | None


class _Step(NamedTuple):
    follow: Callable[[], ProofPart]  # rebuilds the part on demand, so that a stored step does not hold its rows
    height: int
    leaves: int
    bound: int


def check_proof(lines: Lines, space: ProofSpace) -> ProvedBounds:
    """Check a proof against a space and return the bounds that it proves; raise BadProof with the first invalid line."""
    most = space.most_leaves(space.depth)
    versions = VERSIONS if space.sets is None else (OF_COUNTS,)
    kind = "of version 1, 2, 4, 5, 6, 9 or 10" if space.sets is None else "of version 12, for counts"
    header, goals = read_header(lines, versions, kind, space.digest, most, empty=space.empty)
    version = header["like" if space.empty else "version"]
    if version != OF_PRICES:  # a bound that ignores the prices holds with them, too
        space = replace(space, prices={})
    require(version != OF_PRICES or space.prices, "the file has version 10, and the model has no prices of columns")
    unit, leaf, scale = _prices(header, space, bool(goals))
    goal = 0 if goals else whole_number(header, "goal", 0)
    check = _Check(space, _engine(space, unit, leaf))
    check.any_height = version == OF_ANY_HEIGHT
    steps = check_lines(lines, check.add)
    engine = check.engine
    height = min(space.depth, engine.deepest)
    largest = space.most_leaves(height)
    for t, goal in enumerate(goals, start=1):
        last = largest if t == len(goals) else t  # the last goal holds for all larger trees, too
        proved = max(check.step_bound(engine.root(), height, last), engine.floor(engine.root(), height, last))
        require(proved >= goal, f"no step proves {goal} errors for all trees with at most {last} leaves")
    if goals:
        return ProvedBounds(cost_of(goals, space.penalty), steps, tuple(goals))
    require(check.case_bound(None, (), height) >= goal, f"no step proves the goal {goal} for all rows")
    # the goal reads unit * errors + leaf * leaves >= goal; `leaf` exceeds the scaled penalty by 1 per leaf, which is
    # subtracted here
    paid = Fraction(goal - (largest if scale > 1 else 0), scale)
    return ProvedBounds(Fraction(-(-paid.numerator // paid.denominator), unit // scale), steps)


def _prices(header: Record, space: ProofSpace, errors: bool) -> tuple[int, int, int]:
    """Return unit, leaf and scale, without a penalty if only `errors` count; raise BadProof if they are too large."""
    scale = whole_number(header, "scale", 1)
    penalty = Fraction(0) if errors else space.penalty
    most = min(1 << space.depth, len(space.X)) if space.any_depth else 1 << space.depth
    require(scale == 1 or scale > most, f"the scale is {scale}; it must be 1, or exceed {most}, the most leaves")
    Q = math.lcm(penalty.denominator, *(price.denominator for price in space.prices.values()))
    unit = scale * Q
    leaf = int(scale * Q * penalty) + (scale > 1)
    charge = int(unit * max(space.prices.values(), default=Fraction(0)))
    total = int(space.weights.sum())
    require(
        unit * total + leaf * min(most, 1 << 62) + charge * total * space.depth < MOST_COST,
        f"the scale {scale} is too large for exact sums",
    )
    return unit, leaf, scale


def _engine(space: ProofSpace, unit: int, leaf: int) -> Counting | Sweep:
    """Return the checker of single steps."""
    if space.sets is not None:
        return SetCounting(space, space.sets, unit, leaf)
    if space.kind == "thresholds":
        return Sweep(space, unit, leaf)
    if not space.prices:
        return Counting(space, unit, leaf)
    charges = [int(unit * space.prices.get(int(column), Fraction(0))) for column in space.column_of]
    return PricedCounting(space, unit, leaf, np.array(charges, np.int64))


class _Check:
    """The state of a check: steps, covers and cases that have been proved so far."""

    def __init__(self, space: ProofSpace, engine: Counting | Sweep) -> None:
        self.space = space
        self.engine = engine
        self.any_height = False  # in this format version, a step may have no limit of height
        self.steps: dict[int, _Step] = {}  # steps that hold without the restrictions
        self.steps_by_rows: defaultdict[bytes, list[tuple[ProofPart, _Step]]] = defaultdict(list)
        # for each key, pairs of a height and a value: a cover of trees within the restrictions, or the bound of a case
        # of columns
        self.covers: defaultdict[tuple[object, ...], list[tuple[int, Cover]]] = defaultdict(list)
        self.cases: defaultdict[tuple[Columns, Columns], list[tuple[int, int]]] = defaultdict(list)
        self.within = VectorRecursion(engine) if isinstance(engine, Counting) else None
        self.columns = frozenset(space.column_of.tolist())  # columns that have a question

    def step_bound(self, part: ProofPart, height: int, leaves: int) -> int:
        """Return the best bound of a step for the same rows, with at least these questions, height, leaves and paid columns."""
        candidates = [
            (step_part, s)
            for step_part, s in self.steps_by_rows.get(part.rows_key, ())
            if s.height >= height and s.leaves >= leaves and step_part.paid >= part.paid
        ]
        return max((s.bound for step_part, s in candidates if (step_part.allowed >= part.allowed).all()), default=0)

    def step_cover(self, part: ProofPart, height: int) -> Cover:
        """Return the best cover of a step `within`; without one, an empty cover."""
        candidates = [
            (-step_height, *cover)
            for step_height, cover in self.covers.get(part.restricted_key, ())
            if step_height >= min(height, part.max_height)
        ]
        nothing = (0, 0, np.zeros((0, self.within.entries if self.within else 1), np.int64))
        # a step about lower trees is stronger, so prefer the lowest height, then the highest cost
        return max(candidates, key=lambda cover: cover[:2], default=nothing)[1:]

    def case_bound(self, columns: Columns, required: tuple[int, ...], height: int) -> int:
        """Return the bound that is proved for trees that use all of `required` and only `columns` (None: any).

        See "All rows" in docs/proof-format.md.
        """
        few = self.space.max_columns is not None and len(required) >= self.space.max_columns
        bounds = [bound for own, bound in self.cases.get((columns, required), ()) if own >= height]
        for some in [columns, required] if few else [columns]:
            part = self.engine.root(some)
            own = min(height, part.max_height)  # a wish may limit the depth of all trees below `height`
            leaves = self.space.most_leaves(own)
            bounds += [self.step_bound(part, own, leaves), self.engine.floor(part, own, leaves)]
            if self.within is not None:
                bounds += [
                    self.within.least_cost(cover)
                    for step_height, cover in self.covers.get(part.restricted_key, ())
                    if step_height >= own
                ]
        return max(bounds)

    def add(self, number: int, record: Record) -> None:
        """Check the step of a line and store it; raise BadProof."""
        reason = record.get("by")
        require(not self.space.prices or reason in PRICED_REASONS, "its reason does not hold with prices of columns")
        path = numbers(record, "path")
        if path is None:
            raise BadProof("'path', the list of its literals, is missing")
        bound = whole_number(record, "bound", 0)
        if self.any_height and record.get("height", 0) is None:
            return self._check_any_height(number, record, path, bound)
        height = whole_number(record, "height", 0)
        require(bound < MOST_COST and height <= 1000, f"its bound is {MOST_COST} or more, or its height is over 1000")
        if isinstance(self.engine, SetCounting):
            self.engine.check_size(reason, path, height)
        # no tree is higher than `deepest`, so a step of this height holds for any height
        valid_height = height if height < self.engine.deepest else ALWAYS
        listed = numbers(record, "columns")
        columns = None if listed is None else self._column_set(set(listed))
        if reason == "topology":
            return self._check_topology(path, bound)
        if reason == "cases":
            return self._check_cases(record, path, columns, height, valid_height, bound)
        follow = partial(self.engine.follow, path, columns, self._class_span(record))
        part = follow()
        require(part.rows.any(), "no row follows its path, so it proves nothing")
        if reason == "within":
            return self._check_within(record, part, height, valid_height, bound)
        most = 1 << min(height, 62)
        leaves = min(most, whole_number(record, "leaves", 1)) if "leaves" in record else most
        proved = self._reason_bound(record, part, height, leaves, bound)
        require(proved >= bound, f"the reason '{reason}' proves {proved}, not {bound}")
        self.steps[number] = _Step(follow, valid_height, leaves if leaves < most else MOST_COST, bound)
        return self._store(part, self.steps[number])

    def _store(self, part: ProofPart, step: _Step) -> None:
        """Store a step for look-ups, without the rows, whose key suffices."""
        self.steps_by_rows[part.rows_key].append((part._replace(rows=part.rows[:0]), step))

    def _check_any_height(self, number: int, record: Record, path: tuple[int, ...], bound: int) -> None:
        """Check a step about trees of any height and store it. See "Any height" in docs/proof-format.md."""
        engine = self.engine
        if not isinstance(engine, Counting) or engine.apart is not None or self.space.wishes:
            raise BadProof("a step of any height needs yes/no questions without forbidden pairs or wishes")
        require(bound < MOST_COST, "its bound is too large")
        require("leaves" not in record and "columns" not in record, "a step of any height has no leaves and columns")
        follow = partial(engine.follow, path)
        part = follow()
        require(part.rows.any(), "no row follows its path")
        reason = record.get("by")
        rules: dict[object, Callable[[], int]] = {
            "floor": lambda: engine.floor(part, ALWAYS, MOST_COST),
            "count": lambda: engine.any_count(part),
            "similar": lambda: self._similar_bound(record, part, ALWAYS, MOST_COST),
            "split": lambda: engine.check_any_split(part, bound, self.step_bound),
        }
        require(isinstance(reason, str) and reason in rules, "its reason is unknown, or not allowed at any height")
        proved = rules[reason]()
        require(proved >= bound, f"the reason '{reason}' proves {proved}, not {bound}")
        self.steps[number] = _Step(follow, ALWAYS, MOST_COST, bound)
        self._store(part, self.steps[number])

    def _reason_bound(self, record: Record, part: ProofPart, height: int, leaves: int, bound: int) -> int:
        """Return the bound that the reason of a step proves; the search stops at `bound`."""
        reason = record.get("by")
        engine = self.engine
        if reason == "floor":
            return engine.floor(part, height, leaves)
        if reason == "count" and height <= 2:
            return engine.count(part, height, leaves, bound)
        if reason == "similar":
            return self._similar_bound(record, part, height, leaves)
        require(
            reason == "split" and height > 0,
            f"its reason '{str(reason)[:40]}' is unknown, or not allowed at height {height}",
        )
        engine.check_split(part, height, leaves, bound, self.step_bound)
        return bound

    def _similar_bound(self, record: Record, part: ProofPart, height: int, leaves: int) -> int:
        """Apply rule `similar`: return the bound of an earlier step minus the weight of its additional rows."""
        other = self.steps.get(whole_number(record, "of", 1))
        if other is None:
            raise BadProof("the step that it names in 'of' does not come before it")
        base = other.follow()
        more = other.height >= height and other.leaves >= leaves and not (part.allowed & ~base.allowed).any()
        require(more, "the step that it names in 'of' is about fewer trees")
        lacks = self.space.min_leaf > 1 and (part.rows & ~base.rows).any()
        require(not lacks, "the step that it names in 'of' lacks rows, which a smallest leaf does not allow")
        return other.bound - self.engine.unit * self.engine.weight_of(base.rows & ~part.rows)

    def _column_set(self, columns: set[int]) -> Columns:
        """Return the columns that have a question, sorted; None if these are all of them."""
        return None if self.columns <= columns else tuple(sorted(self.columns & columns))

    def _class_span(self, record: Record) -> Span:
        classes = numbers(record, "classes")
        if classes is None:
            return ANY
        require(len(classes) == 2 and classes[0] <= classes[1], "'classes' is not a pair of a first and a last class")
        return classes[0], classes[1] if classes[1] < self.space.classes - 1 else INFINITE_COST

    def _check_within(self, record: Record, part: ProofPart, height: int, valid_height: int, bound: int) -> None:
        """Apply rule `within`: check the cover of a step and store it."""
        if self.within is None or "leaves" in record:
            raise BadProof("the reason 'within' needs yes/no questions and a step without 'leaves'")
        rows = record.get("vectors", [])
        entries = self.within.entries
        if not isinstance(rows, list) or len(rows) > MOST_VECTORS:
            raise BadProof(f"'vectors' is not a list of at most {MOST_VECTORS} vectors")
        vectors = [numbers({"vectors": v}, "vectors") or () for v in rows]
        require(all(len(v) == entries for v in vectors), f"a vector of 'vectors' does not have {entries} whole numbers")
        cover = bound, np.array(vectors, np.int64).reshape(len(rows), entries)
        self.within.check(part, height, cover, self.step_cover, self.step_bound)
        self.covers[part.restricted_key].append((min(valid_height, part.max_height), cover))

    def _check_cases(
        self, record: Record, path: Columns, columns: Columns, height: int, valid_height: int, bound: int
    ) -> None:
        """Apply rule `cases`: check that both cases of a column are proved."""
        required = tuple(sorted(set(numbers(record, "with") or ())))
        column = whole_number(record, "column", 0)
        require(
            not path and self.space.max_columns is not None,
            "the reason 'cases' needs an empty path and a model with max_columns",
        )
        usable = set(self.columns if columns is None else columns)
        require(
            column in usable and column not in required, f"no question asks column {column}, or 'with' already has it"
        )
        for columns_of_case, with_columns in (
            (columns, tuple(sorted({*required, column}))),
            (self._column_set(usable - {column}), required),
        ):
            require(
                self.case_bound(columns_of_case, with_columns, height) >= bound,
                f"the cases {with_columns} of columns {columns_of_case} are not proved",
            )
        self.cases[columns, required].append((valid_height, bound))

    def _check_topology(self, path: Columns, bound: int) -> None:
        """Apply rule `topology` to all rows."""
        shape = self.space.shape
        engine = self.engine
        if shape is None or path or not isinstance(engine, Counting):
            raise BadProof("the reason 'topology' needs an empty path and a model with a topology")
        require(costs_at_least(engine, engine.root(), shape, bound), f"a tree of the topology costs less than {bound}")
        self.cases[None, ()].append((ALWAYS, bound))
