"""Build and check the explain options of a batch prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from rest_framework.exceptions import ValidationError

from octweb.batch.models import BatchPrediction
from octweb.registry import hooks
from octweb.registry.api.explain import may_see_rows
from octweb.registry.document import units
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from trainer.errors import ParameterError
from trainer.explain.columns import ExplainOptions, explain_options
from trainer.explain.least import COLUMNS, least_of
from trainer.explain.permission import permissions
from trainer.explain.statistics import statistics_of_model, with_costs

SHARE = 0.6  # share of the job's time for explanations; reading, predicting and storing take the rest


def wishes_of(job: BatchPrediction) -> ExplainOptions:
    """Return the explain options for the child process.

    For users who may not see the training rows, units are rounded.
    """
    known, source = units.statistics_of(job.model, inside=may_see_rows(job.owner, job.model))
    change = {**hooks.column_permissions(job.model), **job.change}
    seconds = SHARE * settings.MAX_BATCH_SECONDS
    tree = model_file(job.model).tree
    return explain_options(tree, known, source, change=change, cost=job.cost, seconds=seconds, least=job.least)


def check(model: TreeModel, explain: bool, change: Mapping[str, Any], cost: Mapping[str, Any], least: str) -> None:
    """Raise ValidationError for options that do not fit the model, or that are set without `explain`.

    The error names the member.
    """
    tree = model_file(model).tree
    tries: dict[str, Callable[[], object]] = {
        "change": lambda: permissions(tree.schema, change),
        "cost": lambda: with_costs(tree.schema, statistics_of_model(tree), cost),
        "least": lambda: least_of(least),
    }
    for (member, attempt), is_set in zip(tries.items(), (change, cost, least != COLUMNS), strict=True):
        if is_set and not explain:
            raise ValidationError({member: "Only valid together with explain=true."})
        try:
            attempt()
        except ParameterError as error:
            raise ValidationError({member: str(error)}) from error
