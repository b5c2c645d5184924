"""Solve or bound easy instances before the model is built."""

from __future__ import annotations

import numpy as np

from trainer.families.oblique.instance import BRANCH, LEAF, DepthTwoErrors, ObliqueTree
from trainer.families.oblique.packing import MAX_SET_POINTS, Packing
from trainer.families.oblique.refit import separate_leaves
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.target import SearchClock, Target

MAX_PACKING_SECONDS = 30.0  # time for the bound of planes; at most two fifths of the remaining time, too
MAX_SEPARATOR_CELLS = 2_000_000  # limit on the cells of a linear program, which would take too long otherwise


def separate_by_one_plane(target: Target, clock: SearchClock) -> ObliqueTree | None:
    """Return the tree of one hyperplane that separates two classes; None if none is found."""
    inst = target.instance
    if inst.counts.shape[1] != 2 or inst.most_leaves < 2 or inst.Z.size > MAX_SEPARATOR_CELLS:
        return None
    sides = [np.flatnonzero(inst.counts.argmax(axis=1) == k) for k in (0, 1)]
    if not all(map(len, sides)):
        return None
    plane = Separator(inst.Z).plane_within(clock.until(0.2 * clock.remaining()), *sides)
    if plane is None:
        return None
    tree = inst.empty()
    tree.kind[1] = BRANCH
    tree.kind[2:4] = LEAF
    tree.label[2:4] = (0, 1)
    tree.a[1] = plane.a
    tree.c[1] = plane.c
    return inst.complete_to_depth(tree) if inst.complete else tree


def make_packing(target: Target, clock: SearchClock) -> Packing | None:
    """Return the search for rows that lie in planes; None if it does not cover all relevant numbers of leaves."""
    inst = target.instance
    covered = inst.depth <= 2 or inst.most_leaves <= 3 or inst.kappa > 0
    if not covered or not inst.Z.size or inst.most_leaves < 2 or clock.is_over():
        return None
    X = target.units.encoding.matrix(target.problem.table)[target.units.rows]
    leaves = min(inst.most_leaves, 4 if inst.depth <= 2 else 3)
    return Packing(X, inst.counts, clock.until(min(MAX_PACKING_SECONDS, 0.4 * clock.remaining())), leaves)


def decompose_root(
    target: Target, clock: SearchClock, packed: tuple[DepthTwoErrors, ...] | None
) -> tuple[DepthTwoErrors, ...] | None:
    """Solve few points in one plane by decomposition at the root, unless `packed` has the result.

    Returns None if the method does not apply.
    """
    search = make_packing(target, clock) if packed or len(target.instance.Z) <= MAX_SET_POINTS else None
    if search is None or packed is not None:
        return None if search is None else packed
    errors = search.solve_all()
    return None if errors is None else (errors,)


def build_trees(target: Target, packed: tuple[DepthTwoErrors, ...]) -> list[ObliqueTree]:
    """Return the trees of the packed sets whose splits are separable."""
    inst = target.instance
    separator = Separator(target.instance.Z)
    trees = []
    for at in (at for one in packed for at in one.nodes if at.max() < inst.size):
        tree = separate_leaves(inst, at, separator)
        if tree is not None:
            trees.append(inst.complete_to_depth(tree) if inst.complete else tree)
    return trees
