"""Compare the predictions of all good trees of a model."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.workbench import actions
from octweb.workbench.models import Step, StepKind, StepState, Workbench
from trainer.dtypes import FloatArray
from trainer.errors import TrainerError
from trainer.tree.numbers import percent_text
from trainer.workbench.ballot import MOST_TREES, ballot_from_json
from trainer.workbench.requests import counts_good_trees

SHARE = 100  # a good tree may cost 1 / SHARE of the training rows more than the best tree
COST_SHARE = "0.01"  # if answers have costs, a good tree may cost this share of the least cost more


def ask(model: TreeModel, user: Any) -> Step:
    """Return the step that counts the good trees of the model.

    If there is none, or if it failed, request the count in a workbench of the user. Raises what `actions.open_for` and
    `actions.ask_good_trees` raise.
    """
    with transaction.atomic():
        TreeModel.objects.select_for_update().get(pk=model.pk)  # the lock lets concurrent requests start only one count
        step = _step(model)
        if step is not None and step.state != StepState.FAILED:
            actions.wake_if_needed(step.workbench)
            return step
        open_bench = Workbench.objects.kept().filter(base=model, owner=user).order_by("created").last()
        bench = open_bench or actions.open_for(owner=user, model=model)
        file = model_file(model)
        rows = max(1, file.tree.nodes[0].rows // SHARE)
        slack = {"slack": COST_SHARE} if file.parameters.get("costs") else {"slack_rows": str(rows)}
        return actions.ask_good_trees(bench, slack | {"ballot": MOST_TREES})


def agreement(model: TreeModel) -> dict[str, Any] | None:
    """Return the `state` of the count of a model's good trees and, once it is done, numbers and a sentence.

    Return None if the good trees of this model cannot be counted. The result reveals training rows, so the caller must
    show it only to the owner and administrators.
    """
    if model.dataset_id is None or not counts_good_trees(model.method, model_file(model).parameters):
        return None
    step = _step(model)
    if step is None or step.state == StepState.FAILED:
        return {"state": "not counted"} if model.dataset is not None and model.dataset.file else None
    if step.state != StepState.DONE:
        return {"state": "counting"}
    result = step.result
    count = result.get("count")
    rows = result.get("rows")
    if not count or not rows:
        return {"state": "too many", "bench": str(step.workbench_id)}
    numbers = {
        "trees": count,
        "slack_rows": int(step.request["slack_rows"]) if "slack_rows" in step.request else None,
        "slack": step.request.get("slack"),
        "depends": rows["depends"],
        "of": rows["of"],
    }
    return {"state": "counted", **numbers, "sentence": _sentence(**numbers), "bench": str(step.workbench_id)}


def _sentence(*, trees: int, slack_rows: int | None, slack: str | None, depends: int, of: int) -> str:
    if slack is not None:
        most = percent_text(float(slack))
    else:
        most = f"{slack_rows:,} {'row' if slack_rows == 1 else 'rows'}"
    limit = f"at most {most} more than the best"
    if trees == 1:
        return f"No other tree of this size costs {limit}."
    if not depends:
        return f"All {trees:,} good trees give the same answer for all {of:,} training rows. Each costs {limit}."
    return (
        f"The answer for {depends:,} of {of:,} training rows depends on which good tree was chosen. "
        f"{trees:,} trees cost {limit}."
    )


def votes(model: TreeModel, row: FloatArray) -> dict[str, Any] | None:
    """Return how many good trees predict each class for a row, float64 (columns,).

    Return None if they are not counted or too many, if a split meets an empty cell, or if the model lacks one of their columns.
    """
    step = _step(model)
    if step is None or step.state != StepState.DONE or not step.result.get("ballot"):
        return None
    tree = model_file(model).tree
    try:
        counts = ballot_from_json(step.result["ballot"], tree.schema).votes(row, len(tree.classes))
    except TrainerError:  # the file of the model does not have one of the columns
        return None
    if counts is None:
        return None
    answers = {label: n for label, n in zip(tree.classes, counts, strict=True) if n}
    number = step.result["count"]
    return {
        "counted": number, "at_least": None, "listed": number, "slack": step.request.get("slack"), "slack_rows": step.request.get("slack_rows"),
        "answers": answers, "depends": len(answers) > 1, "all_listed": True,
    }  # fmt: skip


def _step(model: TreeModel) -> Step | None:
    """Return the newest count that stores its trees, or None if there is none. Only `ask` requests such counts."""
    steps = Step.objects.filter(
        workbench__base=model, workbench__deleted_at=None, kind=StepKind.GOOD, request__has_key="ballot"
    )
    return steps.select_related("workbench").order_by("created").last()
