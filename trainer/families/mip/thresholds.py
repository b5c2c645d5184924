"""The choice between one variable per question and thresholds inside of the model, for the baselines that have both."""

from __future__ import annotations

from trainer.constraints import active_constraints
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.families.mip.instance import Instance
from trainer.families.mip.ladders import Ladders, column_ladders
from trainer.methods.base import Parameter, Settings

MAX_RUNGS = 10_000  # beyond it the gap of two values comes near to the tolerance of the solvers


def threshold_parameter(inside: str, instead: str) -> Parameter:
    """The parameter of a method with a model that can hold the thresholds itself: a choice named `inside`; `instead` says how."""
    return Parameter(
        name="thresholds", type="choice", default="questions", choices=("questions", inside), label="Thresholds",
        help=f"One variable per question, or, as in the original, {instead}.", advanced=True,
        check=_without_constraints,
    )  # fmt: skip


def _without_constraints(settings: Settings, names: SettingNames) -> None:
    if settings["thresholds"] != "questions" and active_constraints(settings):
        words = "Constraints need one variable per question; leave this at 'questions', or drop the constraints."
        raise ParameterError({"thresholds": words})


def numeric_ladders(problem: Problem, instance: Instance) -> Ladders:
    """The ladders of a problem's binary encoding; raises ParameterError with too many thresholds."""
    ladders = column_ladders(instance, problem.binary)
    most = max((len(rungs) for rungs in ladders.rungs), default=0)
    if most > MAX_RUNGS:
        words = (
            f"A column has {most:,} thresholds; {MAX_RUNGS:,} are possible here. "
            "Set 'binarise' to quantile-thresholds and choose 'bins'."
        )
        raise ParameterError({"thresholds": words})
    return ladders
