"""Queue, repeat, delete and purge runs, for pages, API and worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction

from octweb.core.deleting import hide, purge
from octweb.core.limits import UNITS, server_limits
from octweb.core.names import checked_name
from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.datasets.stored import refuse_without_rows
from octweb.jobs.models import FINISHED
from octweb.jobs.queue import cancel, check_waiting, queue_position, refuse_unfinished, send
from octweb.registry.document.model_files import model_file
from octweb.registry.models import Family, TreeModel
from octweb.runs import dependence
from octweb.runs.models import TrainingRun
from octweb.runs.reachable import reachable
from octweb.runs.words import run_name
from trainer.counts.objective import counted_objective
from trainer.counts.train import METHOD as COUNTED
from trainer.counts.train import check_constraints, counted_settings
from trainer.data.costs import EACH_ROW
from trainer.data.folds import check_evaluation
from trainer.data.problem import SettingNames
from trainer.data.rewards import read_rewards
from trainer.errors import ParameterError
from trainer.methods.base import Method, Settings
from trainer.registry import get
from trainer.table import ColumnKind

__all__ = [
    "cancel",
    "check_settings",
    "delete",
    "enqueue",
    "queue_position",
    "run_again",
    "run_reachable",
    "within_limits",
]

WITHOUT_ROWS = "This data set has counts and no rows."


def enqueue(  # noqa: PLR0913 - its arguments are the fields of a request
    *,
    owner: Any,
    dataset: Dataset,
    method: str,
    parameters: Mapping[str, Any] | None = None,
    test_share: float = 0.0,
    folds: int = 0,
    group: str = "",
    time: str = "",
    weight: str = "",
    name: str = "",
    warm_start: TreeModel | None = None,
    key: str = "",
    family: Family | None = None,
) -> TrainingRun:
    """Queue a run, optionally with a model's tree as start, and return it.

    Its tree becomes the next version of `family` if that is the owner's; otherwise of the name derived from the run's.
    A `key` makes the call idempotent: if the owner has a run with this key, it is returned. Raises ParameterError with
    a sentence for each invalid parameter, Conflict at the limit of jobs, and Unprocessable, also if the key was used
    for another request.
    """
    bound = {"group": group, "time": time, "weight": weight}
    digest = _digest(
        dataset,
        method,
        parameters or {},
        test_share,
        folds,
        name,
        warm_start,
        *(f"{role} {column}" for role, column in bound.items() if column),
    )
    if key and (before := _of_key(owner, key, digest)):
        return before
    asked = parameters or {}
    if dataset.counts:
        parameters = counted_parameters(
            dataset,
            method,
            asked,
            rows_needed=bool(test_share or folds or warm_start or any(bound.values())),
        )
    else:
        refuse_without_rows(dataset)
    declared = get(method)
    checked = declared.settings(parameters or {})
    values = within_limits(declared, checked.to_json(), said=asked)
    check_evaluation(test_share, folds, dataset.rows)
    check_settings(declared, checked, dataset)
    dependence.check(dataset, **bound, settings=checked.to_json())
    if warm_start is not None:
        _check_start(declared, dataset, warm_start)
    try:
        run = _create(
            owner=owner,
            dataset=dataset,
            method=declared.id,
            parameters=values,
            test_share=test_share,
            folds=folds,
            **bound,
            warm_start=warm_start,
            name=checked_name(name, most=200) or run_name(dataset.name, declared, values),
            idempotency_key=key,
            request_digest=digest if key else "",
            family=family if family is not None and family.owner_id == owner.pk else None,
        )
    except (IntegrityError, Conflict):
        # a concurrent request with the same key may have created the run
        if key and (before := _of_key(owner, key, digest)):
            return before
        raise
    return run


def counted_parameters(
    dataset: Dataset, method: str, parameters: Mapping[str, Any], *, rows_needed: bool
) -> dict[str, Any]:
    """Return the settings of a training from counts, which are few.

    Raises ParameterError for settings that need rows, and Unprocessable for other methods and evaluations.
    """
    if method != COUNTED:
        raise Unprocessable(f"{WITHOUT_ROWS} Choose '{COUNTED}', or upload the rows for '{method[:40]}'.")
    if rows_needed:
        raise Unprocessable(
            f"{WITHOUT_ROWS} Leave test share, folds, group, time, weight and start tree out. Folds are chosen when the rows are counted."
        )
    settings = counted_settings(parameters, asked=dataset.origin["asked"], depth=dataset.origin["depth"])
    columns = tuple(column["name"] for column in dataset.columns if column["role"] == "feature")
    names = SettingNames(columns=columns, classes=tuple(dataset.profile["classes"]))
    class_rows = np.array(dataset.profile["class_counts"], np.int64)
    counted_objective(settings, names, class_rows, rows=dataset.rows, suppressed=False)  # refuses impossible costs
    check_constraints(settings, names, class_rows, suppressed=False)
    return settings.to_json()


@transaction.atomic
def _create(**values: Any) -> TrainingRun:
    check_waiting(TrainingRun, values["owner"])
    run = TrainingRun.objects.create(**values)
    transaction.on_commit(lambda: send(run))
    return run


def _of_key(owner: Any, key: str, digest: str) -> TrainingRun | None:
    """Return the owner's run with this key, or None. Raises Unprocessable if its request differs."""
    run = TrainingRun.objects.filter(owner=owner, idempotency_key=key).first()
    if run is not None and run.request_digest != digest:
        raise Unprocessable("This Idempotency-Key was used for another request. Take a new key for a new run.")
    return run


