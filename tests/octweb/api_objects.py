"""One object of each kind for tests that call every operation of the API."""

from __future__ import annotations

import io

from django.core.files.base import ContentFile

from octweb.batch import actions as batch
from octweb.challengers import actions as challengers
from octweb.datasets import actions as datasets
from octweb.experiments import actions as experiments
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.serving.actions import create_token
from octweb.teams import actions as teams
from octweb.workbench import actions as workbenches
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import trained


def served_model(owner, staff, dataset) -> TreeModel:
    """Return a model that is approved and served, in version 1."""
    model = registry.register(owner=owner, document=trained("cart", depth=2), dataset=dataset, title="served")
    registry.ask_for_approval(model, by=owner)
    return registry.approve(model, by=staff, publish=True)


def ids(owner, staff) -> dict[str, str]:
    """Return the id of one object of each kind, by the first part of its URL, so that few requests get a 404."""
    dataset = datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class")
    model = registry.register(owner=owner, document=trained("cart", depth=2), dataset=dataset, title="t")
    rows = ContentFile(CSV.encode(), name="rows.csv")
    experiment = experiments.start(
        owner=owner, dataset=dataset, candidates=[{"method": "cart"}], folds=3, test_share=0.2
    )
    served = served_model(owner, staff, dataset)
    challengers.name_challenger(served, model, by=owner)
    return {
        "v2": served.family.name,
        "experiments": str(experiment.pk),
        "workbenches": str(workbenches.open_for(owner=owner, dataset=dataset).pk),
        "predictions": str(batch.enqueue(owner=owner, model=model, file=rows, source_name="rows.csv").pk),
        "datasets": str(dataset.pk),
        "runs": str(runs.enqueue(owner=owner, dataset=dataset, method="cart").pk),
        "models": str(model.pk),
        "served": str(served.pk),
        "teams": str(teams.create(by=owner, name="Risk").pk),
        "tokens": create_token(owner=owner, name="other")[0].token_key,
    }
