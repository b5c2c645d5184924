"""Pages of a model with balanced classes call no sum of weights a number of rows."""

from __future__ import annotations

import html
import io
import re

import numpy as np
import pytest

from octweb.datasets import actions as datasets
from octweb.datasets import stored
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.page.modes import MODES
from octweb.workbench.models import Workbench
from trainer.data.reader import load as load_table
from trainer.training.run import TrainRequest, train

ROWS = 160
COUNT = re.compile(r"([\d,]*\d)(?: of ([\d,]*\d))?\s+(?:more |training |unseen |held-out |other )*rows?\b")


@pytest.fixture(params=["", "w"])
def model(request, owner, media):
    rng = np.random.default_rng(3)
    lines = ["a,b,w,answer"]
    for _ in range(ROWS):
        a, b = rng.normal(), int(rng.integers(0, 5))
        label = "yes" if a + 0.3 * b + 0.6 * rng.normal() > 1.6 else "no"
        lines.append(f"{a:.2f},{b},{rng.choice([0.5, 1, 1.5, 2])},{label}")
    table = datasets.create(
        owner=owner,
        file=io.BytesIO("\n".join([*lines, ""]).encode()),
        source_name="t.csv",
        name="t",
        choice=datasets.ColumnChoice(target="answer"),
    )
    table_file, bound = stored.path_of(table.file), {"weight": request.param} if request.param else {}
    rows, labels, _ = load_table(table_file, target="answer", missing={}, **bound)
    asked = TrainRequest(
        table=rows, labels=labels, method="exact", parameters={"depth": 2, "goal": "balanced"}, test_share=0.25
    )
    return actions.register(owner=owner, document=train(asked).model.to_json(), dataset=table, title="T")


def too_many(text: str) -> list[str]:
    """Return the texts in which a page names more rows than the table has."""
    plain = html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.S)))
    plain = re.sub(r"\s+", " ", plain)
    found = []
    for match in COUNT.finditer(plain):
        numbers = [int(re.sub(r"\D", "", part)) for part in match.groups() if part]
        if max(numbers) > ROWS:
            found.append(plain[max(0, match.start() - 60) : match.end() + 20])
    return found


@pytest.mark.one_database
def test_pages_of_balanced_model_never_call_weights_rows(model, owner, client):
    client.force_login(owner)
    nodes = range(len(model_file(model).tree.nodes))
    addresses = [f"/models/{model.pk}/?mode={mode.id}" for mode in MODES]
    addresses += [
        f"/models/{model.pk}/?mode=tree&node={n}&tab={tab}" for n in nodes for tab in ("rule", "rows", "answer")
    ]
    addresses += [f"/models/{model.pk}/node/?node={n}" for n in nodes]
    addresses += [f"/models/{model.pk}/review/", f"/models/{model.pk}/?mode=performance&group=b"]
    addresses += ["/models/", "/", f"/models/compare/?ids={model.pk}", f"/models/{model.pk}/costs/"]
    found = {}
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code < 500, address
        if wrong := too_many(answer.content.decode()):
            found[address] = wrong
    assert not found, "\n".join(f"{a}: {w}" for a, w in found.items())


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_workbench_of_balanced_model_never_calls_weights_rows(model, owner, client, serve):
    client.force_login(owner)
    client.post("/workbenches/new/", {"model": str(model.pk)})
    bench = Workbench.objects.get()
    address = f"/workbenches/{bench.pk}/"
    serve(bench)
    client.post(f"{address}edit/", {"at": "root", "verb": "forbid", "column": "a"})
    serve(Workbench.objects.get())
    client.post(f"{address}good-trees/", {"slack_rows": "5"})
    serve(Workbench.objects.get())
    pages = [client.get(place).content.decode() for place in (address, f"{address}?at=y", f"{address}good-trees/")]
    assert [too_many(page) for page in pages] == [[], [], []]
    assert "Weight worse than the best tree" in pages[2]
    assert "by weight" in pages[0]
    assert " of weight" in pages[0]  # the price of the wish