def _digest(dataset: Dataset, method: str, parameters: Mapping[str, Any], *rest: Any) -> str:
    """Return the SHA-256 of a request."""
    text = json.dumps([str(dataset.pk), method, sorted(parameters.items()), *map(str, rest)], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def run_again(run: TrainingRun, *, owner: Any, dataset: Dataset | None = None) -> TrainingRun:
    """Queue a run with the same settings, on the same or other data.

    Raises Conflict while the run is active, and like `enqueue`.
    """
    if run.status not in FINISHED:
        raise Conflict("The run has not ended yet. Wait for its end, or stop it first.")
    other = dataset is not None and dataset.pk != run.dataset_id
    return enqueue(
        owner=owner,
        dataset=dataset or run.dataset,
        method=run.method,
        parameters=run.parameters,
        test_share=run.test_share,
        folds=run.folds,
        group=run.group,
        time=run.time,
        weight=run.weight,
        name="" if other else run.name,
        warm_start=run.warm_start,
        family=_family(run),
    )


def _family(run: TrainingRun) -> Family | None:
    """Return the current family of the run's model, which may have been renamed.

    Without a model, return the requested family.
    """
    return run.model.family if run.model is not None else run.family


def run_reachable(run: TrainingRun, *, owner: Any) -> TrainingRun:
    """Queue a run with the constraint at a reachable value. Raises Conflict if none is known, and like `enqueue`."""
    request = reachable(run)
    if request is None:
        raise Conflict("It is not known what can be reached. Relax one of the constraints in a new run.")
    return enqueue(
        owner=owner,
        dataset=run.dataset,
        method=run.method,
        parameters=request.parameters,
        test_share=run.test_share,
        folds=run.folds,
        group=run.group,
        time=run.time,
        weight=run.weight,
        warm_start=run.warm_start,
        family=_family(run),
    )


def delete(run: TrainingRun) -> None:
    """Soft-delete a finished run. Its model stays. Raises Conflict for an active run."""
    refuse_unfinished(run)
    hide(run)


def tidy(now: datetime) -> int:
    """Purge deleted runs, models and data sets that can no longer be restored. Return how many."""
    return purge(TrainingRun, now) + purge(TreeModel, now) + datasets.purge(now)


def within_limits(method: Method, values: dict[str, Any], *, said: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the server's limits on time, memory and threads to `values`, and return them.

    Missing values, and defaults above a limit, become the limit. Raises ParameterError if a value in `said`, the user's
    input, exceeds a limit.
    """
    errors = {}
    for name, limit in server_limits().items():
        if method.parameter(name) is None:
            continue
        if values.get(name) is None or (said.get(name) is None and values[name] > limit):
            values[name] = limit
        elif values[name] > limit:
            errors[name] = f"this server allows at most {limit:,} {UNITS[name]}; you asked for {values[name]:g}."
    if errors:
        raise ParameterError(errors)
    return values


def _check_start(method: Method, dataset: Dataset, model: TreeModel) -> None:
    """Raise ParameterError unless the method supports a start tree and the data contain the tree's columns."""
    if not method.warm_start:
        raise ParameterError(
            {
                "warm_start": f"'{method.id}' builds every tree from the start, so it cannot begin with another one. Leave the start tree out."
            }
        )
    tree = model_file(model).tree
    kinds = {c["name"]: c["kind"] for c in dataset.columns if c.get("role") == "feature"}
    for j in tree.used_columns:
        column = tree.schema[j]
        if kinds.get(column.name) != str(column.kind):
            difference = f"is {kinds[column.name]}" if column.name in kinds else "is not among the columns"
            message = f"{model} reads '{column.name}' as {column.kind}; in '{dataset.name}' it {difference}."
            raise ParameterError({"warm_start": f"{message} Choose a tree for these columns."})


def check_settings(method: Method, checked: Settings, dataset: Dataset) -> None:
    """Raise ParameterError unless the settings fit each other and the columns and classes of the data.

    Raises Unprocessable if the method needs two classes and the data have another number. Data sets without known
    classes are not checked.
    """
    classes = tuple(dataset.profile.get("classes") or ())
    if not classes:
        return
    if method.two_classes and len(classes) != 2:
        raise Unprocessable(
            f"The method '{method.id}' needs two classes; '{dataset.target}' has {len(classes)}. Choose another method."
        )
    if checked.get("costs") == EACH_ROW:
        raise ParameterError(
            {
                "costs": f"'{EACH_ROW}' stands for an array of costs, which only the Python library takes. Write costs or rewards."
            }
        )
    features = [c for c in dataset.columns if c.get("role") == "feature"]
    columns = tuple(c["name"] for c in features)
    texts = tuple(c["name"] for c in features if c["kind"] == ColumnKind.CATEGORICAL)
    names = SettingNames(columns=columns, classes=classes, texts=texts)
    rewards = read_rewards(str(checked.get("costs") or ""), names)
    if rewards is not None:  # columns of rewards are not features, and each row has its own costs
        left = tuple(name for name in columns if name not in rewards.columns)
        if not left:
            raise ParameterError(
                {"costs": "every column holds rewards, so none is left for questions. Add a column to the data set."}
            )
        names = replace(names, columns=left)
        checked = Settings(checked.to_json() | {"costs": EACH_ROW})
    method.check(checked, names)
