"""Declare the method `binoct`: BinOCT over binary features, or with threshold bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainer.data.problem import Problem
from trainer.errors import InfeasibleError
from trainer.families.mip.binoct_bits import BitsBinOCT
from trainer.families.mip.binoct_model import BinOCT
from trainer.families.mip.declared import declare_method
from trainer.families.mip.first_tree import Halted
from trainer.families.mip.instance import Instance
from trainer.families.mip.side.base import SideConstraint
from trainer.families.mip.side.columns import MaxColumns, RelaxedColumns
from trainer.families.mip.side.leaves import MaxLeaves, RelaxedLeaves
from trainer.families.mip.thresholds import numeric_ladders, threshold_parameter
from trainer.families.mip.tree_mip import MIP_DEPTH, solve_problem
from trainer.methods.base import Settings, Solution
from trainer.methods.capabilities import Example, Group
from trainer.methods.monitor import Monitor


def _check_leaves(instance: Instance, side: Sequence[SideConstraint]) -> None:
    """Raise InfeasibleError if fewer leaves are allowed than a complete tree has."""
    leaves = 1 << instance.depth
    limit = min((c.limit for c in side if isinstance(c, MaxLeaves)), default=leaves)
    if limit < leaves:
        raise InfeasibleError(
            f"BinOCT builds only complete trees: every tree of depth {instance.depth} has {leaves} leaves, and max_leaves is "
            f"{limit}. Lower the depth, or take a method that builds smaller trees. "
            f"Everything else can be satisfied with {leaves} leaves.",
            best=leaves,
            of=RelaxedLeaves.of,
        )


def _check_columns(instance: Instance, side: Sequence[SideConstraint]) -> None:
    """Raise InfeasibleError if no column is allowed, since a complete tree needs one."""
    required = min(1, instance.depth)
    if min((c.limit for c in side if isinstance(c, MaxColumns)), default=required) < required:
        raise InfeasibleError(
            f"BinOCT builds only complete trees: every tree of depth {instance.depth} asks about at least one column. "
            "Everything else can be satisfied with 1 column.",
            best=required,
            of=RelaxedColumns.of,
        )


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve BinOCT over the binary encoding of a problem."""

    def make(instance: Instance, halted: Halted, side: Sequence[SideConstraint]) -> BinOCT:
        _check_leaves(instance, side)
        # without features a complete tree predicts like a leaf, but it still uses a column
        if not len(instance.F) or len(side) == 1:
            _check_columns(instance, side)
        if not len(instance.F):
            instance = replace(instance, depth=0)
        if settings["thresholds"] == "bits":
            return BitsBinOCT(instance, numeric_ladders(problem, instance), halted=halted)
        return BinOCT(instance, halted=halted, side=side)

    return solve_problem(problem, settings, monitor, make)


METHOD = declare_method(
    id="binoct",
    title="BinOCT",
    summary="The most accurate complete tree of a given depth, one large row for each node and question; a baseline.",
    paper="Verwer & Zhang, Learning optimal classification trees using a binary linear program formulation",
    complete=True,
    size_hint="A hundred rows, depth 2. There is no leaf penalty.",
    claim="Optimal: no tree of this depth over the encoded questions classifies more training rows correctly.",
    parameters=(
        MIP_DEPTH,
        threshold_parameter("bits", "one per column, and bits that search for its threshold"),
    ),
    solve=solve,
    estimator="BinOCTClassifier",
    good_for="Complete trees, no leaf penalty.",
    group=Group.BASELINES,
    example=Example(options=("--depth", "2")),
)
