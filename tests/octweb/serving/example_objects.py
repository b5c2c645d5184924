"""Further objects whose calls are examples of the OpenAPI document: answered, finished and alarmed ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission
from django.utils import timezone

from octweb.datasets import stored
from octweb.datasets.models import Dataset
from octweb.decisions.collecting import collect
from octweb.experiments.models import Candidate
from octweb.life.models import Alarm
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import Recording, TreeModel
from octweb.workbench import work
from octweb.workbench.work import EditingSupervisor
from tests.octweb.experiments.ended import end_candidate
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import trained
from trainer.training.run import TrainRequest, train

# name of the object → method and parameters of its tree
TREES: dict[str, tuple[str, dict[str, Any]]] = {
    "rows": ("exact", {"depth": 2, "bins": 5, "leaf_penalty": 0.01}),
    "threshold": ("exact", {"depth": 1, "bins": 5, "leaf_penalty": 0.01, "forbidden": "colour"}),
    "sizes": ("exact", {"depth": 2, "bins": 5, "max_leaves": 4}),
    "planes": ("cut-h", {"depth": 1, "pareto": True, "time_limit": 10.0}),
    "reach": ("odt", {"depth": 2, "frontier": True}),
}


def further_ids(
    owner: Any, staff: Any, client: Any, known: dict[str, str], upload: Callable[[], str]
) -> dict[str, str]:
    """Return the ids of the further objects, by the names of OBJECTS in test_examples."""
    dataset = Dataset.objects.get(pk=known["datasets"])
    found = {name: str(_model_with_rows(owner, dataset, *tree).pk) for name, tree in TREES.items()}
    found["alone"] = str(registry.register(owner=owner, document=trained("cart", depth=2), dataset=None, title="x").pk)
    free = registry.register(owner=owner, document=trained("cart", depth=2), dataset=dataset, title="free")
    registry.ask_for_approval(free, by=owner)
    registry.approve(free, by=staff, publish=False, recording=Recording.FULL)
    found |= {"free": str(free.pk), "compared": upload()}
    client.post(f"/api/v1/models/{found['compared']}/comparison/", {"seconds": 60}, format="json")
    for model in (known["served"], found["free"]):
        _outcomes(client, model)
    client.post(f"/api/v1/models/{known['served']}/life/price/", {"days": 90}, format="json")
    found["alarm"] = str(_alarm_of(TreeModel.objects.get(pk=known["served"])).pk)
    return found | _experiments(client, known) | _workbenches(client, found["rows"]) | _count(client)


def add_source(owner: Any, settings: Any, folder: Any) -> None:
    """Add a folder of rows to the sources of the settings, and let the owner count them."""
    folder.mkdir()
    (folder / "loans.csv").write_text(CSV)
    settings.SECRET_SOURCES = {"lake": {"address": str(folder), "groups": ()}}
    owner.user_permissions.add(Permission.objects.get(codename="use_sources"))


def _model_with_rows(owner: Any, dataset: Dataset, method: str, parameters: dict[str, Any]) -> TreeModel:
    table, labels = stored.load(dataset)
    request = TrainRequest(table=table, labels=labels, method=method, parameters=parameters, test_share=0.25)
    return registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title=method)


def _outcomes(client: Any, model: str) -> None:
    """Let a recorded model answer two rows, and report outcomes of two classes."""
    rows = [{"width": 1, "height": 0, "colour": "red"}, {"width": 9, "height": 0, "colour": "red"}]
    answers = client.post(f"/api/v1/models/{model}/predict/", {"rows": rows}, format="json").json()["predictions"]
    collect()
    known = [{"decision": answer["decision"], "value": c} for answer, c in zip(answers, "ab", strict=True)]
    client.post("/api/v1/outcomes/", {"rows": known}, format="json")


def _alarm_of(model: TreeModel) -> Alarm:
    day = timezone.now().date()
    return Alarm.objects.create(
        model=model, watch="leaf 3", grew=True, began=day - timedelta(days=9), found=day - timedelta(days=1), rows=540
    )


def _experiments(client: Any, known: dict[str, str]) -> dict[str, str]:
    """Return an experiment whose candidate was stopped, and one whose candidate is done."""
    body = {"dataset": known["datasets"], "candidates": [{"method": "cart", "parameters": {"depth": 2}}], "folds": 3}
    stopped, done = (client.post("/api/v1/experiments/", body, format="json").json()["id"] for _ in range(2))
    client.post(f"/api/v1/experiments/{stopped}/stop/")
    candidate = Candidate.objects.get(experiment=done)
    end_candidate(candidate, [0.8, 0.85, 0.9])
    return {"stopped": stopped, "done": done, "candidate": str(candidate.pk)}


def _workbenches(client: Any, model: str) -> dict[str, str]:
    """Return a workbench with answered steps, and one whose last step was undone."""
    found = {}
    for name in ("answered", "undone"):
        bench = client.post("/api/v1/workbenches/", {"model": model}, format="json").json()["id"]
        address = f"/api/v1/workbenches/{bench}/"
        client.post(f"{address}edits/", {"add": ["forbid root width"]}, format="json")
        client.post(f"{address}good-trees/", {"slack": "0.1"}, format="json")
        found[name] = bench
    idle = work.IDLE_SECONDS
    work.IDLE_SECONDS = 0.3
    for bench in found.values():
        EditingSupervisor(job_id=bench, worker="here", stopping=threading.Event()).run()
    work.IDLE_SECONDS = idle
    client.post(f"/api/v1/workbenches/{found['undone']}/undo/")
    return found


def _count(client: Any) -> dict[str, str]:
    body = {"source": "lake", "table": "loans.csv", "target": "class", "depth": 2}
    return {"counts": client.post("/api/v1/counts/", body, format="json").json()["id"]}
