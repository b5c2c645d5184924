"""CUT-H and CUT_w-H: routes as variables, hyperplanes as lazy rows (Alston, Validi & Hicks).

Labels (M1)-(M12), (S) refer to docs/methods/cut-h.md. Rows of equal features are one point g, its classes are items j = (g, k).

Indices    g point, j item, k class, v node of the complete tree (1 root, children 2v, 2v + 1; B branching places, T the last level)
Variables  b[v]=1: v branches;  w[v,k]=1: v is a leaf of class k;  p[v]: v is a leaf;  s[j,v]: item j is correct at leaf v;
           q[g,v]=1: g is routed through v.  Only rows that are classified correctly need a route.
(S)        Σ q[i, left(v)] over I_L + Σ q[i, right(v)] over I_R <= |I_L| + |I_R| - 1 if no hyperplane separates I_L from I_R
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from trainer.dtypes import CountArray, FloatArray
from trainer.families.oblique.instance import BRANCH, LEAF, DepthTwoErrors, ObliqueInstance, ObliqueTree, mirror
from trainer.families.oblique.local import fit_logistic
from trainer.families.oblique.separable import Separator, Support
from trainer.milo import Expression, Hooks, IntegerProgram, Point, Row, at_most
from trainer.milo.hooks import NodeInfo

CONNECT = ("all", "lazy", "I", "II", "III")
MAX_POOL = 5000


@dataclass(frozen=True, kw_only=True)
class CutOptions:
    """Options of the model and its cuts.

    `weak`: CUT_w-H. `connect`: (M8) with all rows at once, lazily, or lazily with root cuts of type I, II, III. `tight`: misclassified rows
    have no route. `symmetry`: break the symmetry of siblings. `everywhere`: add (S) at every node and mirrored, even if it is not violated.
    `several`: minimal sets to find at a time. `full`: route every row to a leaf, as a minimum leaf size requires.
    """

    weak: bool = False
    connect: str = "all"
    tight: bool = True
    symmetry: bool = True
    everywhere: bool = True
    several: int = 5
    full: bool = False


@dataclass(kw_only=True)
class CutModel:
    """The master model of an instance; `halted` ends a long build with BuildStopped."""

    instance: ObliqueInstance
    options: CutOptions = field(default_factory=CutOptions)
    halted: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        inst = self.instance
        self.V = range(1, inst.size)
        self.B = range(1, inst.size >> 1)
        self.T = range(inst.size >> 1, inst.size)
        self.K = range(inst.counts.shape[1])
        self.point, self.item_class = (x.astype(np.int64) for x in np.nonzero(inst.counts))
        self.weight = inst.counts[self.point, self.item_class]
        self.items = [np.flatnonzero(self.point == g) for g in range(len(inst.Z))]
        self.below = {v: np.array(subtree(v, inst.size)) - 1 for v in self.V}
        self.full = self.options.full or inst.min_leaf > 1
        self.separator = Separator(inst.Z)
        self.model = model = IntegerProgram()
        model.halted = self.halted
        self.b = model.binary("b", self.B, priority=20)
        self.w = model.binary("w", self.V, self.K, priority=10)
        self.p = model.continuous("p", self.V)
        self.s = model.continuous("s", range(len(self.point)), self.V)
        self.q = model.binary("q", range(len(inst.Z)), self.V)  # q[g, 1] is always 1
        self._rows()
        self._objective()

    # -- the model ---------------------------------------------------------------------------------------------------

    def _rows(self) -> None:
        model = self.model
        inst = self.instance
        model.fix(self.q.columns[:, 0], 1.0)
        for v in self.V:
            model.add(self._sum([self.w[v, k] for k in self.K]) - self.p[v] == 0, "(M1)")
            path = self._sum([self.p[u] for u in ancestors(v)])
            model.add((path + self.b[v] if v in self.B else path) == 1, "(M2)")
        if inst.complete:
            model.fix(self.p.columns[: len(self.B)], 0.0)
            model.fix(self.w.columns[: len(self.B)].ravel(), 0.0)
        if inst.max_leaves is not None:
            model.add(self._sum([self.b[v] for v in self.B]) <= inst.max_leaves - 1, "leaves")
        for j in range(len(self.item_class)):
            self._item_rows(j)
        for g in range(len(inst.Z)):
            self._point_rows(g)
        self._smallest_leaf_rows()
        for packed in inst.packed:
            items = np.flatnonzero(np.isin(self.point, packed.points))
            model.add(set_row(inst, packed, self.s.columns[items], self.weight[items]))
        if self.options.symmetry:
            self._symmetry_rows()

    def _item_rows(self, j: int) -> None:
        """Add the rows of one item: (M4), and (M8) if all rows are added at once."""
        s = self.s.columns
        label = self.item_class[j]
        for v in self.V:
            if self.instance.complete and v in self.B:
                self.model.fix([s[j, v - 1]], 0.0)
            else:
                self.model.add(at_most(s[j, v - 1 : v], [self.w.columns[v - 1, label]], "(M4)"))
        if self.options.connect == "all":
            for row in flatten(self.connecting_rows(j)):
                self.model.add(row)

    def _point_rows(self, g: int) -> None:
        """Add the rows of one point: (M5), (M7), and (M10) or the tight rows."""
        model = self.model
        s = self.s.columns
        q = self.q.columns
        b = self.b.columns
        item_columns = s[self.items[g]]
        model.add(Row(item_columns.ravel(), np.ones(item_columns.size), upper=1.0, name="(M5)"))
        for v in self.B:
            pair = q[g, [2 * v - 1, 2 * v]]
            model.add(at_most(pair, [b[v - 1]], "(M7)"))
            if v > 1:
                model.add(at_most(pair, [q[g, v - 1]], "(M7)"))
        if self.full:
            for v in self.B:  # (M10): a point that reaches a branching continues to a child
                on = np.append(q[g, [2 * v - 1, 2 * v, v - 1]], b[v - 1])
                model.add(Row(on, np.array([1.0, 1.0, -1.0, -1.0]), lower=-1.0, name="(M10)"))
        elif self.options.tight:
            for v in self.V[1:]:
                model.add(at_most(q[g, v - 1 : v], item_columns[:, self.below[v]].ravel(), "tight"))

    def _smallest_leaf_rows(self) -> None:
        """Add (M11): each leaf holds at least `min_leaf` rows."""
        inst = self.instance
        if inst.min_leaf <= 1:
            return
        rows = inst.counts.sum(axis=1).astype(float)
        for v in self.V[1:]:
            columns = np.append(self.q.columns[:, v - 1], self.p.column(v))
            self.model.add(Row(columns, np.append(rows, -float(inst.min_leaf)), lower=0.0, name="(M11)"))

    def connecting_rows(self, j: int) -> list[list[Row]]:
        """Return (M8) of an item: CUT-H sums over subtrees and all classes of the point, CUT_w-H has a row for each leaf.

        The rows are grouped by the leaf that they refer to, nodes near the root first.
        """
        s = self.s.columns
        q = self.q.columns
        g = self.point[j]
        if self.options.weak:
            return [
                [at_most(s[j, v - 1 : v], [q[g, u - 1]], "(M8w)") for u in reversed(ancestors(v)) if u > 1]
                for v in self.V[1:]
            ]
        if j != self.items[g][0]:
            return []
        item_columns = s[self.items[g]]
        # a row of u that sums over the whole subtree of u dominates all other rows of u
        return [[at_most(item_columns[:, self.below[u]].ravel(), [q[g, u - 1]], "(M8)")] for u in self.V[1:]]

    def _symmetry_rows(self) -> None:
        """Break the mirror symmetry of nodes: labels of the last siblings increase; above them, one point goes left."""
        first = self.first
        for v in self.B:
            if 2 * v in self.T:
                rise = self._sum([(self.w[2 * v + 1, k] - self.w[2 * v, k]) * k for k in self.K])
                self.model.add(rise >= (0 if self.instance.complete else self.b[v]), "siblings")
            else:
                self.model.fix([self.q.column((first, 2 * v + 1))], 0.0)

    @property
    def first(self) -> int:
        """The point of largest weight."""
        return int(self.instance.counts.sum(axis=1).argmax())

    def _objective(self) -> None:
        kappa = float(self.instance.kappa)
        terms = dict(
            zip(self.s.columns.ravel().tolist(), np.repeat(self.weight, len(self.V)).astype(float), strict=True)
        )
        terms |= dict.fromkeys(self.b.columns.tolist(), -kappa)
        self.model.maximize(Expression(terms, -kappa))

    @staticmethod
    def _sum(parts: Sequence[Expression]) -> Expression:
        result = Expression()
        for part in parts:
            result.add(part)
        return result

    # -- trees and points --------------------------------------------------------------------------------------------

    def normal_form(self, tree: ObliqueTree) -> ObliqueTree:
        """Exchange siblings of the tree as the symmetry rows require."""
        inst = self.instance
        tree = inst.complete_to_depth(tree) if inst.complete else tree
        if not self.options.symmetry:
            return tree
        at = int(inst.route(tree)[self.first])
        for v in range(1, inst.size >> 1):
            if tree.kind[v] != BRANCH:
                continue
            if 2 * v in self.T:
                wrong = tree.label[2 * v] > tree.label[2 * v + 1]
            else:
                below = at.bit_length() - v.bit_length() - 1
                wrong = below >= 0 and at >> below == 2 * v + 1
            if wrong:
                tree = mirror(inst, tree, v)
                at = int(inst.route(tree)[self.first])
        return tree

    def assignment(self, tree: ObliqueTree) -> FloatArray:
        """Return the values of all variables for a tree, float64 (model.size,); its objective is exactly the tree's value."""
        inst = self.instance
        values = np.zeros(self.model.size)
        tree = self.normal_form(tree)
        for v in self.V:
            if tree.kind[v] == BRANCH:
                values[self.b.column(v)] = 1.0
            elif tree.kind[v] == LEAF:
                values[self.p.column(v)] = values[self.w.column((v, int(tree.label[v])))] = 1.0
        at = inst.route(tree)
        values[self.q.columns[:, 0]] = 1.0
        for i, leaf in enumerate(at if self.full else ()):
            values[self.q.columns[i, np.array(ancestors(int(leaf))) - 1]] = 1.0
        for j, (g, k) in enumerate(zip(self.point, self.item_class, strict=True)):
            if tree.label[at[g]] == k:
                values[self.s.columns[j, at[g] - 1]] = 1.0
                values[self.q.columns[g, np.array(ancestors(int(at[g]))) - 1]] = 1.0
        return values

    def read(self, values: FloatArray) -> ObliqueTree:
        """Return the tree of an integral point, with planes that separate its routes, or approximate ones.

        Leaves with rows have majority labels.
        """
        inst = self.instance
        tree = self.instance.empty()
        p = values[self.p.columns]
        w = values[self.w.columns]
        routed = values[self.q.columns] > 0.5

        def visit(v: int) -> None:
            if v in self.T or p[v - 1] > 0.5:
                tree.kind[v] = LEAF
                tree.label[v] = int(w[v - 1].argmax())
                return
            tree.kind[v] = BRANCH
            L = np.flatnonzero(routed[:, 2 * v - 1])
            R = np.flatnonzero(routed[:, 2 * v])
            plane = self.separator.plane(L, R)
            if plane is None:
                points = np.concatenate([L, R])
                weight = inst.counts[points].sum(axis=1).astype(float)
                beta = fit_logistic(inst.Z[points], np.arange(len(points)) < len(L), weight, 1e-4)
                tree.a[v] = beta[:-1]
                tree.c[v] = -beta[-1]
            else:
                tree.a[v] = plane.a
                tree.c[v] = plane.c
            visit(2 * v)
            visit(2 * v + 1)

        visit(1)
        return inst.relabel(tree)


