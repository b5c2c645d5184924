"""Agreement of all good trees with an answer, on the model page, the decision page and the API."""

from __future__ import annotations

import json

import numpy as np
import pytest

from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.lifecycle import actions as registry
from octweb.workbench import actions
from octweb.workbench.agreement import agreement
from octweb.workbench.models import Step, StepKind, StepState, Workbench
from trainer.tree.nodes import tree_from_json

pytestmark = pytest.mark.django_db


@pytest.fixture
def counted(model, owner, client, serve):
    """Count of the good trees of the model, requested on its page and made by its workbench, and a list of these trees."""
    client.force_login(owner)
    assert agreement(model) == {"state": "not counted"}
    answer = client.post("/workbenches/new/", {"model": str(model.pk), "then": "agreement"})
    assert answer.url == f"/models/{model.pk}/"
    assert agreement(model) == {"state": "counting"}
    bench = Workbench.objects.get()
    client.post("/workbenches/new/", {"model": str(model.pk), "then": "agreement"})  # is counted once
    assert bench.steps.filter(kind=StepKind.GOOD).count() == 1
    actions.ask_good_trees(bench, {"slack_rows": "1", "listed": 1000})
    serve(bench)
    assert set(bench.steps.values_list("state", flat=True)) == {StepState.DONE}
    file = model_file(model)
    listed = Step.objects.filter(kind=StepKind.GOOD).order_by("number").last().result["trees"]
    return [tree_from_json(t["nodes"], schema=file.tree.schema, classes=file.tree.classes) for t in listed]


@pytest.mark.slow
def test_dependent_rows_are_those_where_listed_trees_differ(model, counted, client):
    rows = rows_of(model)
    said = np.array([tree.predict(rows.matrix[rows.training]) for tree in counted])
    depends = int((said != said[0]).any(axis=0).sum())
    found = agreement(model)
    assert (found["state"], found["trees"], found["of"]) == ("counted", len(counted), len(rows.training))
    assert found["depends"] == depends > 0
    text = " ".join(client.get(f"/models/{model.pk}/").content.decode().split())
    assert (
        f"The answer for {depends} of {len(rows.training)} training rows depends on which good tree was chosen." in text
    )
    assert f"{len(counted)} trees cost at most 1 row more than the best." in text


@pytest.mark.slow
def test_a_decision_counts_all_good_trees(model, counted, client):
    rows = rows_of(model)
    classes = model_file(model).tree.classes
    seen = set()
    for place in [*rows.unseen[:6], *rows.training[:6]]:
        number = int(rows.numbers[place])
        response = client.get(f"/models/{model.pk}/decision/", {"row": number, "format": "json"})
        others = json.loads(response.content)["other_trees"]
        answers = [classes[int(tree.predict(rows.matrix[[place]])[0])] for tree in counted]
        assert others["answers"] == {label: answers.count(label) for label in classes if label in answers}
        seen.add(others["depends"])
        text = " ".join(client.get(f"/models/{model.pk}/decision/", {"row": number}).content.decode().split())
        assert (f"The same in all {len(counted)} good trees" in text) is not others["depends"]
    assert True in seen


@pytest.mark.slow
def test_only_owner_and_administrators_are_informed(model, counted, client, client_of, owner, staff, stranger):
    registry.approve(registry.ask_for_approval(model, by=owner), by=staff, reason="Known.")
    for user, known in ((owner, True), (staff, True), (stranger, False)):
        record = client_of(user).get(f"/api/v1/models/{model.pk}/").json()["good_trees"]
        assert (record is not None) is known
        client.force_login(user)
        assert ("depends on which good tree" in client.get(f"/models/{model.pk}/").content.decode()) is known
    assert client.post("/workbenches/new/", {"model": str(model.pk), "then": "agreement"}).status_code == 404
