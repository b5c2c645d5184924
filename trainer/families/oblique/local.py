"""Search hyperplane trees locally, one node at a time.

A node is responsible for the points that one of its subtrees classifies correctly and the other does not. Its plane is fitted to
them by weighted logistic regression and then by exact line searches on the zero-one loss (the scheme of Carreira-Perpiñán &
Tavallali, tree alternating optimization). Random subtrees restart the search. Every few rounds, the points that the best tree
misclassifies gain weight until other trees are better (Morris, the breakout method). The search proves nothing, except by meeting a
bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.oblique.instance import BRANCH, LEAF, NONE, ObliqueInstance, ObliqueTree
from trainer.families.oblique.kernels.descend import descend

RIDGES = (1e-4, 1e-2, 1.0)
DESCENT_STEPS = 60
MAX_EXACT_SIZE = 600  # limit on points and columns for exact Newton steps; larger ones use conjugate gradients
GRADIENT_ROUNDS = 25  # number of rounds of conjugate gradients
REWEIGH_EVERY = 25  # in rounds
REWEIGH_STEPS = 20


def never_stop() -> bool:
    """Return False: the default of `stopped`, which runs to the end."""
    return False


def fit_logistic(
    Z: FloatArray,
    left: np.ndarray,
    weight: FloatArray,
    ridge: float,
    rounds: int = 12,
    stopped: Callable[[], bool] = never_stop,
) -> FloatArray:
    """Fit a ridge logistic regression by Newton's method with bounded steps; negative scores go left.

    Returns coefficients (m + 1,); if it is stopped, those of the last step.
    """
    X = np.column_stack([Z, np.ones(len(Z))])
    target = np.where(left, 0.0, 1.0)
    beta = np.zeros(X.shape[1])
    penalty = np.full(X.shape[1], ridge * weight.sum() / len(Z))
    penalty[-1] = 1e-8
    newton = _newton(X, penalty + 1e-9)
    for _ in range(rounds):
        if stopped():
            break
        probability = 1.0 / (1.0 + np.exp(-np.clip(X @ beta, -30, 30)))
        curvature = weight * np.maximum(probability * (1 - probability), 1e-6)
        gradient = X.T @ (weight * (probability - target)) + penalty * beta
        step = newton(curvature, gradient)
        size = float(np.abs(step).max())
        beta = beta - step * min(1.0, 20.0 / max(size, 1e-12))
        if size < 1e-4:
            break
    return np.asarray(beta, np.float64)


def _newton(X: FloatArray, ridge: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return a solver of (X'CX + R)·s = gradient for s (p,), given curvatures (n,) and the gradient (p,).

    C and R are diagonal, X is (n, p). With more columns than points it uses Woodbury's identity, n²·p steps once instead of p³ each time.
    With many of both it uses conjugate gradients, n·p steps a round.
    """
    n, p = X.shape
    if min(n, p) > MAX_EXACT_SIZE:
        return _conjugate(X, ridge)

    def direct(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
        hessian = (X * curvature[:, None]).T @ X + np.diag(ridge)
        return np.asarray(np.linalg.solve(hessian, gradient), np.float64)

    if p <= n:
        return direct
    scaled = X / ridge
    products = scaled @ X.T

    # a point of weight 0 has no curvature, so a small positive value replaces it
    def by_rows(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
        dual = np.linalg.solve(products + np.diag(1.0 / np.maximum(curvature, 1e-12)), scaled @ gradient)
        return np.asarray(gradient / ridge - scaled.T @ dual, np.float64)

    return by_rows


def _conjugate(X: FloatArray, ridge: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return an approximate solver like `_newton`; a descent direction is all that a step needs."""
    squares = X * X

    def step(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
        scale = 1.0 / (curvature @ squares + ridge)
        s = np.zeros_like(gradient)
        residual = gradient.copy()
        along = scale * residual
        size = float(residual @ along)
        enough = 1e-8 * size
        for _ in range(GRADIENT_ROUNDS):
            if size <= enough:
                break
            image = X.T @ (curvature * (X @ along)) + ridge * along
            length = size / float(along @ image)
            s = s + length * along
            residual = residual - length * image
            previous_size = size
            size = float(residual @ (scale * residual))
            along = scale * residual + (size / previous_size) * along
        return s

    return step


def anneal(
    Z: FloatArray,
    left: np.ndarray,
    weight: FloatArray,
    beta: FloatArray,
    ridge: float,
    stopped: Callable[[], bool] = never_stop,
) -> FloatArray:
    """Refit `beta` (m + 1,) in steps from the logistic towards the zero-one loss and return it.

    Misclassified points far from the plane lose weight.
    """
    X = np.column_stack([Z, np.ones(len(Z))])
    sign = np.where(left, -1.0, 1.0)
    for slope in (0.5, 1.0, 2.0, 4.0):
        scale = float(np.abs(X @ beta).mean())
        margin = sign * (X @ beta) / max(scale, 1e-12)
        pull = np.where(margin < 0, 1.0 / (1.0 + (slope * margin) ** 2), 1.0)
        beta = fit_logistic(Z, left, weight * np.maximum(pull, 0.01), ridge, rounds=6, stopped=stopped)
    return beta


class LocalSearch:
    """Search that stores the best tree of an instance; `run` improves it until it meets a bound or is stopped."""

    def __init__(self, instance: ObliqueInstance, seed: int = 0, flag: CountArray | None = None) -> None:
        self.instance = instance
        self.random = np.random.default_rng(seed)
        self.flag = np.zeros(1, np.int64) if flag is None else flag
        # stop condition of the whole run, or of the tree that is being improved
        self.stopped: Callable[[], bool] = never_stop
        self.best: ObliqueTree = instance.prune(instance.complete_to_depth(instance.majority_leaf()))
        self.value: Fraction = instance.value(self.best)
        self.rounds = 0

    def consider(self, tree: ObliqueTree) -> bool:
        """Prune the tree, and store it if it improves the incumbent; return whether it does."""
        tree = self.instance.prune(tree)
        value = self.instance.value(tree)
        if value <= self.value:
            return False
        self.best = tree
        self.value = value
        return True

    def accept(self, tree: ObliqueTree) -> bool:
        """Consider a tree of a solver."""
        return self.consider(tree)

    def run(
        self,
        starts: Sequence[ObliqueTree],
        *,
        enough: Fraction,
        stopped: Callable[[], bool],
        on_improvement: Callable[[Fraction, ObliqueTree], None] = lambda *_: None,
        most: int = 1_000_000,
        patience: int = 1_000_000,
    ) -> None:
        """Improve every start tree, then trees with random new subtrees.

        Ends at the value `enough`, after `most` rounds, after `patience` rounds without a better tree, or if it is stopped. `on_improvement`
        receives each improvement.
        """
        better = self.rounds
        self.stopped = stopped

        def take(tree: ObliqueTree) -> None:
            nonlocal better
            if self.consider(tree):
                better = self.rounds
                on_improvement(self.value, self.best)

        for start in starts:
            take(start)
            if self.value >= enough or stopped():
                return
            take(self.improve(start, stopped))
        current = self.best
        current_value = self.value
        stale = 0
        while self.value < enough and not stopped() and self.rounds < most and self.rounds - better < patience:
            self.rounds += 1
            if stale > 30 or self.random.random() < 0.25:
                tree = self.random_subtree(self.instance.empty(), 1)
            else:
                tree = self.random_subtree(current.copy(), self._place(current))
            tree = self.instance.prune(self.improve(tree, stopped))
            value = self.instance.value(tree)
            take(tree)
            slack = self.random.exponential(0.002 * self.instance.total) if stale > 5 else 0.0
            if value >= current_value - Fraction(slack):
                stale = 0 if value > current_value else stale + 1
                current = tree
                current_value = value
            else:
                stale += 1
            if stale > 60:
                current = self.best
                current_value = self.value
                stale = 0
            if self.rounds % REWEIGH_EVERY == 0:
                self._reweigh(take, enough, stopped)
                current = self.best
                current_value = self.value

    def _reweigh(self, take: Callable[[ObliqueTree], None], enough: Fraction, stopped: Callable[[], bool]) -> None:
        """Leave a local optimum: misclassified points gain weight at every step, and planes are fitted to the weights."""
        inst = self.instance
        tree = self.best
        most = inst.counts.max(axis=1)
        weight = np.full(len(inst.Z), int(self.random.integers(1, 4)), np.int64)
        for _ in range(REWEIGH_STEPS):
            if self.value >= enough or stopped():
                return
            label = tree.label[inst.route(tree)]
            weight[inst.counts[np.arange(len(label)), label] < most] += 1
            tree = self.improve(tree, stopped, replace(inst, counts=inst.counts * weight[:, None]))
            take(tree)

    def _place(self, tree: ObliqueTree) -> int:
        """Return a random node to grow again: a branching, or a leaf that may branch."""
        deepest = self.instance.size >> 1
        places = [v for v in range(1, deepest) if tree.kind[v] != NONE]
        return int(self.random.choice(places)) if places else 1

    def random_subtree(self, tree: ObliqueTree, v: int) -> ObliqueTree:
        """Grow a new random subtree at v, in place."""
        at = self.instance.route(tree) if tree.kind[1] != NONE else np.ones(len(self.instance.Z), np.int64)
        points = np.flatnonzero(self.instance.visits(at, v))
        self.instance._cut_subtree(tree, v)
        self._grow(tree, v, points)
        return tree

    def _grow(self, tree: ObliqueTree, v: int, points: CountArray) -> None:
        counts = self.instance.counts
        sums = counts[points].sum(axis=0) if len(points) else np.zeros(counts.shape[1], np.int64)
        tree.kind[v] = LEAF
        tree.label[v] = int(sums.argmax())
        pure = np.count_nonzero(sums) < 2 and not self.instance.complete
        if 2 * v + 1 >= self.instance.size or pure:
            return
        tree.kind[v] = BRANCH
        tree.a[v], tree.c[v] = self._random_plane(points, sums)
        right = self.instance.Z[points] @ tree.a[v] > tree.c[v]
        self._grow(tree, 2 * v, points[~right])
        self._grow(tree, 2 * v + 1, points[right])

    def _random_plane(self, points: CountArray, sums: CountArray) -> tuple[FloatArray, float]:
        Z = self.instance.Z[points]
        counts = self.instance.counts[points]
        present = np.flatnonzero(sums)
        m = self.instance.Z.shape[1]
        if len(points) < 2 or len(present) < 2:
            return np.zeros(m), 1.0
        if self.random.random() < 0.5:
            size = int(self.random.integers(1, len(present)))
            left_classes = self.random.permutation(present)[:size]
            share = 1.0 if self.random.random() < 0.3 else float(self.random.uniform(0.1, 0.8))
            sample = self.random.random(len(Z)) < share
            inside = counts[:, left_classes].sum(axis=1) >= counts.sum(axis=1) / 2
            if 0 < inside[sample].sum() < sample.sum():
                # weight one side more than the other at random, to try planes with a pure side as well
                weight = counts[sample].sum(axis=1) * np.where(inside[sample], np.exp(self.random.uniform(-4, 4)), 1.0)
                ridge = float(self.random.choice(RIDGES))
                beta = fit_logistic(Z[sample], inside[sample], weight, ridge, stopped=self.stopped)
                return beta[:-1], -float(beta[-1])
        i, j = self.random.choice(len(Z), 2, replace=False)
        a = Z[j] - Z[i]
        return a, float(a @ (Z[i] + (Z[j] - Z[i]) * self.random.uniform(0.2, 0.8)))

    def improve(
        self,
        tree: ObliqueTree,
        stopped: Callable[[], bool],
        weighted: ObliqueInstance | None = None,
        support: BoolArray | None = None,
    ) -> ObliqueTree:
        """Fit the nodes in turn, deepest first, until a pass gains no correct row; return the tree.

        `weighted` is the instance with other counts; `support` (nodes, m) tells which columns each node may use.
        """
        inst = self.instance if weighted is None else weighted
        self.stopped = stopped
        tree = inst.relabel(tree).copy()
        correct = inst.correct(tree)
        for _ in range(30):
            for v in reversed(tree.branches):
                if stopped() or self.flag[0]:
                    return tree
                tree = self._fit(inst, tree, v, None if support is None else support[v])
            after = inst.correct(tree)
            if after <= correct:
                return tree
            correct = after
        return tree

    def _fit(self, inst: ObliqueInstance, tree: ObliqueTree, v: int, allowed: BoolArray | None = None) -> ObliqueTree:
        """Fit the plane of v to the points that depend on it; never return fewer correct rows."""
        points = np.flatnonzero(inst.visits(inst.route(tree), v))
        if not len(points):
            return tree
        gains = [inst.counts[points, tree.label[inst.route(tree, u, points)]] for u in (2 * v, 2 * v + 1)]
        difference = gains[0] - gains[1]
        care = np.flatnonzero(difference)
        if not len(care):
            return tree
        left = difference[care] > 0
        weight = np.abs(difference[care])
        if left.all() or not left.any():
            result = tree.copy()
            result.a[v] = 0.0
            result.c[v] = 1.0 if left.all() else -1.0
            return inst.relabel(result)
        relevant = points[care]
        Z = inst.Z[relevant] if allowed is None else inst.Z[relevant] * allowed
        pull = weight.astype(float)
        stopped = self.stopped
        beta = fit_logistic(Z, left, pull, float(self.random.choice(RIDGES)), stopped=stopped)
        flat = np.ascontiguousarray(inst.flat[:, relevant])
        want = left.astype(np.int8)
        if allowed is not None:
            flat[:-1] *= allowed[:, None]
        candidates: list[tuple[int, FloatArray]] = []
        starts = [np.append(tree.a[v], -tree.c[v]), beta]
        if len(relevant) < 2000:
            starts.append(anneal(Z, left, pull, beta, float(self.random.choice(RIDGES)), stopped))
        for start in starts:
            a = start / max(float(np.abs(start).max()), 1e-12)
            steps = DESCENT_STEPS if len(relevant) < 4000 else DESCENT_STEPS // 4
            draws = self.random.random((steps, 3))
            directions = self.random.normal(size=(steps, len(a)))
            loss = descend(flat, want, weight.astype(np.int64), a, draws, directions, self.flag)
            candidates.append((int(loss), a))
            if loss == 0:
                break
        loss, a = min(candidates, key=lambda item: item[0])
        old = int(weight[(inst.Z[relevant] @ tree.a[v] <= tree.c[v]) != left].sum())
        if loss > old:
            return tree
        result = tree.copy()
        result.a[v] = a[:-1] if allowed is None else np.where(allowed, a[:-1], 0.0)
        result.c[v] = -a[-1]
        result = inst.relabel(result)
        return result if inst.correct(result) >= inst.correct(tree) else tree
