"""Benders cuts of BendOCT: minimum cuts bound the scores of rows.

Legend     theta[i] score of row i; b[v,f] v branches on f; p[v] v is a leaf; w[v,k] v is a leaf of class k
           exit(v,i) = sum of b[v,f] over the features that send row i to the right (of v's left child) or left (of its right one)
Sources    Aghaei, Gomez & Vayanos, cut-set inequality; Keegan et al. (9), (10) integral points, (12) strengthened

Integral points: row i reaches leaf v. Then theta[i] ≤ exits from the path + branchings at v + w[u, y_i] over the path.
Fractional points: gamma(v) = w[v, y_i] + min(left arc, gamma(left)) + min(right arc, gamma(right)), an exact minimum cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import Instance
from trainer.milo import VIOLATION, Row, Variables

USER_TOLERANCE = 1e-4
ROWS_PER_CHECK = 1000  # number of rows whose cuts are built between two checks of the clock


@dataclass(frozen=True, kw_only=True, eq=False)
class BendersCuts:
    """The separator over one master problem.

    `strengthened` adds (12) instead of (10) for rows whose class the sibling does not predict either.
    """

    instance: Instance
    b: Variables
    p: Variables
    w: Variables
    theta: Variables
    strengthened: bool = False
    halted: Halted = never_halt  # checked while cuts are built, since tens of thousands take a second

    def integral(self, b: FloatArray, w: FloatArray, theta: FloatArray) -> list[Row]:
        """Return violated cuts at an integral point: b (|B|, F), w (|V|, K), theta (n,)."""
        wrong, at = self.excess_scores(b, w, theta)
        cuts: list[Row] = []
        for v in np.unique(at[wrong]).tolist():
            rows = wrong[at[wrong] == v]
            for first in range(0, len(rows), ROWS_PER_CHECK):
                if cuts and self.halted():  # one cut suffices to reject the point
                    return cuts
                cuts += self._rows(rows[first : first + ROWS_PER_CHECK], v, w, theta)
        return cuts

    def excess_scores(self, b: FloatArray, w: FloatArray, theta: FloatArray) -> tuple[CountArray, CountArray]:
        """Return the rows whose score exceeds the tree's at an integral point, and the leaf of every row."""
        inst = self.instance
        at = inst.route(self._feature(b))
        earned = np.zeros(inst.n)
        node = at.copy()
        while True:  # any node of the path that predicts the row's label earns its score
            earned += np.where(node >= 1, w[np.maximum(node, 1) - 1, inst.y], 0.0)
            node >>= 1
            if not node.any():
                break
        return np.flatnonzero(theta > earned + VIOLATION), at

    def _feature(self, b: FloatArray) -> CodeArray:
        feature = np.full(2 << self.instance.depth, -1, np.int32)
        if b.size:
            feature[1 : 1 + len(b)] = np.where(b.max(axis=1) > 0.5, b.argmax(axis=1), -1)
        return feature

    def exact_score_rows(self, b: FloatArray, w: FloatArray, theta: FloatArray) -> list[Row]:
        """Return rows that raise scores below the tree's: theta[i] ≥ w[v, y_i] - exits from the path to v."""
        inst = self.instance
        at = inst.route(self._feature(b))
        low = np.flatnonzero(theta < w[at - 1, inst.y] - VIOLATION)
        return [self.earned_row(int(i), int(at[i])) for i in low]

    def earned_row(self, i: int, v: int) -> Row:
        """Return theta[i] + exits from the path to v ≥ w[v, y_i], valid for every tree with exact scores."""
        inst = self.instance
        on_one = inst.ones[i]
        exits = [self.b.columns[u - 1, ~on_one if side else on_one] for u, side in inst.tree.turns(v)]
        columns = np.concatenate([[self.theta.columns[i], self.w.columns[v - 1, inst.y[i]]], *exits]).astype(np.int64)
        values = np.ones(len(columns))
        values[1] = -1.0
        return Row(columns, values, lower=0.0, name="earned")

    def _rows(self, rows: CountArray, v: int, w: FloatArray, theta: FloatArray) -> list[Row]:
        """Return one cut for each data row in `rows`. All of these rows end in leaf v."""
        inst = self.instance
        cuts: list[Row] = []
        if self.strengthened and v >= 1 << inst.depth and inst.depth:
            with_sibling = w[(v ^ 1) - 1, inst.y[rows]] < theta[rows] - USER_TOLERANCE
            cuts = [self.strengthened_row(i, v) for i in rows[with_sibling].tolist()]
            rows = rows[~with_sibling]
        return cuts + self.at_leaf(rows, v)

    def row(self, i: int, v: int) -> Row:
        """Return (9) for v in B, (10) for v in T."""
        return self.at_leaf(np.array([i]), v)[0]

    def at_leaf(self, rows: CountArray, v: int) -> list[Row]:
        """Return (9) or (10) of some rows for one v, which share most of their terms.

        If more than half of the features are exits of a node, (S1) gives their sum as 1 - p over the path - the others. The row has fewer
        coefficients, and SCIP's linear programs take as little as a seventh of the time.
        """
        inst = self.instance
        turns = inst.tree.turns(v)
        path = np.array(inst.tree.path(v))
        ones = inst.ones[rows]
        half = len(inst.F) / 2
        exits = [~ones if side else ones for _, side in turns]
        columns = [self.b.columns[u - 1] for u, _ in turns]
        if v < 1 << inst.depth:  # v can branch itself, which lets rows exit there
            exits = [*exits, np.ones_like(ones)]
            columns = [*columns, self.b.columns[v - 1]]
        turned = np.array([part.sum(axis=1) > half for part in exits]).reshape(len(exits), len(rows))
        listed = np.zeros((len(rows), 0), bool)
        signs = np.zeros((len(rows), 0))
        if exits:
            listed = np.concatenate([part ^ flip[:, None] for part, flip in zip(exits, turned, strict=True)], axis=1)
            signs = np.repeat(np.where(turned, 1.0, -1.0), len(inst.F), axis=0).T
        every = np.concatenate([np.zeros(0, np.int64), *columns])
        above = self.p.columns[path - 1]
        earned = self.w.columns[path - 1][:, inst.y[rows]]
        # p of a node counts in its own term and in those of all turned nodes below it
        charge = np.zeros((len(path), len(rows)))
        charge[: len(exits)] = np.cumsum(turned[::-1], axis=0)[::-1]
        upper = turned.sum(axis=0).astype(float)
        cuts = []
        for j, i in enumerate(rows.tolist()):
            on = listed[j]
            paid = charge[:, j] > 0
            parts = [self.theta.columns[i : i + 1], every[on], above[paid], earned[:, j]]
            values: list[FloatArray] = [np.ones(1), signs[j, on], charge[paid, j], -np.ones(len(path))]
            cuts.append(Row(np.concatenate(parts), np.concatenate(values), upper=float(upper[j]), name="benders"))
        return cuts

    def strengthened_row(self, i: int, v: int) -> Row:
        """Return (12): half of the last exits and half of the sibling's vote."""
        inst = self.instance
        on_one = inst.ones[i]
        turns = inst.tree.turns(v)
        parts = [self.b.columns[u - 1, ~on_one if side else on_one] for u, side in turns]
        halves = np.append(parts.pop(), self.w.columns[(v ^ 1) - 1, inst.y[i]])
        earned = self.w.columns[np.array(inst.tree.path(v)) - 1, inst.y[i]]
        full_terms = np.concatenate([*parts, earned])
        columns = np.concatenate([[self.theta.columns[i]], full_terms, halves])
        values = np.concatenate([[1.0], np.full(len(full_terms), -1.0), np.full(len(halves), -0.5)])
        return Row(columns, values, upper=0.0, name="strengthened")

    def _make(self, i: int, columns: CountArray) -> Row:
        values = np.full(len(columns) + 1, -1.0)
        values[0] = 1.0
        return Row(np.concatenate([[self.theta.columns[i]], columns]), values, upper=0.0, name="benders")

    def fractional(self, b: FloatArray, w: FloatArray, theta: FloatArray, *, limit: int) -> list[Row]:
        """Return the `limit` most violated minimum cuts at a fractional point, as user cuts."""
        inst = self.instance
        # capacities of the arcs to the right and to the left, (n, |B|)
        right = inst.X @ b.T
        left = (1 - inst.X) @ b.T
        gamma = np.zeros((2 << inst.depth, inst.n))
        through: dict[int, tuple[BoolArray, BoolArray]] = {}
        for v in reversed(inst.tree.nodes):
            gamma[v] = w[v - 1, inst.y]
            if v < 1 << inst.depth:
                cut_left = left[:, v - 1] <= gamma[2 * v]
                cut_right = right[:, v - 1] <= gamma[2 * v + 1]
                through[v] = (~cut_left, ~cut_right)
                gamma[v] += np.minimum(left[:, v - 1], gamma[2 * v]) + np.minimum(right[:, v - 1], gamma[2 * v + 1])
        excess = theta - gamma[1]
        selected = np.argsort(-excess)[:limit]
        return [self._minimum_cut(int(i), through) for i in selected if excess[i] > USER_TOLERANCE]

    def _minimum_cut(self, i: int, through: dict[int, tuple[BoolArray, BoolArray]]) -> Row:
        inst = self.instance
        columns: list[CountArray] = []
        stack = [1]
        while stack:
            v = stack.pop()
            columns.append(self.w.columns[v - 1, inst.y[i : i + 1]])
            if v < 1 << inst.depth:
                for side, on in ((0, ~inst.ones[i]), (1, inst.ones[i])):
                    if through[v][side][i]:
                        stack.append(2 * v + side)
                    else:
                        columns.append(self.b.columns[v - 1, on])
        return self._make(i, np.concatenate(columns)).named("benders-root", user=True)
