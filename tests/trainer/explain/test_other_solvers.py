"""Smallest changes equal those of two independent solvers.

Steps: one SCIP program of the whole tree, in whole numbers alone, for every kind of question and mixtures of them. No steps: all
vertices of each leaf, in fractions. `--instances 400` compares 2,400 rows with SCIP and 200 with vertices.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyscipopt
import pytest

from trainer.data.column_statistics import ColumnStatistics, statistics
from trainer.explain.flip import Flipper
from trainer.explain.least import TOTAL
from trainer.explain.permission import Permission
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree, grow
from trainer.tree.splits import Interval, Linear, Split, Subset, Threshold

SCHEMA = (
    ColumnSchema(name="whole", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="tenths", kind=ColumnKind.NUMERIC),
    ColumnSchema(name="yes or no", kind=ColumnKind.BINARY),
    ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=("red", "green", "blue")),
)
STEPS = (1.0, 0.1, 1.0)
# sums of halves of tenths are even multiples of 1/40, and thresholds are odd ones, so no row lies on a hyperplane
SCALE = 40
KINDS = ("threshold", "interval", "subset", "line", "hyperplane", "mixed")
NUMBERS = (
    Permission(),
    Permission(),
    Permission(down=False),
    Permission(up=False),
    Permission(up=False, down=False),
)
COLOURS = (Permission(), Permission(), Permission(codes=(0, 2)), Permission(codes=(1,)), NUMBERS[-1])
FARTHEST_MOVE = 1_000  # in these trees, a single column moves no further than this


def split_of(rng: np.random.Generator, kind: str) -> Split:
    if kind == "mixed":
        kind = str(rng.choice(KINDS[:-1]))
    if kind == "subset" and rng.random() < 0.8:
        return Subset(feature=3, codes=tuple(int(c) for c in np.flatnonzero(rng.random(3) < 0.5)))
    if kind in ("line", "hyperplane"):
        features = (0, 1) if kind == "line" else (0, 1, 2, 3)
        levels = tuple(int(rng.integers(3)) if f == 3 else -1 for f in features)
        a = tuple(rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 3.0], len(features)).tolist())
        return Linear(
            features=features, coefficients=a, threshold=int(rng.integers(-200, 201)) / 20 + 0.025, levels=levels
        )
    j = int(rng.integers(3))
    if j == 2:
        return Threshold(feature=2, threshold=0.5)
    low, high = sorted((rng.choice(np.arange(-12, 13), 2, replace=False) * STEPS[j] + STEPS[j] / 2).tolist())
    return Interval(feature=j, low=low, high=high) if kind == "interval" else Threshold(feature=j, threshold=low)


def draft(rng: np.random.Generator, kind: str, depth: int) -> Draft:
    if depth == 0:
        return DraftLeaf(label=int(rng.random() < 0.15))
    return DraftBranch(split=split_of(rng, kind), left=draft(rng, kind, depth - 1), right=draft(rng, kind, depth - 1))


@dataclass
class WholeTree:
    """The search for the cheapest row with another answer as one program.

    reach[v] = 1 if the changed row reaches node v.
    """

    tree: Tree
    row: np.ndarray
    known: tuple[ColumnStatistics, ...]
    allowed: list[Permission]
    scip: pyscipopt.Model = field(default_factory=pyscipopt.Model)

    def least_total(self) -> float | None:
        """Return the least size with any number of changed columns, or None if no permitted row has another answer."""
        self._build()
        self.scip.setObjective(pyscipopt.quicksum(self.sizes), "minimize")
        self.scip.optimize()
        return None if self.scip.getStatus() == "infeasible" else self.scip.getObjVal()

    def _build(self) -> None:
        self.scip.hideOutput()
        self._columns()
        self._ways()

    def solve(self) -> tuple[int, float] | None:
        """Return the fewest changed columns and their least size, or None if no permitted row has another answer."""
        self._build()
        count = pyscipopt.quicksum(self.moved)
        size = pyscipopt.quicksum(self.sizes)
        self.scip.setObjective(count, "minimize")
        self.scip.optimize()
        if self.scip.getStatus() == "infeasible":
            return None
        fewest = round(self.scip.getObjVal())
        self.scip.freeTransform()
        self.scip.addCons(count <= fewest)
        self.scip.setObjective(size, "minimize")
        self.scip.optimize()
        assert self.scip.getStatus() == "optimal"
        return fewest, self.scip.getObjVal()

    def _columns(self) -> None:
        """Add whole steps of numbers, one flag for each category, and the costs of changes."""
        self.step = []
        self.moved = []
        self.sizes = []
        for j, size in enumerate(STEPS):
            own = round(self.row[j] / size)
            p = self.allowed[j]
            far = 1 if j == 2 else FARTHEST_MOVE
            low, high = (0, 1) if j == 2 else (own - far, own + far)
            k = self.scip.addVar(vtype="I", lb=low if p.down else own, ub=high if p.up else own)
            away = self.scip.addVar(lb=0)
            moved = self.scip.addVar(vtype="B")
            self.scip.addCons(away >= k - own)
            self.scip.addCons(away >= own - k)
            self.scip.addCons(away <= far * moved)
            self.step.append(k)
            self.moved.append(moved)
            self.sizes.append(away * (size / self.known[j].scale))
        own = int(self.row[3])
        p = self.allowed[3]
        reached = range(3) if p.codes is None else p.codes
        self.colour = [
            self.scip.addVar(vtype="B", ub=int(c == own or (c in reached and not p.never))) for c in range(3)
        ]
        self.scip.addCons(pyscipopt.quicksum(self.colour) == 1)
        self.moved.append(1 - self.colour[own])
        self.sizes.append(1 - self.colour[own])

    def _ways(self) -> None:
        label = int(self.tree.predict(self.row.reshape(1, -1))[0])
        reach = [self.scip.addVar(vtype="B", ub=0 if v.is_leaf and v.label == label else 1) for v in self.tree.nodes]
        self.scip.addCons(reach[0] == 1)
        # a single column may go anywhere, but for sums several columns stay near the training rows
        single = self.scip.addVar(vtype="B")
        self.scip.addCons(pyscipopt.quicksum(self.moved) <= 1 + 3 * (1 - single))
        for v in self.tree.branches:
            self.scip.addCons(reach[v.left] + reach[v.right] == reach[v.id])
            self._question(v.split, reach[v.left], reach[v.right])
        for v in self.tree.leaves:
            way = [self.tree.nodes[a].split for a in self.tree.path_to(v.id)[:-1]]
            if any(isinstance(s, Linear) for s in way):
                self._near(reach[v.id], single, way)

    def _near(self, here, single, way) -> None:
        for j in {f for s in way for f in s.used} & {0, 1}:
            s = self.known[j]
            size = STEPS[j]
            low = min(s.low, self.row[j])
            high = max(s.high, self.row[j])
            first = math.ceil((2 * low - high) / size - 1e-6)
            last = math.floor((2 * high - low) / size + 1e-6)
            self.scip.addCons(self.step[j] <= last + 3 * FARTHEST_MOVE * (1 - here + single))
            self.scip.addCons(self.step[j] >= first - 3 * FARTHEST_MOVE * (1 - here + single))

    def _question(self, split: Split, left, right) -> None:
        if isinstance(split, Subset):
            inside = pyscipopt.quicksum(self.colour[c] for c in split.codes)
            self.scip.addCons(inside >= left)
            self.scip.addCons(inside <= 1 - right)
        elif isinstance(split, Linear):
            terms = zip(split.features, split.coefficients, split.levels, strict=True)
            total = pyscipopt.quicksum(
                self.colour[lv] * round(a * SCALE) if f == 3 else self.step[f] * round(a * SCALE * STEPS[f])
                for f, a, lv in terms
            )
            self._below(total, round(split.threshold * SCALE), left, right)
        elif isinstance(split, Interval):
            low, high = (math.floor(end / STEPS[split.feature]) for end in (split.low, split.high))
            k = self.step[split.feature]
            above = self.scip.addVar(vtype="B")
            self.scip.addCons(k >= low + 1 - 3 * FARTHEST_MOVE * (1 - left))
            self.scip.addCons(k <= high + 3 * FARTHEST_MOVE * (1 - left))
            self.scip.addCons(k <= low + 3 * FARTHEST_MOVE * (1 - right + above))
            self.scip.addCons(k >= high + 1 - 3 * FARTHEST_MOVE * (2 - right - above))
        else:
            self._below(self.step[split.feature], math.floor(split.threshold / STEPS[split.feature]), left, right)

    def _below(self, total, threshold: int, left, right) -> None:
        much = 400 * FARTHEST_MOVE
        self.scip.addCons(total <= threshold + much * (1 - left))
        self.scip.addCons(total >= threshold + 1 - much * (1 - right))


def instance(kind: str, seed: int):
    """Return a random tree of a kind with 24 rows, their statistics, and the permitted changes."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    matrix = np.column_stack(
        [rng.integers(-8, 9, 24), rng.integers(-12, 13, 24) / 10, rng.integers(0, 2, 24), rng.integers(0, 3, 24)]
    )
    matrix[0, 1] = 0.1
    labels = rng.integers(0, 2, 24)
    tree = grow(draft(rng, kind, 3), matrix, labels, schema=SCHEMA, classes=("a", "b"))
    allowed = [NUMBERS[int(rng.integers(5))] for _ in range(3)] + [COLOURS[int(rng.integers(5))]]
    return tree, matrix, statistics(SCHEMA, matrix), allowed


