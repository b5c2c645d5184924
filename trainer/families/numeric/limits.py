"""Limits of leaves and of whole trees, and the best tree within them that is known so far."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from trainer.constraints import required_recalls
from trainer.constraints.coupling import RULES, require_thresholds, rules_hold
from trainer.data.problem import Problem
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Node, Tree, simplify

# limits that the search over thresholds leaves out, with the values that switch them off
OFF = {"recall": "", "max_columns": None, **RULES, "max_leaves": None, "min_leaf": 1}
LIMITS = tuple(OFF)
# weights of classes that are raised until a tree has the minimum recalls
WEIGHT_STEP = 1.15
MOST_STEPS = 80


def has_limits(settings: Settings, *, but: str = "") -> bool:
    """Return whether the settings have a limit, other than `but`, that the search over thresholds ignores."""
    return any(settings[name] != off for name, off in OFF.items() if name != but)


def is_restricted(settings: Settings) -> bool:
    """Return whether the claim is proved with thresholds as questions: with limits of leaves, paths or whole trees."""
    return has_limits(settings) or bool(settings["forbidden_pairs"])


class WholeTreeLimits:
    """The limits of the settings. Raises ParameterError for those that the rows do not allow, such as a recall of a class without rows."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem = problem
        self.settings = settings
        self.required = required_recalls(problem, settings)
        require_thresholds(problem, settings, problem.numeric.features)

    def hold(self, tree: Tree) -> bool:
        """Return whether a tree is within the limits."""
        sizes = {"max_columns": len(tree.used_columns), "max_leaves": tree.n_leaves}
        if any(self.settings[name] is not None and size > self.settings[name] for name, size in sizes.items()):
            return False
        if tree.n_leaves > 1 and min(leaf.rows for leaf in tree.leaves) < self.settings["min_leaf"]:
            return False
        if any(recall_of(tree.leaves, k) < share for k, share in self.required):
            return False
        return rules_hold(self.problem, self.settings, tree)

    def repair(self, draft: Draft) -> Iterator[Tree]:
        """Yield trees near a draft, largest first: it and its prunings, each also with the minimum recalls."""
        while True:
            tree = self.problem.tree(simplify(self.problem.tree(draft)))
            yield tree
            if self.required:
                yield self.problem.tree(_relabel(tree, self.required))
            if tree.n_leaves == 1:
                return
            draft = _prune(tree)


def recall_of(leaves: tuple[Node, ...], label: int) -> Fraction:
    """Return the share of the rows of a class that the leaves get right."""
    right = sum(leaf.counts[label] for leaf in leaves if leaf.label == label)
    return Fraction(right, sum(leaf.counts[label] for leaf in leaves))


def _relabel(tree: Tree, required: tuple[tuple[int, Fraction], ...]) -> Draft:
    """Return the tree with other classes in its leaves, which give the minimum recalls if these weights of classes can."""
    counts = np.array([leaf.counts for leaf in tree.leaves], float)
    totals = counts.sum(axis=0)
    weights = np.ones(counts.shape[1])
    for _ in range(MOST_STEPS):
        labels = (counts * weights).argmax(axis=1)
        missing = [k for k, share in required if counts[labels == k, k].sum() < float(share) * totals[k]]
        if not missing:
            break
        weights[missing] *= WEIGHT_STEP
    return _with_labels(tree, dict(zip((leaf.id for leaf in tree.leaves), labels.tolist(), strict=True)))


def _with_labels(tree: Tree, labels: dict[int, int], node: int = 0) -> Draft:
    """Return the subtree at a node, which ends at the nodes of `labels` with these classes."""
    v = tree.nodes[node]
    if v.split is None or node in labels:
        return DraftLeaf(label=labels.get(node, v.label))
    return DraftBranch(
        split=v.split, left=_with_labels(tree, labels, v.left), right=_with_labels(tree, labels, v.right)
    )


def _prune(tree: Tree) -> Draft:
    """Replace the split above two leaves that saves the fewest errors by a leaf."""

    def gain(v: Node) -> int:
        return sum(max(tree.nodes[side].counts) for side in (v.left, v.right)) - max(v.counts)

    last = [v for v in tree.branches if tree.nodes[v.left].is_leaf and tree.nodes[v.right].is_leaf]
    least = min(last, key=gain)
    return _with_labels(tree, {least.id: int(np.argmax(least.counts))})


class LimitedIncumbent:
    """The best known tree within the limits. Each better one is reported; `draft` is None before the first."""

    def __init__(self, limits: WholeTreeLimits, monitor: Monitor) -> None:
        self.limits = limits
        self.monitor = monitor
        self.draft: Draft | None = None
        self.objective = -np.inf

    def offer(self, draft: Draft) -> None:
        """Keep the best tree within the limits among those near a draft."""
        problem = self.limits.problem
        for tree in self.limits.repair(draft):
            objective = problem.objective(tree)
            if objective > self.objective and self.limits.hold(tree):
                self.objective = objective
                self.draft = _with_labels(tree, {})
                self.monitor.report(incumbent=objective, draft=self.draft)
