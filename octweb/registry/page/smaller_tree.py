"""Find a smaller tree that is as accurate on the same unseen rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from octweb.registry.document.claims import claim_badges
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.models import TreeModel
from octweb.registry.page.performance import unseen_interval
from octweb.registry.page.scene import ModelScene

LOOKED_AT = 5  # at most this many smaller models are compared


def smaller_model(scene: ModelScene) -> dict[str, Any] | None:
    """Return the smallest such tree of the same data set that the user may read, with claim and interval, or None.

    Only the first LOOKED_AT candidates are compared.
    """
    model = scene.model
    if model.unseen_accuracy is None or not len(scene.part("unseen")):
        return None
    others = (
        TreeModel.objects.readable_by(scene.user)
        .filter(dataset_id=model.dataset_id, leaves__lt=model.leaves, unseen_accuracy__gte=model.unseen_accuracy)
        .select_related("family", "dataset")
        .order_by("leaves", "-unseen_accuracy", "pk")
    )
    for other in others[:LOOKED_AT]:
        there = ModelScene(model=other, user=scene.user, inside=may_see_rows(scene.user, other))
        if _same_unseen(scene, there):
            return {"model": other, "claim": claim_badges(other)[0].words, "interval": unseen_interval(there)}
    return None


def _same_unseen(one: ModelScene, other: ModelScene) -> bool:
    """Return whether the same rows were held out."""
    if one.rows is None or other.rows is None:
        return False
    return np.array_equal(one.rows.numbers[one.rows.unseen], other.rows.numbers[other.rows.unseen])
