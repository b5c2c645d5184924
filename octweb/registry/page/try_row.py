"""Follow a stored or submitted row through the tree."""

from __future__ import annotations

from typing import Any

from octweb.registry import hooks
from octweb.registry.document import units
from octweb.registry.page import content
from octweb.registry.page.scene import ModelScene
from octweb.registry.prediction.predictions import Predictions, predict_plain
from octweb.registry.prediction.responses import mark_notes
from trainer.errors import TrainerError
from trainer.explain.flip import Flipper
from trainer.explain.permission import permissions
from trainer.explain.record import explain_row
from trainer.explain.words import flip_text

FLIP_SECONDS = 2.0  # time limit of a page for counterfactuals of trees with hyperplanes


def follow(scene: ModelScene) -> tuple[Any, str, Any]:
    """Return the path of the row in the query, the error message, and the content of the row field.

    The path is None if there is no such row.
    """
    place, trouble = content.find_row(scene.query, scene.rows)
    if place is None or scene.rows is None:
        return None, trouble, scene.query.get("line") or scene.query.get("row", "")
    return content.follow_row(scene.model, place, scene.rows), "", int(scene.rows.shown[place])


def try_context(scene: ModelScene, example: dict[str, Any]) -> dict[str, Any]:
    """Return the form's fields in the order of the splits. For a typed row, add its path, notes and counterfactuals.

    Without a typed row, the fields contain `example`.
    """
    if scene.typed is None:
        return {"fields": content.fields(scene.model, example), "try_walk": None, "try_trouble": "", "notes": []}
    record = content.parse_form_values(scene.model, dict(scene.typed))
    fields = content.fields(scene.model, record)
    try:
        predictions = predict_plain(scene.model, [record])
    except TrainerError as error:
        words = str(error).removeprefix("rows[0]: ")
        return {"fields": fields, "try_walk": None, "try_trouble": words, "notes": []}
    notes = [note.removeprefix("rows[0]: ") for note in predictions.notes] + mark_notes(predictions)
    walk = content.walk_row(scene.model, predictions.matrix[0], title="this row", values=record)
    return {"fields": fields, "try_walk": walk, "try_trouble": "", "notes": notes, "flips": _flips(scene, predictions)}


def _flips(scene: ModelScene, predictions: Predictions) -> dict[str, Any]:
    """Return the counterfactuals of the typed row in words, smallest first, or the reason why there are none."""
    statistics, source = units.statistics_of(scene.model, inside=scene.inside)
    allowed = permissions(scene.tree.schema, hooks.column_permissions(scene.model))
    record = explain_row(Flipper(scene.tree, statistics, allowed, seconds=FLIP_SECONDS), predictions.matrix[0], 0)
    flips = [record["flip"], *record["alternatives"]] if record["flip"] else []
    return {"sentences": [flip_text(flip) for flip in flips], "reason": record["no_flip"], "source": source}
