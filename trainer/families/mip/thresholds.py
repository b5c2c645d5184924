"""Declare the parameter `thresholds` of the baselines OCT and BinOCT."""

from __future__ import annotations

from trainer.constraints import active_constraints
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.families.mip.instance import Instance
from trainer.families.mip.ladders import Ladders, column_ladders
from trainer.methods.base import Parameter, Settings

MAX_RUNGS = 10_000  # with more rungs, the gap between two values approaches the tolerance of solvers


def threshold_parameter(inside: str, instead: str) -> Parameter:
    """Return the parameter of a method with a threshold model; `inside` names the choice, `instead` describes it."""
    return Parameter(
        name="thresholds",
        type="choice",
        default="questions",
        choices=("questions", inside),
        label="Thresholds",
        help=f"One variable per question, or, as in the original, {instead}.",
        advanced=True,
        check=_without_constraints,
    )


def _without_constraints(settings: Settings, names: SettingNames) -> None:
    if settings["thresholds"] != "questions" and active_constraints(settings):
        message = "must be 'questions' with constraints, which need one variable per question. Change it, or leave the constraints out."
        raise ParameterError({"thresholds": message})


def numeric_ladders(problem: Problem, instance: Instance) -> Ladders:
    """Return the ladders of a problem's binary encoding. Raises ParameterError for too many thresholds."""
    ladders = column_ladders(instance, problem.binary)
    most = max((len(rungs) for rungs in ladders.rungs), default=0)
    if most > MAX_RUNGS:
        message = (
            f"A column has {most:,} thresholds, but the limit is {MAX_RUNGS:,}. "
            "Set 'binarise' to quantile-thresholds and choose 'bins'."
        )
        raise ParameterError({"thresholds": message})
    return ladders
