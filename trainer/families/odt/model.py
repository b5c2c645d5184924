"""Build the ODT mixed-integer program on a fixed topology (Günlük et al.).

Two or more classes.

Legend     v decision node (breadth first), t leaf (left to right), g group, f category column of a group, f*(g) its anchor,
           i distinct row of weight w[i], label y[i];  B1 nodes with two leaves of fixed labels: negative left, positive right
           u[v,g]=1 v tests g;  z[v,f]=1 category f goes left at v;  c[i,t]=1 row i ends at leaf t, which has its label
           o[v,g] side of an ordered group (0: lowest bins left), or of a limited subset (1: at most mu categories left)
           l[t,k]=1 leaf t of free label predicts k (more than two classes, or a leaf beside a decision node)
           L[i,v] = sum over g of z[v, f(i,g)], R = 1 - L
           maximise  sum w[i] c[i,t]
Labels     (O1) sum_g u[v,g] = 1                  (O2) z[v,f] <= u[v,g(f)]
           (O5) c[i,t] <= L[i,v], t left of v     (O6) c[i,t] <= R[i,v], t right of v     (O7) sum_t c[i,t] <= 1
           (O11), (O12) the same with the sum over all leaves on that side, which replaces (O5) to (O7)
           (O13) z[v,f*(g)] = u[v,g] where both subtrees are equal in shape and labels
           (O14) equal rows of two labels: at most one is correct
           (O15) the required weight of correct rows of a class
           (O17) threshold tests of ordered groups  (O18) limited subsets, tightened by u  (O19) free labels
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainer.dtypes import FloatArray
from trainer.families.odt.groups import Groups
from trainer.families.odt.plan import DecisionNode, Planner, TreePlan, grow_greedy_tree, number_nodes
from trainer.families.odt.topology import Shape
from trainer.milo import Expression, IntegerProgram, Point, total
from trainer.tree.nodes import Draft, DraftLeaf


@dataclass(frozen=True, kw_only=True)
class ModelTechniques:
    """Techniques of the paper's Sections 3.2 to 3.4. They change the model, but not the optimum."""

    anchor: bool = True
    relax: bool = True
    strengthen: bool = True


