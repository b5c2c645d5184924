"""Prune splits of a model that change no prediction."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from octweb.core.ownership import may_change
from octweb.core.problems import Unprocessable
from octweb.demo.visits import refuse_more
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.models import TreeModel
from trainer.errors import ModelFileError
from trainer.tree.idle import pruned


def prune(model: TreeModel, *, by: Any) -> TreeModel:
    """Store the pruned tree as a draft of `by`, and return it. The model itself is not changed.

    Raises PermissionDenied unless `by` is the owner or an administrator, Conflict for a demo visitor at the limit, and
    Unprocessable if no split can be removed.
    """
    if not may_change(by, model):
        raise PermissionDenied(
            "Only the owner of a model and administrators may make a new version of it. Ask one of them."
        )
    try:
        smaller = pruned(model_file(model))
    except ModelFileError as error:
        raise Unprocessable(str(error)) from error
    mine = model.family.owner_id == by.pk
    with transaction.atomic():
        refuse_more(by)
        return actions.register(
            owner=by,
            document=smaller.to_json(),
            dataset=model.dataset,
            team=model.team_id,
            title=model.title,
            name=model.family.name if mine else None,
        )
