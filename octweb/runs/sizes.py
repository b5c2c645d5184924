"""List the tree sizes that a training compared, with their runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from octweb.core.problems import Conflict
from octweb.jobs.models import RunStatus
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.runs.actions import enqueue
from octweb.runs.models import TrainingRun
from trainer.methods.base import AUTO, stated_penalty
from trainer.training.claims import unseen_words

LATEST = 200  # at most this many newest runs of a data set are compared with the settings
SAME = ("dataset_id", "owner_id", "method", "test_share", "folds", "group", "time", "weight")
GONE = (RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class SizeOption:
    """A size: leaves, leaf penalty, held-out result in words, whether training chose it, and whether this model has it."""

    leaves: int
    leaf_penalty: float
    unseen: str
    chosen: bool
    here: bool


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """All compared sizes in the order of the model file. `reason` is the reason that the file states."""

    options: tuple[SizeOption, ...]
    reason: str = ""

    @property
    def chosen(self) -> SizeOption | None:
        """The size that training chose on the data, or None."""
        return next((option for option in self.options if option.chosen), None)


def size_options(model: TreeModel) -> SizeOptions | None:
    """Return the sizes that the training of a model compared, or else those of the same run with an automatic size.

    Return None if no such training is known.
    """
    run = TrainingRun.objects.filter(model=model).first()
    source = None if run is None else _choosing(run)
    if run is None or source is None or source.model is None:
        return None
    file = model_file(source.model)
    sizes = file.sizes
    if sizes is None:
        return None
    unit = str((file.certificate.get("costs") or {}).get("unit", ""))
    penalty = stated_penalty(model_file(model).parameters)
    options = tuple(
        SizeOption(
            leaves=one["leaves"],
            leaf_penalty=one["leaf_penalty"],
            unseen=unseen_words(one["unseen"], sizes["measure"], unit),
            chosen=one["chosen"],
            here=one["leaf_penalty"] == penalty,
        )
        for one in sizes["tried"]
    )
    return SizeOptions(options=options, reason=sizes["reason"])


def open_size(model: TreeModel, leaves: int, *, owner: Any) -> TrainingRun:
    """Return a run with this number of leaves: an existing one like the model's run, or a new one of `owner`.

    Raises Conflict if the model has no run, or if its training did not try this size, and like `enqueue`.
    """
    sizes = size_options(model)
    option = next((own for own in sizes.options if own.leaves == leaves), None) if sizes else None
    run = (
        TrainingRun.objects.select_related("dataset", "model__family", "family", "warm_start")
        .filter(model=model)
        .first()
    )
    if run is None:
        raise Conflict(
            "This model was not trained here, so no other sizes of it are known. Train a run on its data set."
        )
    if option is None:
        raise Conflict(f"The training did not try a tree of {leaves} leaves. Choose one of the sizes shown.")
    if option.here:
        return run
    source = _choosing(run)
    if option.chosen and source is not None:
        return source
    parameters = dict(run.parameters) | {"leaf_penalty": option.leaf_penalty}
    twin = next((run_or_option for run_or_option in _alike(run) if run_or_option.parameters == parameters), None)
    if twin is not None:
        return twin
    return enqueue(
        owner=owner,
        dataset=run.dataset,
        method=run.method,
        parameters=parameters,
        test_share=run.test_share,
        folds=run.folds,
        group=run.group,
        time=run.time,
        weight=run.weight,
        family=run.model.family if run.model is not None else run.family,
    )


def _choosing(run: TrainingRun) -> TrainingRun | None:
    """Return the run if its size was automatic.

    Otherwise, return the newest run with a model that differs only in its automatic size, or None.
    """
    if run.parameters.get("leaf_penalty") == AUTO:
        return run
    parameters = dict(run.parameters) | {"leaf_penalty": AUTO}
    return next((own for own in _alike(run) if own.parameters == parameters and own.model is not None), None)


def _alike(run: TrainingRun) -> Iterable[TrainingRun]:
    """Return runs of the same owner, data, method and evaluation that did not fail, newest first.

    Runs with deleted models are left out.
    """
    same = {name: getattr(run, name) for name in SAME}
    runs = TrainingRun.objects.filter(**same, deleted_at=None).exclude(status__in=GONE).select_related("model")
    candidates = runs.exclude(status=RunStatus.SUCCEEDED, model=None).exclude(model__deleted_at__isnull=False)
    return candidates.order_by("-created")[:LATEST]