class OdtModel:
    """The model of `groups` on a topology.

    `least[k]` is the weight of class k that must be correct. `value[k]` is the objective of one unit of correct weight of class k.
    """

    def __init__(
        self,
        groups: Groups,
        root: Shape,
        *,
        least: tuple[int, ...] = (),
        value: tuple[int, ...] = (),
        techniques: ModelTechniques | None = None,
    ) -> None:
        self.groups = groups
        self.root = root
        self.techniques = techniques or ModelTechniques()
        self.least = least or (0,) * groups.n_classes
        self.value = value or (1,) * groups.n_classes
        # rows weighted as in the objective, for tests that are chosen by counting
        self.weighted = replace(groups, w=groups.w * np.asarray(self.value, np.int64)[groups.y])
        self.places, self.n_leaves = number_nodes(root)
        self._merge()
        self._structure()
        self.model = IntegerProgram()
        self._variables()
        self._branching()
        self._rows()
        self._labels()
        self._objective()

    # -- sets

    def _merge(self) -> None:
        """Merge equal rows with equal labels into one row with their weight."""
        g = self.groups
        key = np.column_stack([g.cat, g.y]) if g.cat.shape[1] else g.y[:, None]
        distinct, inverse = np.unique(key, axis=0, return_inverse=True)
        self.cat = distinct[:, :-1].astype(np.int64)
        self.y = distinct[:, -1].astype(np.int64)
        self.w = np.bincount(inverse.reshape(-1), g.w, len(distinct)).astype(np.int64)

    def _structure(self) -> None:
        two = self.groups.n_classes == 2
        self.fixed = {p.number for p in self.places if two and p.shape.is_last}
        # equal subtrees have equal patterns of fixed labels, so comparing shapes suffices
        self.symmetric = {p.number for p in self.places if p.shape.is_symmetric and p.number not in self.fixed}
        self.anchored = self.symmetric if self.techniques.anchor else set()
        sizes = self.groups.sizes
        start = self.groups.start
        column = np.bincount(
            (self.cat + start[:-1]).reshape(-1), np.repeat(self.w, len(sizes)), minlength=int(start[-1])
        )
        # an ordered group is anchored at its lowest bin, a nominal one at its largest category
        self.anchor = [
            0 if self.groups.ordered[g] else int(column[start[g] : start[g + 1]].argmax()) for g in range(len(sizes))
        ]
        label: dict[int, int] = {}
        for p in self.places:
            if p.number in self.fixed:
                label[-1 - p.children[0]] = 0
                label[-1 - p.children[1]] = 1
        self.label = label
        self.free = [t for t in range(self.n_leaves) if t not in label]
        self.planner = Planner(self.groups, self.root, self.anchored, self.fixed, self.anchor)

    @property
    def needs_integral_splits(self) -> bool:
        """True if a constraint couples several nodes, so that all z must be integral (Proposition 3 does not hold then)."""
        return any(self.least) or self.groups.n_classes > 2 or bool(self.free)

    # -- the model

    def _variables(self) -> None:
        model = self.model
        g = self.groups
        self.u = []
        self.z = []
        columns = range(int(g.start[-1]))
        relaxed = self.techniques.relax
        for p in self.places:
            v = p.number
            depth = self._depth(p.number)
            make = model.continuous if relaxed else model.binary
            self.u.append(make(f"u{v}", range(len(g.sizes))))
            if relaxed and v in self.fixed and not self.needs_integral_splits:
                self.z.append(model.continuous(f"z{v}", columns))
            else:
                self.z.append(model.binary(f"z{v}", columns, priority=100 - depth))
        oriented_groups = [h for h in range(len(g.sizes)) if g.ordered[h] or self._is_size_limited(h)]
        self.o = [
            model.binary(f"o{p.number}", oriented_groups, priority=50) if oriented_groups else None for p in self.places
        ]
        self.oriented_groups = oriented_groups
        self.l = model.binary("l", self.free, range(g.n_classes)) if self.free else None
        self.c: dict[tuple[int, int], int] = {}
        row_leaf_pairs = [
            (i, t)
            for i in range(len(self.y))
            for t in range(self.n_leaves)
            if self.label.get(t, self.y[i]) == self.y[i]
        ]
        make = model.continuous if relaxed else model.binary
        if row_leaf_pairs:
            numbers = make("c", range(len(row_leaf_pairs))).columns
            self.c = {key: int(column) for key, column in zip(row_leaf_pairs, numbers, strict=True)}

    def _depth(self, v: int) -> int:
        depth = 0
        while v:
            v = next(p.number for p in self.places if v in p.children)
            depth += 1
        return depth

    def _is_size_limited(self, g: int) -> bool:
        card = self.groups.card
        return bool(card and not self.groups.ordered[g] and 2 * card < self.groups.sizes[g])

    def _branching(self) -> None:
        model = self.model
        start = self.groups.start
        for p in self.places:
            v = p.number
            model.add(total(self.u[v].values()) == 1, "O1")
            for g in range(len(self.groups.sizes)):
                z = [self.z[v][f] for f in range(int(start[g]), int(start[g + 1]))]
                for term in z:
                    model.add(term <= self.u[v][g], "O2")
                if v in self.anchored:
                    model.add(z[self.anchor[g]] == self.u[v][g], "O13")
                if g in self.oriented_groups:
                    self._orientation(v, g, z)

    def _orientation(self, v: int, g: int, z: list[Expression]) -> None:
        """Add (O17) and (O18), which tie z to the orientation variable."""
        model = self.model
        side = self.o[v]
        m = len(z)
        card = self.groups.card
        assert side is not None
        o = side[g]
        if self.groups.ordered[g]:
            for a in range(m - 1):
                model.add(z[a] >= z[a + 1] - o, "O17")
                model.add(z[a + 1] >= z[a] - (1 - o), "O17")
            return
        model.add(total(z) <= card * self.u[v][g] + (m - card) * (1 - o), "O18")
        model.add(total(z) >= (m - card) * (self.u[v][g] - o), "O18")

    def _left(self, i: int, v: int) -> Expression:
        columns = self.z[v].columns[self.cat[i] + self.groups.start[:-1]]
        return Expression(dict.fromkeys((int(c) for c in columns), 1.0))

    def _sum(self, i: int, leaves: tuple[int, ...]) -> Expression:
        return Expression({self.c[i, t]: 1.0 for t in leaves if (i, t) in self.c})

    def _rows(self) -> None:
        model = self.model
        everywhere = tuple(range(self.n_leaves))
        for i in range(len(self.y)):
            for p in self.places:
                left = self._left(i, p.number)
                for side, name, single in ((0, "O11", "O5"), (1, "O12", "O6")):
                    side_indicator = 1 - left if side else left
                    if self.techniques.strengthen:
                        model.add(self._sum(i, p.leaves[side]) <= side_indicator, name)
                        continue
                    for t in p.leaves[side]:
                        if (i, t) in self.c:
                            model.add(self._sum(i, (t,)) <= side_indicator, single)
            if not self.techniques.strengthen:
                model.add(self._sum(i, everywhere) <= 1, "O7")
        if self.techniques.strengthen:
            equal: dict[bytes, list[int]] = {}
            for i in range(len(self.y)):
                equal.setdefault(self.cat[i].tobytes(), []).append(i)
            for twins in equal.values():
                if len(twins) > 1:
                    model.add(total(self._sum(i, everywhere) for i in twins) <= 1, "O14")

    def _labels(self) -> None:
        if self.l is None:
            return
        for t in self.free:
            self.model.add(total(self.l[t, k] for k in range(self.groups.n_classes)) == 1, "O19")
            for i in range(len(self.y)):
                self.model.add(self._sum(i, (t,)) <= self.l[t, int(self.y[i])], "O19")

    def _objective(self) -> None:
        def correct(k: int) -> Expression:
            return Expression({column: float(self.w[i]) for (i, _), column in self.c.items() if self.y[i] == k})

        for k, least in enumerate(self.least):
            if least:
                self.model.add(correct(k) >= least, "O15")
        self.model.maximize(total(self.value[k] * correct(k) for k in range(self.groups.n_classes)))

    # -- trees in and out

    def assignment(self, draft: Draft) -> FloatArray | None:
        """Return the values of all variables for a tree; None if it does not fit the topology."""
        plan = self.planner.plan(draft)
        if plan is None:
            return None
        values = np.zeros(self.model.size)
        start = self.groups.start
        for p in self.places:
            g, categories = plan.tests[p.number]
            values[self.u[p.number].columns[g]] = 1.0
            values[self.z[p.number].columns[[int(start[g]) + a for a in categories]]] = 1.0
            self._set_orientations(values, p, g, categories)
        if self.l is not None:
            for t in self.free:
                values[self.l.column((t, plan.labels.get(t, 0)))] = 1.0
        for i in range(len(self.y)):
            t = self._leaf_of(i, plan)
            if self.label.get(t, plan.labels.get(t, 0)) == self.y[i]:
                values[self.c[i, t]] = 1.0
        return values

    def _set_orientations(self, values: FloatArray, p: DecisionNode, g: int, categories: frozenset[int]) -> None:
        side = self.o[p.number]
        if side is None:
            return
        for h in self.oriented_groups:
            if self.groups.ordered[h]:
                upper = h == g and 0 not in categories and len(categories) > 0
            else:
                upper = h != g or len(categories) <= self.groups.card
            values[side.column(h)] = float(upper)

    def _leaf_of(self, i: int, plan: TreePlan) -> int:
        v = 0
        while v >= 0:
            g, categories = plan.tests[v]
            v = self.places[v].children[0 if int(self.cat[i, g]) in categories else 1]
        return -1 - v

    def read(self, values: FloatArray, best_last: bool) -> Draft:
        """Return the tree of an integral point. With `best_last`, tests above two fixed leaves are chosen again by counting."""
        rows = np.arange(len(self.groups.y))
        return self._read(Point(values), 0, rows, best_last and not self.needs_integral_splits)

    def _read(self, point: Point, v: int, rows: np.ndarray, best_last: bool) -> Draft:
        if v < 0:
            return DraftLeaf(label=self._label(point, -1 - v))
        p = self.places[v]
        if best_last and v in self.fixed:
            return grow_greedy_tree(self.weighted, p.shape, rows)
        start = self.groups.start
        z = point[self.z[v]]
        left_columns = np.flatnonzero(z > 0.5)
        if not len(left_columns):
            return self._read(point, p.children[1], rows, best_last)
        g = int(np.searchsorted(start, left_columns[0], side="right")) - 1
        categories = [int(f - start[g]) for f in left_columns]
        if len(categories) == self.groups.sizes[g]:
            return self._read(point, p.children[0], rows, best_last)
        left = np.isin(self.groups.cat[rows, g], categories)
        return self.groups.branch(
            g,
            categories,
            self._read(point, p.children[0], rows[left], best_last),
            self._read(point, p.children[1], rows[~left], best_last),
        )

    def _label(self, point: Point, t: int) -> int:
        if t in self.label:
            return self.label[t]
        assert self.l is not None
        return int(np.argmax([point.values[self.l.column((t, k))] for k in range(self.groups.n_classes)]))