@pytest.mark.parametrize("kind", KINDS)
def test_smallest_change_equals_program_of_whole_tree(kind, count):
    found = several = none = 0
    for seed in range(max(10, count // 4)):
        tree, matrix, known, allowed = instance(kind, seed)
        flipper = Flipper(tree, known, allowed)
        for row in matrix[:4]:
            expected = WholeTree(tree, row, known, allowed).solve()
            flip = flipper.find(row).flip
            if expected is None:
                none += 1
                assert flip is None, (kind, seed)
                continue
            assert flip is not None, (kind, seed)
            assert flip.proved, (kind, seed)
            assert (len(flip.columns), flip.distance) == (expected[0], pytest.approx(expected[1], abs=1e-6)), (
                kind,
                seed,
            )
            found += 1
            several += len(flip.columns) > 1
    assert found > count / 10
    assert several or kind not in ("hyperplane", "mixed")


@pytest.mark.parametrize("kind", ["hyperplane", "mixed"])
def test_smallest_total_equals_program_of_whole_tree(kind, count):
    found = cheaper = 0
    for seed in range(max(10, count // 8)):
        tree, matrix, known, allowed = instance(kind, seed)
        by_total = Flipper(tree, known, allowed, least=TOTAL)
        flipper = Flipper(tree, known, allowed)
        for row in matrix[:3]:
            expected = WholeTree(tree, row, known, allowed).least_total()
            flip = by_total.find(row).flip
            if expected is None:
                assert flip is None, (kind, seed)
                continue
            assert flip is not None, (kind, seed)
            assert flip.proved, (kind, seed)
            assert flip.distance == pytest.approx(expected, abs=1e-6), (kind, seed)
            found += 1
            few = flipper.find(row).flip
            assert few is not None, (kind, seed)
            cheaper += few.distance > flip.distance + 1e-6 and len(few.columns) < len(flip.columns)
    assert found > count / 10
    assert cheaper or kind == "mixed"


def least_in_fractions(
    tree: Tree, row: list[Fraction], known: tuple[ColumnStatistics, ...], allowed: list[Permission]
) -> tuple[int, float, float] | None:
    """Return the fewest columns, the infimum of the size with this number, and that with any number of columns.

    All vertices of the leaves with another answer are compared exactly.
    """
    found: list[tuple[int, Fraction]] = []
    floats = np.array([[float(v) for v in row]])
    own = int(tree.predict(floats)[0])
    leaves = [leaf for leaf in tree.leaves if leaf.label != own]
    for count in (1, 2, 3):
        sizes = [
            size
            for leaf in leaves
            for chosen in itertools.combinations(range(3), count)
            if (size := least_at(sides(tree, leaf.id), row, known, allowed, chosen)) is not None
        ]
        if sizes:
            found.append((count, min(sizes)))
    if not found:
        return None
    return found[0][0], float(found[0][1]), float(min(size for _, size in found))


def sides(tree: Tree, leaf: int) -> list[tuple[list[Fraction], Fraction]]:
    """Return the conditions a·x ≤ b of a leaf, closed."""
    found = []
    for a, b in itertools.pairwise(tree.path_to(leaf)):
        split = tree.nodes[a].split
        assert isinstance(split, Linear)
        sign = 1 if b == tree.nodes[a].left else -1
        found.append(([sign * Fraction(str(c)) for c in split.coefficients], sign * Fraction(str(split.threshold))))
    return found


def least_at(conditions, row, known, allowed, chosen) -> Fraction | None:
    """Return the least size over a leaf's vertices if only the `chosen` columns change, or None if there is none."""
    limits = [
        (Fraction(str(2 * known[j].low - known[j].high)), Fraction(str(2 * known[j].high - known[j].low)))
        for j in chosen
    ]
    inner = [
        ([a[j] for j in chosen], b - sum(a[j] * row[j] for j in range(3) if j not in chosen)) for a, b in conditions
    ]
    unit = [[Fraction(int(i == k)) for i in range(len(chosen))] for k in range(len(chosen))]
    planes = inner + [(unit[k], row[j]) for k, j in enumerate(chosen)]
    for k, j in enumerate(chosen):
        inner += [([-u for u in unit[k]], -row[j])] * (not allowed[j].down) + [(unit[k], row[j])] * (not allowed[j].up)
    if len(chosen) > 1:
        for k, (low, high) in enumerate(limits):
            inner += [(unit[k], high), ([-u for u in unit[k]], -low)]
            planes += [(unit[k], low), (unit[k], high)]
    best = None
    for tight in itertools.combinations(planes, len(chosen)):
        x = solved([[*a, b] for a, b in tight])
        if x is None or any(sum(c * v for c, v in zip(a, x, strict=True)) > b for a, b in inner):
            continue
        size = sum(abs(v - row[j]) / Fraction(str(known[j].scale)) for v, j in zip(x, chosen, strict=True))
        best = size if best is None else min(best, size)
    return best


def solved(table: list[list[Fraction]]) -> list[Fraction] | None:
    """Return the solution of a square system, by elimination, or None unless it has exactly one."""
    n = len(table)
    for k in range(n):
        pivot = next((i for i in range(k, n) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [v / table[k][k] for v in table[k]]
        for i in range(n):
            if i != k and table[i][k]:
                table[i] = [v - table[i][k] * w for v, w in zip(table[i], table[k], strict=True)]
    return [line[n] for line in table]


@pytest.mark.slow
def test_continuous_change_reaches_least_vertex(count):
    """Values may be any number. The least size is an infimum, which a row just beyond a plane nearly reaches."""
    schema = tuple(ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC) for j in range(3))
    compared = several = proved = sure = cheaper = 0
    for seed in range(max(10, count // 4)):
        rng = np.random.default_rng(seed)
        matrix = np.round(rng.normal(size=(30, 3)) * 2, 2)

        def planes(depth: int, rng: np.random.Generator = rng) -> Draft:
            if depth == 0:
                return DraftLeaf(label=int(rng.random() < 0.15))
            a = tuple(np.round(rng.normal(size=3), 2).tolist())
            split = Linear(
                features=(0, 1, 2), coefficients=a, threshold=round(float(rng.normal()) * 4, 3), levels=(-1,) * 3
            )
            return DraftBranch(split=split, left=planes(depth - 1), right=planes(depth - 1))

        tree = grow(planes(3), matrix, rng.integers(0, 2, 30), schema=schema, classes=("a", "b"))
        known = tuple(
            ColumnStatistics(
                scale=0.5 + j, low=float(matrix[:, j].min()), high=float(matrix[:, j].max()), decimals=None
            )
            for j in range(3)
        )
        allowed = [NUMBERS[int(rng.integers(1, 4))] for _ in range(3)]
        flipper = Flipper(tree, known, allowed)
        by_total = Flipper(tree, known, allowed, least=TOTAL)
        for row in matrix[:2]:
            expected = least_in_fractions(tree, [Fraction(str(v)) for v in row.tolist()], known, allowed)
            flip, cheap = flipper.find(row).flip, by_total.find(row).flip
            if expected is None:
                assert flip is None, seed
                assert cheap is None, seed
                continue
            assert cheap is not None, seed
            assert cheap.distance >= expected[2] - 1e-9, seed
            if cheap.proved:
                assert cheap.distance <= expected[2] * (1 + 2e-4) + 1e-4, seed
            sure += cheap.proved
            cheaper += cheap.distance < flip.distance - 1e-6 if flip else 0
            assert flip is not None, seed
            compared += 1
            proved += flip.proved
            several += len(flip.columns) > 1
            assert len(flip.columns) == expected[0], seed
            assert flip.distance >= expected[1] - 1e-9, seed
            if flip.proved:
                assert flip.distance <= expected[1] * (1 + 2e-4) + 1e-5, seed
    assert compared > count / 5
    assert proved > 0.9 * compared
    assert sure > 0.9 * compared
    assert cheaper
    assert several
