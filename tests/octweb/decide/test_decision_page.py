"""The decision page and its JSON, compared with paths and counts made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from octweb.datasets import actions as datasets
from octweb.decide import actions, page
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.document.units import statistics_of
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import ShareLevel
from octweb.workbench.models import Step, StepState, Workbench
from octweb.workbench.models import StepKind as Steps
from tests.octweb.figures.specimens import one_split
from tests.octweb.registry.api_explain_cases import explain
from tests.octweb.small_models import small_table_with_gaps
from tests.octweb.visible_text import visible
from trainer.data.column_statistics import rounded_unit
from trainer.training.run import TrainRequest, train
from trainer.tree.numbers import number_text
from trainer.tree.splits import Linear

ROW = {"typed": "1"}


@pytest.fixture
def model(table_model):
    return table_model


def ask(client, model, **form):
    return client.post(f"/models/{model.pk}/decision/", form)


def record(client, model, **form):
    answer = ask(client, model, format="json", **form)
    assert answer.status_code == 200, answer.content
    return answer.json()


def typed(model, row):
    """Return the form of a row of the matrix."""
    tree = model_file(model).tree
    form = {"typed": "1"}
    for j in tree.used_columns:
        column = tree.schema[j]
        form[f"try-{j}"] = column.categories[int(row[j])] if column.categories else repr(float(row[j]))
    return form


def test_a_stored_row_has_everything_and_every_number_is_counted(model, owner, client):
    client.force_login(owner)
    rows = rows_of(model)
    tree = model_file(model).tree
    leaf_of = tree.apply(rows.matrix)
    for place in (0, 17, 120):
        number = int(rows.numbers[place])
        found = record(client, model, row=number)
        leaf = int(leaf_of[place])
        label = int(tree.predict(rows.matrix)[place])
        assert (found["row"], found["leaf"], found["label"]) == (number, leaf, tree.classes[label])
        assert found["actual"] == tree.classes[rows.codes[place]]
        assert [step["node"] for step in found["path"]] == tree.path_to(leaf)[:-1]
        for part, name in ((rows.training, "training"), (rows.unseen, "unseen")):
            ends = part[leaf_of[part] == leaf]
            share = found["certainty"][name]
            assert (share["rows"], share["right"]) == (len(ends), int((rows.codes[ends] == label).sum()))
            assert share["interval"][0] <= share["share"] <= share["interval"][1]
        assert found["similar"]["of"] == min(50, (leaf_of[rows.training] == leaf).sum() - (place in rows.training))
        training = set(rows.numbers[rows.training].tolist())
        distances = [r["distance"] for r in found["similar"]["rows"]]
        assert distances == sorted(distances)
        for like in found["similar"]["rows"]:
            assert like["row"] in training - {number}
            assert int(leaf_of[rows.position(like["row"])]) == leaf
        assert found["flip"]["label"] != found["label"]
        assert found["compared_leaves"] == sum(tree.classes[v.label] != found["label"] for v in tree.leaves)


def test_gaps_are_what_the_kernel_answers(model, owner, client):
    client.force_login(owner)
    rows = rows_of(model)
    tree = model_file(model).tree
    found = {g["column"]: g for g in record(client, model, row=int(rows.numbers[3]))["gaps"]}
    town = next(j for j, c in enumerate(tree.schema) if c.name == "town")
    changed = rows.matrix[3:4].copy()
    changed[0, town] = tree.schema[town].categories.index("(missing)")
    assert found["town"]["missing"]["leaf"] == int(tree.apply(changed)[0])
    changed[0, town] = -1.0
    assert found["town"]["unknown"]["leaf"] == int(tree.apply(changed)[0])
    score = next(j for j, c in enumerate(tree.schema) if c.name == "score")
    changed = rows.matrix[3:4].copy()
    changed[0, score] = np.nan
    assert found["score"]["missing"]["leaf"] == int(tree.apply(changed)[0])
    assert found["score"]["missing"]["seen"] is not bool(tree.unseen_empty(changed)[0, score])
    assert found["score"]["unknown"] is None


def test_typed_row_by_post_gives_same_decision(model, owner, client):
    client.force_login(owner)
    rows = rows_of(model)
    stored, own = (record(client, model, **form) for form in ({"row": 5}, typed(model, rows.matrix[rows.position(5)])))
    for name in ("leaf", "path", "flip", "alternatives", "certainty"):
        assert own[name] == stored[name]
    page = ask(client, model, **typed(model, rows.matrix[0])).content.decode()
    for words in (
        "Why ",
        "What would change the answer",
        "How often is this leaf right?",
        "Training rows most like it",
    ):
        assert words in page
    assert "proved: " in page


def test_a_link_carries_a_row_number_and_no_values(model, owner, client):
    client.force_login(owner)
    rows = rows_of(model)
    values = typed(model, rows.matrix[rows.position(5)])
    address = f"/models/{model.pk}/decision/"
    answer = client.get(address, {"line": 6, "format": "json"}).json()
    assert (answer["row"], answer["line"]) == (5, 6)  # the header is line 1
    # addresses of earlier versions must still work
    assert client.get(address, {"row": 5, "format": "json"}).json() == answer
    page = client.get(address, {"line": 6}).content.decode()
    assert "<h1>Line 6</h1>" in page
    assert 'name="line" inputmode="numeric"' in page
    assert 'href="?line=' in page
    assert '<th class="num" title="score">score</th>' in page
    first = client.get(address, {"format": "json"}).json()
    assert first["row"] != 5
    assert client.get(address, {"format": "json", **values}).json() == first, "values in an address are not read"


def test_empty_number_of_decision_is_explained(model, owner, client):
    client.force_login(owner)
    tree = model_file(model).tree
    j = next(j for j in tree.used_columns if tree.schema[j].name == "score")
    form = {**typed(model, rows_of(model).matrix[0]), f"try-{j}": ""}
    row = rows_of(model).matrix[:1].copy()
    row[0, j] = np.nan
    leaf = int(tree.apply(row)[0])
    found = record(client, model, **form)
    assert found["leaf"] == leaf
    asked = [step for step in found["path"] if step["column"] == "score"]
    assert asked
    assert all(step["empty"] == ["score"] and step["value"] is None for step in asked)
    assert (
        f"score was empty; empty cells go to {asked[0]['answer']} here" in ask(client, model, **form).content.decode()
    )
    filled = record(client, model, **form, **{f"may-{j}": "fill"})["flip"]
    if filled and "score" in filled["changes"]:
        assert filled["changes"]["score"][0] is None
        assert filled["changes"]["score"][1] is not None


def test_empty_number_has_no_unit(register, owner, client, media):
    table, labels = small_table_with_gaps()
    model = register(document=train(TrainRequest(table=table, labels=labels, method="cart")).model.to_json())
    client.force_login(owner)
    column = [column.name for column in model_file(model).tree.schema].index("width")
    row = table.matrix()[1].copy()
    html = visible(
        ask(client, model, **{**typed(model, row), f"try-{column}": ""}, **{f"may-{column}": "fill"}).content.decode()
    )
    assert "width: empty ." in html
    assert "empty mm" not in html
    html = visible(ask(client, model, **typed(model, row)).content.decode())
    assert f"width: {number_text(row[column])} mm ." in html


@pytest.mark.parametrize("words", ["many"])
def test_unreadable_value_is_reported(model, owner, client, words):
    client.force_login(owner)
    form = typed(model, rows_of(model).matrix[0])
    tree = model_file(model).tree
    j = next(j for j in tree.used_columns if tree.schema[j].name == "score")
    answer = ask(client, model, **{**form, f"try-{j}": words})
    assert answer.status_code == 200
    assert "score" in answer.content.decode()
    assert "What would change" not in answer.content.decode()
    assert "What would change" not in ask(client, model, row="99999").content.decode()


@pytest.mark.slow
def test_costs_decide_between_columns_and_are_stated(model, owner, client):
    client.force_login(owner)
    rows = rows_of(model)
    tree = model_file(model).tree
    place = {c.name: j for j, c in enumerate(tree.schema)}
    compared = 0
    for at in range(40):
        form = typed(model, rows.matrix[at])
        first = record(client, model, **form)
        flips = [f for f in (first["flip"], *first["alternatives"]) if f]
        names = [n for f in flips for n in f["changes"] if f["columns"] == 1 and n != "town"]
        if not names:
            continue
        compared += 1
        dear = {f"cost-{place[n]}": "1000" for n in names}
        found = record(client, model, **form, **dear)
        assert found["cost"] == dict.fromkeys(names, 1000.0)
        assert "costs as given" in found["measured_on"]
        for flip in (f for f in (found["flip"], *found["alternatives"]) if f["columns"] == 1):
            (name,) = flip["changes"]
            a, b = flip["changes"][name]
            assert flip["distance"] == pytest.approx(1000 * abs(b - a) if name in names else 1.0)
    assert compared > 5
    text = ask(client, model, **form, **{f"cost-{place['score']}": "0.25"}).content.decode()
    assert 'value="0.25"' in text
    for odd, words in (("dear", "is not a number"), ("0", "a cost is a number"), ("-1", "a cost is a number")):
        answer = ask(client, model, **form, **{f"cost-{place['score']}": odd})
        assert answer.status_code == 200
        assert words in answer.content.decode()


@pytest.mark.slow
def test_chosen_order_of_changes_is_used_and_stated(model, owner, client):
    client.force_login(owner)
    for place in range(0, 120, 12):
        form = typed(model, rows_of(model).matrix[place])
        few = record(client, model, **form)
        cheap = record(client, model, **form, least="total")
        assert (few["least"], cheap["least"]) == ("columns", "total")
        assert cheap["flip"]["distance"] <= few["flip"]["distance"]
        assert few["flip"]["columns"] <= cheap["flip"]["columns"]
    text = ask(client, model, **form, least="total").content.decode()
    assert '<option value="total" selected>Smallest total' in text
    assert "however many columns they touch" in text
    assert "however many columns they touch" not in ask(client, model, **form).content.decode()
    odd = ask(client, model, **form, least="money")
    assert odd.status_code == 200
    assert "is not one of columns, total" in odd.content.decode()


@pytest.mark.slow
def test_permissions_stored_by_owner_apply_to_everyone(model, owner, staff, stranger, client, client_of):
    client.force_login(owner)
    rows = rows_of(model)
    tree = model_file(model).tree
    form = typed(model, rows.matrix[0])
    first = record(client, model, **form)
    (name,) = first["flip"]["changes"]
    j = next(j for j, c in enumerate(tree.schema) if c.name == name)
    other = record(client, model, **form, **{f"may-{j}": "never"})
    assert other["flip"] is None or name not in other["flip"]["changes"]
    assert record(client, model, **form)["flip"] == first["flip"], "one question changes no default"
    answer = client.post(f"/models/{model.pk}/decision/marks/", {**form, f"may-{j}": "never"})
    assert answer.status_code == 302
    assert record(client, model, **form)["flip"] == other["flip"]
    body = {"rows": [first["values"]]}
    kept = explain(client_of(owner), model, body).json()["explanations"][0]
    assert kept["flip"] == other["flip"]
    free = explain(client_of(owner), model, body | {"change": {name: "free"}}).json()["explanations"][0]
    assert free["flip"] == first["flip"]
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff)
    client.force_login(stranger)
    assert client.post(f"/models/{model.pk}/decision/marks/", {f"may-{j}": "free"}).status_code == 404
    assert actions.marks_of(model)[name] == "never"


def test_rows_are_hidden_from_users_without_access(model, owner, staff, stranger, client):
    form = typed(model, rows_of(model).matrix[0])
    client.force_login(stranger)
    assert ask(client, model, **form).status_code == 404
    registry.share(model, by=owner, username=stranger.username, level=ShareLevel.CALL)
    found = record(client, model, **form)
    assert (found["similar"], found["other_trees"], found["actual"], found["certainty"]["unseen"]) == (None,) * 4
    page = ask(client, model, **form).content.decode()
    assert "Training rows most like it" not in page
    assert '<rect class="bar' not in page
    assert ask(client, model, row="5").status_code == 200
    assert 'name="line"' not in page


def without_description(model, owner):
    """Return the model as an earlier version wrote its file: its columns name neither decimals nor units."""
    document = model_file(model).to_json()
    for column in document["columns"]:
        column.pop("decimals", None)
        column.pop("change_unit", None)
    return registry.register(owner=owner, document=document, dataset=model.dataset, title="Earlier")


def test_everybody_sees_the_same_change(model, owner, client_of, stranger, staff):
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff)
    values = {"score": 4.5, "age": 3.0, "town": "south"}
    told, asked = (explain(client_of(u), model, {"rows": [values]}).json() for u in (owner, stranger))
    assert told["measured_on"] == asked["measured_on"]
    assert "rounded" in told["measured_on"]
    one, other = told["explanations"][0], asked["explanations"][0]
    assert (one["flip"], one["alternatives"]) == (other["flip"], other["alternatives"])
    own, _ = statistics_of(model, inside=True)
    rough, _ = statistics_of(model, inside=False)
    assert [replace(s, deviation=0.0) for s in own] == [replace(s, deviation=0.0) for s in rough]


def test_strangers_get_rounded_units_of_earlier_files(model, owner, client_of, stranger, staff):
    model = without_description(model, owner)
    exact, _ = statistics_of(model, inside=True)
    rough, source = statistics_of(model, inside=False)
    assert "rounded" in source
    for own, other in zip(exact, rough, strict=True):
        assert other.scale == rounded_unit(own.scale)
        assert other.scale in {float(f"{m}e{k}") for m in (1, 2, 5) for k in range(-9, 9)}
        assert other.decimals == own.decimals
        assert other.low <= own.low
        assert other.high >= own.high
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff)
    values = {"score": 4.5, "age": 3.0, "town": "south"}
    sizes = [explain(client_of(u), model, {"rows": [values]}).json() for u in (owner, stranger)]
    assert "rounded" in sizes[1]["measured_on"]
    assert "rounded" not in sizes[0]["measured_on"]
    flip = sizes[1]["explanations"][0]["flip"]
    assert flip["proved"]
    (name,) = flip["changes"]
    column = [c.name for c in model_file(model).tree.schema].index(name)
    a, b = flip["changes"][name]
    assert flip["distance"] == pytest.approx(1.0 if isinstance(a, str) else abs(a - b) / rough[column].scale)


def test_units_are_rounded_by_ratio():
    for value, unit in (
        (0.9, 1.0),
        (1.3, 1.0),
        (1.5, 2.0),
        (3.0, 2.0),
        (3.5, 5.0),
        (7.0, 5.0),
        (8.0, 10.0),
        (1e-300, 1e-300),
    ):
        assert rounded_unit(value) == unit
    for value in np.random.default_rng(0).lognormal(size=200) * 1e3:
        assert 0.6 < rounded_unit(float(value)) / value < 1.7


def test_answers_of_listed_good_trees_are_counted(model, owner, client):
    client.force_login(owner)
    tree = model_file(model).tree
    rows = rows_of(model)
    assert record(client, model, row=1)["other_trees"] is None
    bench = Workbench.objects.create(owner=owner, dataset=model.dataset, base=model)
    leaf = {"nodes": [{"id": 0, "class": "good", "counts": [1, 1]}]}
    listed = [{"nodes": tree.to_json()}, leaf, {"nodes": [{"id": 0}]}]  # the last tree does not fit this model
    result = {"count": 7, "trees": listed}
    Step.objects.create(
        workbench=bench, number=1, kind=Steps.GOOD, state=StepState.DONE, request={"slack": "0.01"}, result=result
    )
    place = int(np.flatnonzero(tree.predict(rows.matrix) == tree.classes.index("bad"))[0])
    found = record(client, model, row=int(rows.numbers[place]))["other_trees"]
    assert (found["counted"], found["listed"], found["slack"]) == (7, 2, "0.01")
    assert found["answers"] == {"bad": 1, "good": 1}
    page = ask(client, model, row=int(rows.numbers[place])).content.decode()
    assert "What other good trees answer" in page
    assert "The answer for this person depends on which good tree was chosen." in page
    for request, tolerance in (
        ({"slack": "0.01"}, "1 %"),
        ({"slack_rows": "1"}, "1 training row"),
        ({"slack_rows": "3"}, "3 training rows"),
        ({"slack_cost": "2.5"}, "2.5"),
    ):
        Step.objects.filter(workbench=bench).update(request=request)
        page = " ".join(ask(client, model, row=int(rows.numbers[place])).content.decode().split())
        assert f"Of the 2 trees that a workbench of this model listed within {tolerance} of the best" in page
    for count, words in ((1, "No other tree is as good."), (7, "All listed trees give the same answer")):
        Step.objects.filter(workbench=bench).update(result={"count": count, "trees": listed[:1]})
        page = ask(client, model, row=int(rows.numbers[place])).content.decode()
        assert words in page
        assert "depends on which" not in page


def test_printed_sum_differs_from_its_threshold():
    tree = one_split("plane", n=50, classes=2)[0]
    split = replace(tree.nodes[0].split, coefficients=(1.0, 1.0), threshold=3.0)
    tree = replace(tree, nodes=(replace(tree.nodes[0], split=split), *tree.nodes[1:]))
    row = np.zeros(len(tree.schema))
    row[split.features[0]] = 3.0000001
    step = {"node": 0, "column": None, "value": 3.0000001, "answer": "no", "distance": None, "deviations": None}
    shown = page._step(SimpleNamespace(tree=tree, rows=None), SimpleNamespace(row=row), 1, step)
    assert shown["value"] == split.value_text(tree.schema, row) == "3.0000001"


def test_the_terms_of_a_sum_are_written_as_in_the_rules(table_model, owner, client):
    table, labels = datasets.load(table_model.dataset)
    request = TrainRequest(table=table, labels=labels, method="bivariate", parameters={"depth": 1, "time_limit": 5})
    document = train(request).model.to_json()
    model = registry.register(owner=owner, document=document, dataset=table_model.dataset, title="A line")
    tree = model_file(model).tree
    split = tree.nodes[0].split
    assert isinstance(split, Linear)
    client.force_login(owner)
    said = " ".join(ask(client, model, row=1).content.decode().split())
    terms = []
    for f, level, a in split.terms:
        column = tree.schema[f]
        name = column.name if level < 0 else f"[{column.name} is {column.categories[level]}]"
        terms.append(f"{number_text(a, full=True)} × {name}")
    assert terms[0].startswith("1 × ")
    assert f"The terms of the sum</summary> {', '.join(terms)}</details>" in said
