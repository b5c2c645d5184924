"""What is known before the search: one plane that separates two classes, and bounds from rows that lie in planes."""

from __future__ import annotations

import numpy as np

from trainer.families.oblique.instance import BRANCH, LEAF, DepthTwoErrors, ObliqueTree
from trainer.families.oblique.packing import MAX_SET_POINTS, Packing
from trainer.families.oblique.refit import drawn_tree
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.target import SearchClock, Target

PACKING = 30.0  # seconds for the bound of planes, at most two fifths of what is left
MOST_PARTED = 2_000_000  # cells; one linear program over more takes too long for a presolve


def one_plane(target: Target, clock: SearchClock) -> ObliqueTree | None:
    """The tree of one hyperplane that separates two classes, if there is one: it needs no search."""
    inst = target.instance
    if inst.counts.shape[1] != 2 or inst.most_leaves < 2 or inst.Z.size > MOST_PARTED:
        return None
    sides = [np.flatnonzero(inst.counts.argmax(axis=1) == k) for k in (0, 1)]
    if not all(map(len, sides)):
        return None
    plane = Separator(inst.Z).within(clock.until(0.2 * clock.remaining()), *sides)
    if plane is None:
        return None
    tree = inst.empty()
    tree.kind[1], tree.kind[2:4], tree.label[2:4] = BRANCH, LEAF, (0, 1)
    tree.a[1], tree.c[1] = plane.a, plane.c
    return inst.completed(tree) if inst.complete else tree


def packing(target: Target, clock: SearchClock) -> Packing | None:
    """The search for rows that lie in planes, if the numbers of leaves that it covers are all that count."""
    inst = target.instance
    known = inst.depth <= 2 or inst.most_leaves <= 3 or inst.kappa > 0
    if not known or not inst.Z.size or inst.most_leaves < 2 or clock.halted():
        return None
    X = target.units.encoding.matrix(target.problem.table)[target.units.rows]
    leaves = min(inst.most_leaves, 4 if inst.depth <= 2 else 3)
    return Packing(X, inst.counts, clock.until(min(PACKING, 0.4 * clock.remaining())), leaves)


def decomposed(
    target: Target, clock: SearchClock, packed: tuple[DepthTwoErrors, ...] | None
) -> tuple[DepthTwoErrors, ...] | None:
    """Few points in one plane: the best halves below each way to separate them at the root, unless `packed` has them already.

    None if the rows in planes do not count for this target.
    """
    search = packing(target, clock) if packed or len(target.instance.Z) <= MAX_SET_POINTS else None
    if search is None or packed is not None:
        return None if search is None else packed
    found = search.everything()
    return None if found is None else (found,)


def trees_of(target: Target, packed: tuple[DepthTwoErrors, ...]) -> list[ObliqueTree]:
    """The trees that separate the packed rows as their counts require, if planes for them exist."""
    inst = target.instance
    separator = Separator(target.instance.Z)
    trees = []
    for at in (at for one in packed for at in one.nodes if at.max() < inst.size):
        tree = drawn_tree(inst, at, separator)
        if tree is not None:
            trees.append(inst.completed(tree) if inst.complete else tree)
    return trees
