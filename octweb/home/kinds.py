"""Define the kinds of objects that users can delete, and the consequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.text import capfirst

from octweb.batch import actions as batch
from octweb.batch.models import BatchPrediction
from octweb.core.deleting import bring_back
from octweb.core.ownership import Deletable
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.experiments import actions as experiments
from octweb.experiments.models import Experiment
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.workbench import actions as workbenches
from octweb.workbench.models import Workbench
from trainer.tree.numbers import count_words


@dataclass(frozen=True, kw_only=True)
class DeletableKind:
    """A kind of object that users can delete, with what pages need to delete and restore one.

    `depends` returns sentences about the consequences of a deletion. `after` is the page shown after it.
    """

    model: type[Deletable]
    noun: str
    delete: Callable[[Any], None]
    page: str
    after: str
    depends: Callable[[Any], list[str]]
    bring_back: Callable[[Any], None] = bring_back


def users_of(thing: Any) -> list[tuple[str, str]]:
    """Return URL and label of the lists of a data set's runs, experiments and workbenches. Empty for other kinds."""
    if not isinstance(thing, Dataset):
        return []
    links = [("searches", "See its runs and experiments")] if _uses(thing, "runs", "experiments") else []
    links += [("drafts", "See its workbenches")] if _uses(thing, "workbenches") else []
    return [(f"{reverse(page)}?{urlencode({'q': thing.name})}", words) for page, words in links]


def _uses(dataset: Dataset, *names: str) -> bool:
    return any(getattr(dataset, name).kept().exists() for name in names)


def _of_dataset(dataset: Dataset) -> list[str]:
    models = dataset.models.kept().count()
    were = "was" if models == 1 else "were"
    return (
        [capfirst(f"{count_words(models, 'model')} {were} trained on it: they stay, without their rows.")]
        if models
        else []
    )


def _of_run(run: TrainingRun) -> list[str]:
    return ["Its training history is deleted too."] + ([f"Its model {run.model} is kept."] if run.model_id else [])


def _of_experiment(experiment: Experiment) -> list[str]:
    opened = experiment.candidates.exclude(model=None).count()
    were = "was" if opened == 1 else "were"
    stay = [capfirst(f"{count_words(opened, 'model')} that {were} opened stay.")] if opened else []
    return ["Its leaderboard goes with it.", *stay]


def _of_model(model: TreeModel) -> list[str]:
    consequences = []
    if shares := model.shares.count():
        consequences.append(f"It is shared with {count_words(shares, 'person', 'people')}, who can no longer use it.")
    if predicted := model.predictions.kept().count():
        stays = "its answers stay" if predicted == 1 else "their answers stay"
        consequences.append(
            capfirst(
                f"{count_words(predicted, 'file')} predicted with it: {stays}; a file that still waits is refused."
            )
        )
    if edited := model.workbenches.kept().count():
        stays = "stays and can be worked at" if edited == 1 else "stay and can be worked at"
        consequences.append(capfirst(f"{count_words(edited, 'workbench', 'workbenches')} that began with it {stays}."))
    return consequences


def _of_workbench(bench: Workbench) -> list[str]:
    consequences = [f"Its {count_words(bench.steps.count(), 'step')}, wishes and prices go with it."]
    if saved := workbenches.count_saved_versions(bench):
        was = "that was saved from it stays" if saved == 1 else "that were saved from it stay"
        consequences.append(capfirst(f"{count_words(saved, 'version')} {was}."))
    return consequences + (
        [] if bench.is_finished else ["Its process ends; a search under way goes on when it is back."]
    )


def _of_prediction(job: BatchPrediction) -> list[str]:
    if not job.is_finished:
        return ["It has not ended. Deleting stops it; when it is brought back it starts from the beginning."]
    return ["Its answers go with it."] if job.is_ready else []


KINDS = {
    "dataset": DeletableKind(
        model=Dataset, noun="data set", delete=datasets.delete,
        page="datasets:detail", after="datasets:list", depends=_of_dataset,
    ),
    "run": DeletableKind(
        model=TrainingRun, noun="run", delete=runs.delete,
        page="runs:detail", after="searches", depends=_of_run,
    ),
    "experiment": DeletableKind(
        model=Experiment, noun="experiment", delete=experiments.delete,
        page="experiments:detail", after="searches", depends=_of_experiment,
    ),
    "workbench": DeletableKind(
        model=Workbench, noun="workbench", delete=workbenches.delete, bring_back=workbenches.bring_back,
        page="workbench:detail", after="drafts", depends=_of_workbench,
    ),
    "model": DeletableKind(
        model=TreeModel, noun="model", delete=registry.delete,
        page="registry:detail", after="registry:list", depends=_of_model,
    ),
    "prediction": DeletableKind(
        model=BatchPrediction, noun="predicted file", delete=batch.delete, bring_back=batch.bring_back,
        page="batch:detail", after="decisions", depends=_of_prediction,
    ),
}  # fmt: skip
