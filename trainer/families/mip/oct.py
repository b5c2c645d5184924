"""Declare `oct`: OCT over binary features, or with thresholds as variables."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.families.mip.declared import declare_method
from trainer.families.mip.first_tree import Halted
from trainer.families.mip.instance import Instance
from trainer.families.mip.oct_model import OCT
from trainer.families.mip.oct_numeric import NumericOCT
from trainer.families.mip.side.base import SideConstraint
from trainer.families.mip.thresholds import numeric_ladders, threshold_parameter
from trainer.families.mip.tree_mip import MIP_DEPTH, solve_problem
from trainer.methods.base import LEAF_PENALTY, PAPER_LAMBDA, Parameter, Settings, Solution
from trainer.methods.capabilities import Group
from trainer.methods.monitor import Monitor


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve OCT over the binary encoding of a problem."""

    def make(instance: Instance, halted: Halted, side: Sequence[SideConstraint]) -> OCT:
        if settings["thresholds"] == "variables":
            return NumericOCT(instance, numeric_ladders(problem, instance), halted=halted)
        return OCT(instance, single_features=settings["single_features"], halted=halted, side=side)

    return solve_problem(problem, settings, monitor, make)


def _check_rows(settings: Settings, names: SettingNames) -> None:
    if settings["single_features"] and settings["thresholds"] == "variables":
        raise ParameterError(
            {
                "single_features": "must be off when 'thresholds' is 'variables', which has no questions to write rows for."
            }
        )


METHOD = declare_method(
    id="oct",
    title="OCT",
    summary="The first mixed-integer program for optimal trees, with large constants; kept as a baseline.",
    paper="Bertsimas & Dunn, Optimal classification trees",
    size_hint="A hundred rows, depth 2.",
    parameters=(
        MIP_DEPTH,
        LEAF_PENALTY,
        PAPER_LAMBDA,
        threshold_parameter("variables", "one per column and its threshold as a variable"),
        Parameter(
            name="single_features",
            type="boolean",
            default=False,
            label="One row per question",
            help="Write the routing rows for each question separately, as in the original; the relaxation is weaker.",
            advanced=True,
            check=_check_rows,
        ),
    ),
    solve=solve,
    estimator="OCTClassifier",
    good_for="Only for comparing with published papers.",
    group=Group.BASELINES,
)