class CutHooks(Hooks):
    """Hooks that separate (S) and, if they are lazy, the rows (M8).

    `improve` returns a better tree made of a rejected one, or None.
    """

    lazy = True

    def __init__(
        self, form: CutModel, improve: Callable[[ObliqueTree], ObliqueTree | None] = lambda tree: None
    ) -> None:
        self.form = form
        self.improve = improve
        self.options = form.options
        self.fractional = -1 if form.options.connect in ("I", "II", "III") else 0
        self.pool: dict[Support, None] = {}
        self.proposals: list[FloatArray] = []
        self.rejected = 0

    def on_integral(self, point: Point, origin: str) -> Sequence[Row]:
        """Return the rows that an integral point violates; if there are any, propose a better tree."""
        form = self.form
        routed = point[form.q] > 0.5
        branching = point[form.b] > 0.5
        rows: list[Row] = [] if self.options.connect == "all" else self._violated_connecting_rows(point)
        rows += [
            row
            for support in self.pool
            for row in self._shattering_rows(support)
            if row.activity(point.values) > row.upper + 0.5
        ]
        if not rows:
            for v in np.flatnonzero(branching) + 1:
                L = np.flatnonzero(routed[:, 2 * v - 1])
                R = np.flatnonzero(routed[:, 2 * v])
                if not len(L) or not len(R) or form.separator.plane(L, R) is not None:
                    continue
                for support in form.separator.supports(L, R, self.options.several):
                    if len(self.pool) < MAX_POOL:
                        self.pool[support] = None
                    rows += self._shattering_rows(support) if self.options.everywhere else [self._row(support, int(v))]
        if rows:
            self.rejected += 1
            better = self.improve(form.read(point.values))
            if better is not None:
                self.proposals.append(form.assignment(better))
        return rows

    def on_fractional(self, point: Point, info: NodeInfo) -> Sequence[Row]:
        """Return violated rows (M8): all of a leaf (I), the first one (II) or the most violated one (III)."""
        form = self.form
        kind = self.options.connect
        rows: list[Row] = []
        for j in range(len(form.point)):
            for group in form.connecting_rows(j):
                violated = [(row.activity(point.values), row) for row in group]
                violated = [(excess, row) for excess, row in violated if excess > 1e-4]
                if kind == "I":
                    rows += [row for _, row in violated]
                elif kind == "II":
                    rows += [row for _, row in violated[:1]]
                elif violated:
                    rows.append(max(violated, key=lambda item: item[0])[1])
        return [row.named(row.name, user=True) for row in rows]

    def propose(self) -> Sequence[FloatArray]:
        """Return better trees made of rejected points."""
        waiting = self.proposals
        self.proposals = []
        return waiting

    def _violated_connecting_rows(self, point: Point) -> list[Row]:
        form = self.form
        busy = np.flatnonzero((point[form.s] > 1e-6).any(axis=1))
        busy = np.unique([int(form.items[form.point[j]][0]) for j in busy] if not self.options.weak else busy)
        return [row for j in busy for row in flatten(form.connecting_rows(int(j))) if row.activity(point.values) > 1e-5]

    def _shattering_rows(self, support: Support) -> list[Row]:
        mirror = (support[1], support[0])
        return [self._row(sides, v) for v in self.form.B for sides in (support, mirror)]

    def _row(self, support: Support, v: int) -> Row:
        q = self.form.q.columns
        L, R = support
        columns = np.concatenate([q[list(L), 2 * v - 1], q[list(R), 2 * v]])
        return Row(columns, np.ones(len(columns)), upper=len(columns) - 1.0, name="shattering")


def set_row(instance: ObliqueInstance, packed: DepthTwoErrors, s: CountArray, weight: CountArray) -> Row:
    """Return (M12): an upper bound on the correct rows of a packed set; `s` (items, nodes) are the columns of its items."""
    counts = instance.counts[packed.points]
    most = int(counts.max(axis=1).sum()) - instance.extra_errors(packed, instance.most_leaves)
    return Row(s.ravel(), np.repeat(weight, s.shape[1]).astype(float), upper=float(most), name="(M12)")


def ancestors(v: int) -> list[int]:
    """Return v and its ancestors, the root last."""
    nodes = []
    while v:
        nodes.append(v)
        v >>= 1
    return nodes


def subtree(v: int, size: int) -> list[int]:
    """Return v and its descendants with numbers below `size`."""
    nodes = []
    level = [v]
    while level and level[0] < size:
        nodes += level
        level = [c for u in level for c in (2 * u, 2 * u + 1)]
    return nodes


def flatten(groups: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of all groups."""
    return [row for group in groups for row in group]
