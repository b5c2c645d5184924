"""Explain a recorded decision with the model version that answered."""

from __future__ import annotations

from typing import Any

from octweb.core.ownership import may_change
from octweb.decide.asked import DecisionRequest, record
from octweb.decide.facts import SECONDS
from octweb.decisions.reading import DecisionRecord
from octweb.registry import hooks
from octweb.registry.document import units
from octweb.registry.document.reasons import ModelReasons
from octweb.registry.page.scene import ModelScene
from trainer.explain.flip import Flipper
from trainer.explain.least import COLUMNS
from trainer.explain.permission import permissions
from trainer.explain.record import explain_row
from trainer.tree.rules import rules_of


def request_of(decision: DecisionRecord, user: Any) -> tuple[ModelScene, DecisionRequest] | None:
    """Return scene and request for a decision page about the recorded row, or None if there is no answer.

    The permitted changes are the owner's current ones.
    """
    row = decision.row
    if row is None:
        return None
    scene = ModelScene(model=decision.model, user=user, inside=may_change(user, decision.model))
    change = dict(hooks.column_permissions(decision.model))
    request = DecisionRequest(
        title=f"Decision {decision.entry.key}",
        row=row,
        values=record(scene, row),
        change=change,
        cost={},
        least=COLUMNS,
        allowed=permissions(scene.tree.schema, change),
        wanted=None,
    )
    return scene, request


def explanation_json(decision: DecisionRecord, user: Any) -> dict[str, Any] | None:
    """Return path, rule of the leaf, smallest changes and reasons for a recorded row, or None if there is no answer."""
    asked = request_of(decision, user)
    if asked is None:
        return None
    scene, request = asked
    assert request.row is not None
    statistics, source = units.statistics_of(scene.model, inside=scene.inside)
    flipper = Flipper(scene.tree, statistics, request.allowed, seconds=SECONDS, least=request.least)
    found = explain_row(flipper, request.row, 0)
    del found["row"]
    rule = next((rule.words for rule in rules_of(scene.tree) if rule.leaf == found["leaf"]), ())
    reasons = ModelReasons(scene.model, statistics, seconds=SECONDS).record(request.row)
    return {"measured_on": source, "rule": list(rule)} | found | {"reasons": reasons}
