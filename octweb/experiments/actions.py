"""Start, stop and use experiments, for pages and API."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from octweb.core.deleting import hide, purge
from octweb.core.names import checked_name
from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets.models import Dataset
from octweb.datasets.stored import refuse_without_rows
from octweb.experiments.models import Candidate, Experiment
from octweb.experiments.plan import KINDS, Trial, evaluation, plan
from octweb.jobs.models import FINISHED, RunStatus
from octweb.jobs.queue import cancel, check_waiting, send
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs import dependence
from octweb.runs.models import TrainingRun
from octweb.runs.words import family_name, run_name
from trainer.data.folds import check_evaluation
from trainer.errors import ParameterError
from trainer.registry import get

MOST_CANDIDATES = 40
FOLDS = 5
LONGEST_FIT = 60.0
OPEN = (RunStatus.QUEUED, RunStatus.RUNNING)


def start(  # noqa: PLR0913 - its arguments are the fields of a request
    *,
    owner: Any,
    dataset: Dataset,
    kinds: Collection[str] = KINDS,
    time_limit: float = LONGEST_FIT,
    folds: int = FOLDS,
    seed: int = 0,
    test_share: float | None = None,
    nested: bool | None = None,
    group: str = "",
    time: str = "",
    weight: str = "",
    costs: str | Mapping[str, Any] = "",
    name: str = "",
    candidates: Iterable[Mapping[str, Any]] | None = None,
) -> Experiment:
    """Create an experiment and queue its candidates: those of the plan, or `candidates`, methods with parameters.

    Without `test_share` and `nested`, the number of rows decides how the choice is evaluated. `costs` apply to every
    candidate without its own costs, and are used to rank candidates. Raises ParameterError, Unprocessable and Conflict.
    """
    refuse_without_rows(dataset)
    share, pairs = evaluation(dataset) if test_share is None and nested is None else (test_share or 0.0, bool(nested))
    _check(dataset, kinds, folds, share, pairs, time_limit)
    requested = [Trial(method=str(c["method"]), parameters=dict(c.get("parameters") or {})) for c in candidates or ()]
    planned = plan(dataset, kinds=kinds, time_limit=time_limit)
    trials = requested or list(planned.trials)
    if len(trials) > MOST_CANDIDATES:
        raise ParameterError(
            {"candidates": f"there are {len(trials)}; an experiment has at most {MOST_CANDIDATES}. Leave some out."}
        )
    if not trials:
        raise Unprocessable("No method fits these data with these choices. Allow other questions, or more time.")
    shared = {"costs": costs} if costs else {}
    checked = [_check_trial(dataset, replace(t, parameters=shared | t.parameters), time_limit, seed) for t in trials]
    for _, parameters in checked[: None if weight else 1]:
        dependence.check(dataset, group=group, time=time, weight=weight, settings=parameters)
    with transaction.atomic():
        check_waiting(Candidate, owner)
        experiment = Experiment.objects.create(
            owner=owner,
            dataset=dataset,
            folds=folds,
            seed=seed,
            test_share=share,
            nested=pairs,
            time_limit=time_limit,
            group=group,
            time=time,
            weight=weight,
            skipped=[] if requested else list(planned.skipped),
            name=checked_name(name, most=200) or f"Best tree for {dataset.name}",
        )
        for number, (method, parameters) in enumerate(checked):
            _queue(experiment, number, method, parameters)
    return experiment


def stop(experiment: Experiment) -> Experiment:
    """Cancel waiting candidates, and stop running ones. Finished folds are kept. Raises Conflict if none is open."""
    waiting = list(experiment.candidates.filter(status__in=OPEN))
    if not waiting:
        raise Conflict("The experiment has already ended, so it cannot be stopped.")
    for candidate in waiting:
        try:
            cancel(candidate)
        except Conflict:
            continue  # this candidate has ended meanwhile
    return experiment


def go_on(experiment: Experiment) -> Experiment:
    """Queue stopped and failed candidates again. Finished folds are reused. Raises Conflict if there are none."""
    again = experiment.candidates.filter(status__in=(RunStatus.CANCELLED, RunStatus.FAILED))
    with transaction.atomic():
        check_waiting(Candidate, experiment.owner)
        ids = list(again.values_list("pk", flat=True))
        changed = again.update(
            status=RunStatus.QUEUED, cancel_requested=False, error="", log="", finished=None, attempt=0
        )
        if not changed:
            raise Conflict("No candidate was stopped or failed, so there is nothing to continue.")
        for candidate in Candidate.objects.filter(pk__in=ids):
            transaction.on_commit(lambda c=candidate: send(c))
    return experiment


def open_candidate(candidate: Candidate) -> TreeModel:
    """Make the tree of a candidate a model, and return it. The first opened candidate becomes the choice.

    Its result on the held-out rows is shown from then on. Raises Conflict.
    """
    with transaction.atomic():
        locked = (
            Candidate.objects.select_for_update().select_related("experiment__dataset", "owner").get(pk=candidate.pk)
        )
        if not locked.is_done:
            raise Conflict(
                "This candidate has no tree. Wait until all its folds are done, "
                "or continue the experiment if the candidate was stopped or failed."
            )
        experiment = locked.experiment
        if experiment.chosen_id is None:
            Experiment.objects.filter(pk=experiment.pk, chosen=None).update(chosen=locked, chosen_at=timezone.now())
        if locked.model is not None:
            if locked.model.deleted_at is not None:
                raise Conflict("The model of this candidate was deleted. Bring it back under “Recently deleted”.")
            return locked.model
        method = get(locked.method)
        model = registry.register(
            owner=locked.owner,
            document=json.loads(locked.document),
            dataset=experiment.dataset,
            title=run_name(experiment.dataset.name, method, locked.parameters),
            name=family_name(experiment.dataset.base_name, method),
        )
        Candidate.objects.filter(pk=locked.pk).update(model=model)
    return model


def retrain(candidate: Candidate, *, owner: Any) -> TrainingRun:
    """Queue a run with the candidate's settings on all rows, including held-out ones. Raises Conflict."""
    if not candidate.is_done:
        raise Conflict("This candidate is not done. Wait until all its folds are done.")
    run = runs.enqueue(
        owner=owner,
        dataset=candidate.experiment.dataset,
        method=candidate.method,
        parameters=candidate.parameters,
        folds=candidate.experiment.folds,
        group=candidate.experiment.group,
        time=candidate.experiment.time,
        weight=candidate.experiment.weight,
        family=candidate.model.family if candidate.model is not None else None,
    )
    Candidate.objects.filter(pk=candidate.pk).update(retrained=run)
    return run


