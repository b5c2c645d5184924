"""List the versions of a model, and find related models and steps."""

from __future__ import annotations

import itertools
from typing import Any

from octweb.core.faults import DamagedDocument
from octweb.core.methods import title_of
from octweb.registry.document.claims import claim_badges
from octweb.registry.document.difference import compare_with_served
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.lifecycle.actions import return_step
from octweb.registry.models import ReviewEvent, State, TreeModel
from octweb.registry.page.scene import ModelScene
from trainer.methods.base import stated_penalty
from trainer.tree.changes import tree_changes
from trainer.tree.describe import counted_words
from trainer.tree.numbers import count_words, percent_text

SHOWN = 30
CHANGES_SHOWN = 10
ROWS_COUNTED = 3  # pairs of versions; few, because each pair needs the rows of two models


def count_versions(scene: ModelScene) -> int | None:
    """Return the number of versions that the user may read. None if this is the only one."""
    number = _visible(scene).count()
    return number if number > 1 else None


def version_records(scene: ModelScene) -> list[dict[str, Any]]:
    """Return the newest readable versions, newest first: claims, method, settings, misclassified training rows."""
    records = []
    for model in _visible(scene).select_related("owner", "family").order_by("-version")[:SHOWN]:
        file = model_file(model)
        train = file.metrics.get("train") or {}
        records.append(
            {
                "model": model,
                "claims": claim_badges(model),
                "what": ", ".join([title_of(model.method), *_settings(dict(file.parameters))]),
                "wrong": train["n"] - train["correct"] if train.get("n") else None,
                "counted": counted_words(file.certificate),
                "here": model.pk == scene.model.pk,
            }
        )
    return records


def version_changes(scene: ModelScene) -> list[dict[str, Any]]:
    """Return how each version, newest first, differs from the previous one.

    The difference is in words and, if the user may see the rows, in rows.
    """
    models = list(_visible(scene).select_related("family", "dataset").order_by("-version")[: CHANGES_SHOWN + 1])
    changes = []
    for place, (model, before) in enumerate(itertools.pairwise(models)):
        try:
            words = tree_changes(model_file(before).tree, model_file(model).tree)
        except DamagedDocument:
            continue
        inside = all(may_see_rows(scene.user, version) for version in (model, before))
        counted = inside and words and place < ROWS_COUNTED
        rows = compare_with_served(model, before) if counted else None
        changes.append({"model": model, "before": before, "words": words, "rows": rows})
    return changes


def smaller(scene: ModelScene) -> TreeModel | None:
    """Return the smallest tree of the same data set that is at least as accurate on unseen rows, or None."""
    model = scene.model
    if model.dataset_id is None or model.unseen_accuracy is None:
        return None
    others = TreeModel.objects.readable_by(scene.user).defer("document").select_related("family")
    others = others.filter(dataset_id=model.dataset_id, leaves__lt=model.leaves)
    return others.filter(unseen_accuracy__gte=model.unseen_accuracy).order_by("leaves", "-unseen_accuracy").first()


def rejection(scene: ModelScene) -> ReviewEvent | None:
    """Return the step that rejected the model, or None. Only the owner and administrators get it."""
    if scene.model.state != State.REJECTED or not scene.inside:
        return None
    return scene.model.events.select_related("by").filter(after=State.REJECTED).last()


def asked_back(scene: ModelScene) -> ReviewEvent | None:
    """Return the step by which a reviewer returned a draft, or None. Only the owner and administrators get it."""
    if scene.model.state != State.DRAFT or not scene.inside:
        return None
    return return_step(scene.model.events.select_related("by").last(), scene.model)


def _settings(parameters: dict[str, Any]) -> list[str]:
    """Return the settings that shape a tree, in plain words."""
    depth = parameters.get("depth", 0)
    words = ["any depth"] if depth is None else []
    words += [f"at most {count_words(depth, 'question')} in a row"] if depth else []
    words += [f"at most {count_words(most, 'leaf', 'leaves')}"] if (most := parameters.get("max_leaves")) else []
    words += [f"each leaf wins {percent_text(penalty)} of the rows"] if (penalty := stated_penalty(parameters)) else []
    words += [f"at least {least} rows in a leaf"] if (least := parameters.get("min_leaf") or 1) > 1 else []
    words += [f"topology {parameters['topology']}"] if parameters.get("topology") else []
    return words


def _visible(scene: ModelScene) -> Any:
    return TreeModel.objects.readable_by(scene.user).filter(family_id=scene.model.family_id)
