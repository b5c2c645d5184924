"""Minimal cost-complexity pruning (Breiman, Friedman, Olshen & Stone) on our tree, in exact fractions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from trainer.tree.nodes import Draft, DraftLeaf, Tree, to_draft_branch


@dataclass(frozen=True, kw_only=True)
class PruningStep:
    """From `alpha` (error rate per leaf) on the nodes `collapsed` are leaves, down to the next step."""

    alpha: Fraction
    collapsed: frozenset[int]


def pruning_path(tree: Tree) -> tuple[PruningStep, ...]:
    """The nested trees of weakest-link pruning by growing alpha; the first step has alpha 0 and collapses what saves nothing.

    The error rate of a leaf is the weight of its rows of other classes than its label divided by the weight of all rows.
    """
    n = max(1, tree.nodes[0].rows)
    error = [v.rows - v.counts[v.label] for v in tree.nodes]
    collapsed: frozenset[int] = frozenset()
    steps = [PruningStep(alpha=Fraction(0), collapsed=collapsed)]
    while True:
        links = _links(tree, error, n, collapsed)
        if not links:
            return tuple(steps)
        alpha = max(Fraction(0), min(links.values()))
        collapsed = collapsed | {v for v, g in links.items() if g <= alpha}
        step = PruningStep(alpha=alpha, collapsed=collapsed)
        if alpha == steps[-1].alpha:
            steps[-1] = step
        else:
            steps.append(step)


def prune(tree: Tree, alpha: Fraction) -> Draft:
    """The smallest tree that minimises error rate + alpha x leaves, as a draft that keeps the impurities of its splits."""
    chosen = [step for step in pruning_path(tree) if step.alpha <= alpha][-1].collapsed
    drafts: dict[int, Draft] = {}
    for v in reversed(tree.nodes):
        if v.split is None or v.id in chosen:
            drafts[v.id] = DraftLeaf(label=v.label)
        else:
            drafts[v.id] = replace(to_draft_branch(v), left=drafts[v.left], right=drafts[v.right])
    return drafts[0]


def alphas_between(steps: tuple[PruningStep, ...]) -> tuple[Fraction, ...]:
    """A value of alpha inside each interval of the path: geometric means of its ends, and the last alpha itself."""
    alphas = [step.alpha for step in steps]
    inner = [Fraction((float(a) * float(b)) ** 0.5) for a, b in pairwise(alphas)]
    return (*inner, alphas[-1])


def _links(tree: Tree, error: list[int], n: int, collapsed: frozenset[int]) -> dict[int, Fraction]:
    """g(v) = (R(v) - R(T_v)) / (leaves of T_v - 1) of every branch that is still open."""
    below: dict[int, tuple[int, int]] = {}
    reached = set(_open(tree, collapsed))
    links: dict[int, Fraction] = {}
    for v in reversed(tree.nodes):
        if v.id not in reached:
            continue
        if v.split is None or v.id in collapsed:
            below[v.id] = (error[v.id], 1)
            continue
        (e0, l0), (e1, l1) = below[v.left], below[v.right]
        below[v.id] = (e0 + e1, l0 + l1)
        links[v.id] = Fraction(error[v.id] - e0 - e1, n * (l0 + l1 - 1))
    return links


def _open(tree: Tree, collapsed: frozenset[int]) -> Iterator[int]:
    stack = [0]
    while stack:
        v = tree.nodes[stack.pop()]
        yield v.id
        if v.split is not None and v.id not in collapsed:
            stack += [v.left, v.right]