def delete(experiment: Experiment) -> None:
    """Soft-delete an experiment that has ended. It can be restored for some weeks, and opened models stay."""
    if experiment.candidates.exclude(status__in=FINISHED).exists():
        raise Conflict("The experiment has not ended yet. Stop it first.")
    hide(experiment)


def tidy(now: datetime) -> int:
    """Purge experiments whose time to restore them is over, and return how many."""
    return purge(Experiment, now)


def _check(dataset: Dataset, kinds: Collection[str], folds: int, share: float, nested: bool, time_limit: float) -> None:
    errors = {}
    if unknown := sorted(set(kinds) - set(KINDS)):
        errors["kinds"] = f"'{unknown[0]}' is not one of {', '.join(KINDS)}."
    if not time_limit > 0:
        errors["time_limit"] = f"must be more than 0 seconds; it is {time_limit:g}."
    if nested and folds < 3:
        errors["folds"] = f"must be at least 3 with nested folds; it is {folds}."
    if folds < 2:
        errors["folds"] = f"must be at least 2; it is {folds}."
    if errors:
        raise ParameterError(errors)
    check_evaluation(share, folds, dataset.rows)


def _check_trial(dataset: Dataset, trial: Trial, time_limit: float, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return the method of a trial, and its parameters, checked and within this server's limits."""
    method = get(trial.method)
    parameters = dict(trial.parameters)
    parameters.setdefault("time_limit", time_limit)
    if method.parameter("seed"):
        parameters.setdefault("seed", seed)
    settings = method.settings(parameters)
    runs.check_settings(method, settings, dataset)
    return method, runs.within_limits(method, settings.to_json(), said=parameters)


def _queue(experiment: Experiment, number: int, method: Any, parameters: dict[str, Any]) -> None:
    candidate = Candidate.objects.create(
        owner=experiment.owner,
        experiment=experiment,
        number=number,
        method=method.id,
        parameters=parameters,
        name=run_name("", method, parameters).removeprefix(", "),
    )
    transaction.on_commit(lambda: send(candidate))
