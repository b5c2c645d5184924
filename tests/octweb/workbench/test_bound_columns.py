"""A workbench keeps the columns of groups, times and weights of its model."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from django.urls import reverse

from octweb.datasets import actions as datasets
from octweb.datasets import stored
from octweb.registry.comparing.pairs import compare_pair
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions as registry
from octweb.registry.templatetags.claims import next_run
from octweb.workbench import actions
from trainer.data.reader import load
from trainer.evaluate.verdict import FOLDS_ADVICE, read_verdict
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db

ROWS = "".join(
    f"P{i // 4:02};2024-01-{1 + i % 28:02} 10:00:{i % 60:02};{i % 5};{1 + i % 3};{'yes' if i % 5 > 2 or i % 7 == 0 else 'no'}\n"
    for i in range(80)
)


@pytest.fixture
def dataset(owner, media):
    text = f"patient;day;x;w;class\n{ROWS}"
    return datasets.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name="v.csv", name="Visits", target="class"
    )


def model_of(owner, dataset, depth=2):
    table, labels, _ = load(
        stored.path_of(dataset.file), target="class", group="patient", weight="w", ignore=["day"], missing={}
    )
    request = TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": depth}, test_share=0.3)
    document = train(request).model.to_json()
    return registry.register(owner=owner, document=document, dataset=dataset, title=f"Depth {depth}")


def test_workbench_inherits_groups_and_weights(owner, dataset, serve):
    model = model_of(owner, dataset)
    bench = actions.open_for(owner=owner, model=model)
    assert (bench.group, bench.time, bench.weight) == ("patient", "", "w")
    serve(bench)
    document = json.loads(actions.current(bench).document)
    assert document["rows"]["group"] == {"column": "patient"}
    assert document["certificate"]["n"] == json.loads(model.document)["certificate"]["n"]


def test_comparison_counts_groups_and_next_run_keeps_the_columns(client, owner, dataset):
    models = [model_of(owner, dataset, depth) for depth in (1, 3)]
    found = compare_pair(*models)
    assert {part.over for part in found.parts} == {"groups"}
    assert "McNemar" not in found.sentence
    verdict = replace(read_verdict(model_file(models[0])), settings={"depth": 2})
    assert "group=patient&weight=w" in next_run(models[0], verdict)
    advice = replace(verdict, settings={}, next=FOLDS_ADVICE)
    assert "evaluation=folds&folds=5&group=patient" in next_run(models[0], advice)
    assert next_run(models[0], replace(advice, next="Add rows.")) == ""
    client.force_login(owner)
    page = client.get(reverse("registry:detail", args=[models[1].pk]), {"mode": "performance"}).content.decode()
    assert "over groups of rows" in page
