"""Path-bound cuts: bound or fix the subtree below an integral path.

Keegan, Forbes, Corry & Abolghasemi, (23)-(26). A path pi runs from the root to node v through branchings (u, f, side); I its rows,
S the block of three levels at v, S2 the nodes below the block. D2S gives the best subtree of depth two for I: rows D- that it
misclassifies, branchings Db, leaves Dw, value best2(I).

    rho(pi) = over the path: (sum of b[u,f'] over f' ≠ f) + p[u];  over S2: p[u]        0 iff the path is taken and S2 unused
    (24)    sum of theta over I  ≤ |D+| + |D-| rho
    (25)    sum of theta over D- ≤ |D-| rho                                             replaces (24)
    (26)    over Db: (sum of b[u,f'], f' ≠ f) + p[u];  over Dw: (sum of w[u,k'], k' ≠ k) + (sum of b[u,f'])  ≤ (|Db|+|Dw|) rho
    (24')   sum of theta over I - kappa * (sum of p over the subtree) ≤ best2(I) + (|I| - best2(I)) rho
    (24'')  the same with any upper bound U of the subtrees of the height of v instead of best2(I), and without S2 in rho
    (27')   the same with best2(I) replaced by sum of U[f] b[v,f] + U[leaf] p[v], U[f] a bound of the subtrees that branch on f

(24)-(26) keep at least one best tree, given the canonical ties of D2S, and cut others off; (24'), (24'') and (27') hold for every tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from trainer.dtypes import CountArray, FloatArray
from trainer.families.mip.instance import Instance, block_node
from trainer.milo import Row, Variables

INTEGRAL = 1e-4
TOLERANCE = 1e-4
NONE = -1

Step = tuple[int, int, int]  # node, feature and side of a branching on the path


class Block(Protocol):
    """The best subtree of depth two of a set of rows."""

    @property
    def features(self) -> tuple[int, int, int]: ...
    @property
    def labels(self) -> tuple[int, ...]: ...
    @property
    def value(self) -> Fraction: ...
    @property
    def wrong(self) -> CountArray: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class PathBoundCuts:
    """The separator over one master problem; the switches are from the paper.

    `objective_form` uses (24') instead of (24)-(26), for problems with side constraints. `split_bounds` adds (27') at nodes three
    levels above the terminal ones. `deep` gives U for rows and a height; (24'') is added at nodes that neither D2S nor (27') covers.
    """

    instance: Instance
    b: Variables
    p: Variables
    w: Variables
    theta: Variables
    best: Callable[[CountArray], Block]
    splits: Callable[[CountArray], FloatArray]
    negative: bool = True
    structure: bool = True
    endpoints_only: bool = False
    objective_form: bool = False
    split_bounds: bool = False
    deep: Callable[[CountArray, int], Fraction] | None = None
    _split: dict[frozenset[Step], Row] = field(default_factory=dict)
    _deep: dict[frozenset[Step], Row] = field(default_factory=dict)

    def separate(self, b: FloatArray, p: FloatArray, theta: FloatArray) -> list[Row]:
        """Return cuts of all integral paths at a point, including all violated ones: b (|B|, F), p (|V|,), theta (n,)."""
        inst = self.instance
        earned = inst.weight * theta
        rows: list[Row] = []
        kappa = float(inst.kappa)
        for path, v, members, maximal in self._paths(b):
            height = inst.tree.height(v)
            claimed = float(earned[members].sum()) - kappa * float(p[np.array(inst.tree.below(v)) - 1].sum())
            if self.split_bounds and height == 3:
                key = frozenset(path)
                if key not in self._split:
                    self._split[key] = self.split_row(path, v, members)
                rows.append(self._split[key])
            # at the root, the row would be parallel to the objective and only bound it
            if self.deep is not None and v > 1 and height > (3 if self.split_bounds else 2):
                key = frozenset(path)
                if key not in self._deep:
                    self._deep[key] = self.deep_row(path, v, members, float(self.deep(members, height)))
                rows.append(self._deep[key])
            if self.endpoints_only and not maximal:
                continue
            block = self.best(members)
            if claimed > float(block.value) + TOLERANCE:
                rows += self.rows(path, v, members, block)
        return rows

    def _paths(self, b: FloatArray) -> Iterator[tuple[tuple[Step, ...], int, CountArray, bool]]:
        """Yield every integral path to a node with at least two levels below it, from the root down, with its rows."""
        inst = self.instance
        stack: list[tuple[tuple[Step, ...], int, CountArray]] = [((), 1, np.arange(inst.n))]
        while stack:
            path, v, members = stack.pop()
            if not len(members) or inst.tree.height(v) < 2:
                continue
            f = int(b[v - 1].argmax()) if b.shape[1] else 0
            goes_on = inst.tree.height(v) > 2 and b.shape[1] > 0 and b[v - 1, f] > 1 - INTEGRAL
            yield path, v, members, not goes_on
            if goes_on:
                ones = inst.ones[members, f]
                stack.append(((*path, (v, f, 1)), 2 * v + 1, members[ones]))
                stack.append(((*path, (v, f, 0)), 2 * v, members[~ones]))

    def rho(self, path: tuple[Step, ...], v: int, *, below: bool) -> CountArray:
        """Return the columns of (23); `below` adds S2."""
        parts = []
        for u, f, _ in path:
            parts += [np.delete(self.b.columns[u - 1], f), self.p.columns[[u - 1]]]
        if below:
            deep = [u for u in self.instance.tree.below(v) if u.bit_length() > v.bit_length() + 2]
            parts.append(self.p.columns[np.array(deep, np.int64) - 1])
        return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)

    def rows(self, path: tuple[Step, ...], v: int, members: CountArray, block: Block) -> list[Row]:
        """Return the configured cuts of a path."""
        inst = self.instance
        rho = self.rho(path, v, below=True)
        if self.objective_form:
            best = float(block.value)
            nodes = self.p.columns[np.array(inst.tree.below(v)) - 1]
            return [self._row(members, rho, best, _size(inst, members) - best, "path-bound", nodes)]
        errors = int(inst.weight[block.wrong].sum())
        cuts = []
        if self.negative:
            if errors:
                cuts.append(self._row(block.wrong, rho, 0.0, errors, "path-bound"))
        else:
            cuts.append(self._row(members, rho, _size(inst, members) - errors, errors, "path-bound"))
        if self.structure:
            cuts.append(self.structure_row(v, rho, block))
        return cuts

    def _row(
        self,
        members: CountArray,
        rho: CountArray,
        constant: float,
        factor: float,
        name: str,
        nodes: CountArray | None = None,
    ) -> Row:
        inst = self.instance
        columns = [self.theta.columns[members], rho]
        values = [inst.weight[members].astype(np.float64), np.full(len(rho), -float(factor))]
        if nodes is not None:
            columns.append(nodes)
            values.append(np.full(len(nodes), -float(inst.kappa)))
        return _merge_columns(np.concatenate(columns), np.concatenate(values), constant, name)

    def structure_row(self, v: int, rho: CountArray, block: Block) -> Row:
        """Return (26): branchings and leaves as in the block."""
        inst = self.instance
        parts = []
        size = 0
        for i, f in enumerate(block.features):
            if f != NONE:
                u = block_node(v, i)
                parts += [np.delete(self.b.columns[u - 1], f), self.p.columns[[u - 1]]]
                size += 1
        for i, k in enumerate(block.labels):
            if k >= 0:
                u = block_node(v, i)
                parts.append(np.delete(self.w.columns[u - 1], k))
                if u < 1 << inst.depth:
                    parts.append(self.b.columns[u - 1])
                size += 1
        left = np.concatenate(parts)
        values = np.concatenate([np.ones(len(left)), np.full(len(rho), -float(size))])
        return _merge_columns(np.concatenate([left, rho]), values, 0.0, "path-structure")

    def deep_row(self, path: tuple[Step, ...], v: int, members: CountArray, bound: float) -> Row:
        """Return (24'') for a bound of all subtrees at v."""
        inst = self.instance
        nodes = self.p.columns[np.array(inst.tree.below(v)) - 1]
        factor = max(0.0, _size(inst, members) - bound)
        return self._row(members, self.rho(path, v, below=False), bound, factor, "deep-bound", nodes)

    def split_row(self, path: tuple[Step, ...], v: int, members: CountArray) -> Row:
        """Return (27') at a node with three levels below it, where D2S at its children is exact."""
        inst = self.instance
        bounds = self.splits(members)
        classes = np.bincount(inst.y[members], weights=inst.weight[members], minlength=inst.classes)
        leaf = float(classes.max()) - float(inst.kappa)
        size = _size(inst, members) - min(0.0, leaf, float(bounds.min(initial=0.0)))
        rho = self.rho(path, v, below=False)
        nodes = self.p.columns[np.array(inst.tree.below(v)) - 1]
        columns = [self.theta.columns[members], nodes, self.b.columns[v - 1], self.p.columns[[v - 1]], rho]
        values = [
            inst.weight[members].astype(np.float64),
            np.full(len(nodes), -float(inst.kappa)),
            -bounds,
            np.array([-leaf]),
            np.full(len(rho), -size),
        ]
        return _merge_columns(np.concatenate(columns), np.concatenate(values), 0.0, "split-bound")


def _size(instance: Instance, members: CountArray) -> float:
    return float(instance.weight[members].sum())


def _merge_columns(columns: CountArray, values: FloatArray, upper: float, name: str) -> Row:
    """Return a row, with the coefficients of equal columns summed."""
    unique, place = np.unique(columns, return_inverse=True)
    summed = np.bincount(place, weights=values, minlength=len(unique)).astype(np.float64)
    nonzero = np.abs(summed) > 1e-12
    return Row(unique[nonzero], summed[nonzero], upper=upper, name=name)
