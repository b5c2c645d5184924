"""Pages of models: list, detail, compare, download, review."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape

import numpy as np
import pytest
from django.core.files.base import ContentFile

from octweb.core.templatetags.octweb import seconds
from octweb.datasets import reader
from octweb.datasets.models import Dataset
from octweb.registry.document import rows
from octweb.registry.document.rows import check_claim
from octweb.registry.lifecycle import actions
from octweb.registry.models import State, TreeModel
from octweb.registry.page import content
from tests.octweb.small_models import csv_of_small_table, small_table, trained
from trainer.evaluate.intervals import of_folds
from trainer.registry import METHODS

CASES = [("cart", {}), ("cart", {"depth": 0}), ("cart", {"depth": 1})]
if any(m.id == "bivariate" for m in METHODS):
    CASES.append(("bivariate", {"depth": 2}))


@pytest.fixture(autouse=True)
def _media(media):
    pass


@pytest.fixture
def dataset(owner, media):
    table, labels = small_table()
    columns = [c.to_json() | {"role": "feature"} for c in table.schema]
    made = Dataset(owner=owner, name="Small table", target=labels.name, rows=len(table), columns=columns)
    made.sha256 = "0" * 64
    made.file.save("small.csv", ContentFile(csv_of_small_table().encode()))
    return made


def get(client, user, model, query=""):
    client.force_login(user)
    return client.get(f"/models/{model.pk}/{query}")


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize(("method", "parameters"), CASES)
def test_the_page_in_its_modes(client, register, dataset, owner, method, parameters):
    model = register(document=trained(method, folds=3, **parameters), dataset=dataset)
    places = ["Accuracy on unseen rows", "On training rows", 'aria-label="Modes"', 'id="canvas"', 'id="inspector"']
    text = get(client, owner, model).content.decode()
    assert [text.index(s) for s in places] == sorted(text.index(s) for s in places)
    for mode, words in {
        "performance": "Mistakes on unseen rows",
        "proof": 'id="claim"',
        "use": 'id="try"',
        "history": 'id="versions"',
    }.items():
        text = get(client, owner, model, f"?mode={mode}").content.decode()
        assert words in text, mode
        assert f'href="?mode={mode}" aria-current="page"' in text
    assert get(client, owner, model, "?mode=nonsense").status_code == 200
    if model.leaves == 1:
        text = get(client, owner, model).content.decode()
        assert "The tree is a single leaf and asks nothing" in text
        assert "The setting depth is 0" in text  # visible without a click


@pytest.mark.one_database
def test_time_of_search_has_one_label_everywhere(client, register, dataset, owner, cart_document):
    models = [register(document=cart_document, dataset=dataset) for _ in range(2)]
    time = seconds(cart_document["certificate"]["seconds"])
    claim = get(client, owner, models[0], "?mode=proof").content.decode()
    assert f"<dt>Time of the search</dt><dd>{time}" in claim
    side_by_side = client.get("/models/compare/?" + "&".join(f"models={m.pk}" for m in models)).content.decode()
    assert f'<th scope="row">Time of the search</th><td>{time}</td>' in side_by_side


@pytest.mark.one_database
def test_a_large_difference_gets_one_sentence(client, register, dataset, owner, cart_document):
    changed = json.loads(json.dumps(cart_document))
    changed["metrics"]["train"]["accuracy"] = 0.9
    for below, n, said in (
        (0.031, 1_000_000, True),
        (0.029, 1_000_000, False),
        (0.031, 50, False),  # with so few rows, chance explains the difference
    ):
        accuracy = changed["metrics"]["train"]["accuracy"] - below
        changed["metrics"]["cross_validation"] |= {"accuracy": accuracy, "correct": round(accuracy * n), "n": n}
        text = get(client, owner, register(document=changed)).content
        assert (b"points more often" in text) == said


@pytest.mark.one_database
def test_checked_again_from_the_file(register, dataset, cart_document):
    check = check_claim(register(dataset=dataset))
    assert check.agrees
    assert check.objective == pytest.approx(cart_document["certificate"]["objective"])
    lie = json.loads(json.dumps(cart_document))
    lie["metrics"]["train"]["correct"] += 1
    check = check_claim(register(document=lie, dataset=dataset))
    assert not check.agrees
    assert "running its tree gives" in check.sentence
    lie = json.loads(json.dumps(cart_document))
    lie["certificate"]["objective"] += 0.01
    assert not check_claim(register(document=lie, dataset=dataset)).agrees
    lie = json.loads(json.dumps(cart_document))
    lie["fingerprint"] = "0" * 64
    assert "fingerprint" in check_claim(register(document=lie, dataset=dataset)).sentence
    assert check_claim(register()) is None


@pytest.mark.one_database
def test_large_table_is_read_by_other_process_and_stays_on_disk(register, dataset, monkeypatch, settings):
    model = register(dataset=dataset)
    here = rows.rows_of(model)
    rows._read_rows.cache_clear()
    monkeypatch.setattr(rows, "READ_HERE", 0)
    monkeypatch.setattr(rows, "arrays_of", lambda *arguments: pytest.fail("read in the web process"))
    there = rows.rows_of(model)
    assert isinstance(there.matrix, np.memmap)
    for name in ("matrix", "codes", "numbers", "training"):
        assert np.array_equal(getattr(here, name), getattr(there, name), equal_nan=True), name
    assert (here.same, here.lines is None) == (there.same, there.lines is None)
    assert list((settings.DATA_DIR / reader.FOLDER).iterdir()) == []
    assert check_claim(model).agrees
    # If rows cannot be read, the page treats the model as one without rows, as for small tables.
    rows._read_rows.cache_clear()
    settings.MAX_READING_SECONDS = 0.01
    assert rows.rows_of(model) is None
    rows._read_rows.cache_clear()


@pytest.mark.one_database
def test_following_a_row(client, register, dataset, owner):
    model = register(dataset=dataset)
    _, labels = small_table()
    text = get(client, owner, model, "?line=7").content.decode()
    assert "Follow row" in text  # this file has no line numbers
    assert "row 7 comes here" in text
    assert f"actually {labels.classes[labels.codes[6]]}" in text
    assert "row 7 comes here" in get(client, owner, model, "?row=7").content.decode()
    for by in ("line", "row"):
        answer = get(client, owner, model, f"?{by}=9999")
        assert answer.status_code == 200
        assert "no row 9,999" in answer.content.decode()
        answer = get(client, owner, model, f"?{by}=x%27")
        assert answer.status_code == 200
        assert "is not a row number" in answer.content.decode()


@pytest.mark.one_database
def test_model_page_predicts_a_typed_row(client, register, owner):
    model = register()
    client.force_login(owner)
    form = {"try-0": "7.5", "try-1": "0.2", "try-2": "1", "try-3": "green"}
    text = client.post(f"/models/{model.pk}/?mode=use", form).content.decode()
    assert "Why this row is predicted" in text
    assert "So it is " in text
    part = client.post(f"/models/{model.pk}/try/", form).content.decode()
    assert "What would change the answer" in part
    assert "The answer would be " in part
    assert "Why this row is predicted" in part
    assert "<html" not in part
    answer = client.post(f"/models/{model.pk}/", {**form, "try-0": "wide"})
    assert answer.status_code == 200
    assert "column &#x27;width&#x27; needs a number" in answer.content.decode()


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("text", "plain", "with_comma"),
    [
        ("7.5", 7.5, 7.5),
        ("−7.5", -7.5, -7.5),
        ("7,5", 7.5, 7.5),  # a decimal comma, so not 75
        ("1,234.5", 1234.5, 1234.5),
        ("1,234", 1234, "1,234"),  # ambiguous if the file has decimal commas, so it is refused then
        ("12,34", 12.34, 12.34),
        ("1,2,3", "1,2,3", "1,2,3"),
    ],
)
def test_a_decimal_comma_is_no_thousands_comma(register, cart_document, text, plain, with_comma):
    reading = {"columns": {"width": {"taken_for": "number", "decimal": ",", "thousands": "."}}}
    for document, expected in ((cart_document, plain), (cart_document | {"reading": reading}, with_comma)):
        model = register(document=document)
        names = [c.name for c in content.model_file(model).tree.schema]
        assert content.parse_form_values(model, {f"try-{names.index('width')}": text})["width"] == expected


@pytest.mark.one_database
def test_ambiguous_comma_is_refused_by_both_pages(client, register, cart_document, owner):
    """Pages write 2610 as 2,610, but in the file that means 2.61."""
    reading = {"columns": {"width": {"taken_for": "number", "decimal": ",", "thousands": "."}}}
    model = register(document=cart_document | {"reading": reading})
    client.force_login(owner)
    form = {"typed": "1", "try-0": "2,610", "try-1": "0.2", "try-2": "1", "try-3": "green"}
    for address in (f"/models/{model.pk}/?mode=use", f"/models/{model.pk}/decision/"):
        answer = client.post(address, form).content.decode()
        assert "column &#x27;width&#x27; needs a number" in answer
        assert "So it is " not in answer
        fine = client.post(address, form | {"try-0": "2,61"}).content.decode()
        assert "needs a number" not in fine


@pytest.mark.one_database
def test_no_address_carries_typed_values(client, register, owner):
    model = register()
    client.force_login(owner)
    address = "?mode=use&try=1&try-0=7.5&try-1=0.2&try-2=1&try-3=green"
    text = client.get(f"/models/{model.pk}/{address}").content.decode()
    assert "Why this row is predicted" not in text
    assert 'value="7.5"' not in text
    assert client.get(f"/models/{model.pk}/try/{address}").status_code == 405


def test_only_permitted_users_see_the_page(client, model, owner, stranger, staff):
    assert client.get(f"/models/{model.pk}/").status_code == 302
    assert [get(client, u, model).status_code for u in (owner, staff, stranger)] == [200, 200, 404]


def test_strangers_see_an_approved_model_without_its_rows(client, register, dataset, owner, staff, stranger):
    model = register(dataset=dataset)
    actions.ask_for_approval(model, by=owner)
    actions.approve(model, by=staff)
    text = get(client, stranger, model).content.decode()
    assert "Follow row" not in text
    assert "Small table" not in text
    assert "Checked again" not in get(client, stranger, model, "?mode=proof").content.decode()
    assert client.get(f"/models/{model.pk}/rows/").status_code == 404
    assert client.get(f"/models/{model.pk}/rows.csv").status_code == 404
    assert client.get(f"/models/{model.pk}/groups/?group=width").status_code == 404
    assert client.get(f"/models/{model.pk}/node/?node=1&tab=rows").status_code == 200
    assert get(client, stranger, model, "?line=3").status_code == 200


def test_review_buttons_by_state_and_role(client, model, owner, staff):
    def buttons(user):
        client.force_login(user)
        text = client.get(f"/models/{model.pk}/review/").content.decode()
        return set(re.findall(rf"/models/{model.pk}/review/([\w-]+)/", text))

    assert f"/models/{model.pk}/review/" in get(client, owner, model).content.decode()
    assert buttons(owner) == {"ask"}
    client.force_login(owner)
    assert client.post(f"/models/{model.pk}/review/ask/").status_code == 302
    assert buttons(owner) == {"withdraw"}
    assert buttons(staff) == {"approve-only", "approve-and-serve", "return", "reject"}
    client.force_login(staff)
    client.post(f"/models/{model.pk}/review/reject/", {"reason": ""})
    assert TreeModel.objects.get().state == State.IN_REVIEW
    client.post(f"/models/{model.pk}/review/reject/", {"reason": "too deep"})
    assert TreeModel.objects.get().state == State.REJECTED
    assert "too deep" in get(client, owner, model).content.decode()
    assert client.post(f"/models/{model.pk}/review/burn/").status_code == 404
    assert client.get(f"/models/{model.pk}/review/ask/").status_code == 405


@pytest.mark.one_database
def test_snippets_run_unchanged(client, register, dataset, owner):
    text = get(client, owner, register(dataset=dataset), "?mode=use").content.decode()
    python = unescape(re.search(r'<pre tabindex="0" id="python">(.*?)</pre>', text, re.S).group(1))
    compile(python, "snippet", "exec")
    assert "predict/" in python
    curl = unescape(re.search(r'<pre tabindex="0" id="curl">(.*?)</pre>', text, re.S).group(1))
    words = subprocess.run(
        ["bash", "-c", curl.replace("curl", "printf '%s\\n'", 1)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    row = json.loads(words[-1])["rows"][0]
    table, _ = small_table()
    for name, value in zip(table.names, table.matrix()[0], strict=True):
        if name in row and name != "colour":
            assert row[name] == pytest.approx(value)


def test_the_list_and_its_filters(client, model, owner, stranger):
    client.force_login(owner)
    assert b"Small cart" in client.get("/models/").content
    assert b"No model matches" in client.get("/models/?state=approved").content
    assert client.get("/models/?state=x&page=zz").status_code == 200
    client.force_login(stranger)
    assert b"No models yet" in client.get("/models/").content


def test_compare_says_what_the_numbers_say(client, register, dataset, owner, stranger):
    big = register(document=trained("cart", folds=3), dataset=dataset, title="Big")
    small = register(document=trained("cart", folds=3, depth=1), dataset=dataset, title="Small")
    client.force_login(owner)
    text = client.get("/models/compare/").content.decode()
    best = max((big, small), key=lambda m: (m.unseen_accuracy, -m.leaves))
    assert f"{best.title} (version {best.version}) has the highest accuracy on unseen rows" in text
    assert "CART, version 1" in " ".join(text.split())
    assert text.count("on the frontier</td>") == (2 if big.unseen_accuracy > small.unseen_accuracy else 1)
    assert client.get(f"/models/compare/?dataset={dataset.pk}").status_code == 200
    client.force_login(stranger)
    assert "Nothing to compare yet" in client.get("/models/compare/?dataset=x").content.decode()


def test_compare_names_ties_intervals_and_base_rate(client, register, dataset, owner):
    document = trained("cart", folds=3)
    first = register(document=document, dataset=dataset, title="First")
    second = register(document=document, dataset=dataset, title="Second")
    client.force_login(owner)
    text = " ".join(client.get("/models/compare/").content.decode().split())
    assert "(version 1) tie for the highest accuracy on unseen rows" in text
    crossed = document["metrics"]["cross_validation"]
    majority = int(np.argmax(document["nodes"][0]["counts"]))
    rate = sum(crossed["confusion"][majority]) / crossed["n"]
    assert (
        f"Always giving the most frequent class of the training rows is right for {100 * rate:.1f} % of the same rows"
        in text
    )
    low, high = of_folds(crossed["correct"], crossed["n"], 3)
    assert f"{100 * low:.1f} to {100 * high:.1f}" in text
    side = client.get(f"/models/compare/?models={first.pk}&models={second.pk}").content.decode()
    assert f"{100 * rate:.1f}" in side[side.index("Always the most frequent class") :][:120]


@pytest.mark.one_database
def test_comparison_without_unseen_rows_has_no_empty_chart(client, register, dataset, owner):
    register(document=trained("cart"), dataset=dataset, title="Not tried")
    client.force_login(owner)
    assert "Accuracy and size" not in client.get("/models/compare/").content.decode()
    register(document=trained("cart", folds=3), dataset=dataset, title="Tried")
    assert "Accuracy and size" in client.get("/models/compare/").content.decode()


def test_downloads_of_the_page(client, model, owner, stranger):
    client.force_login(owner)
    assert client.get(f"/models/{model.pk}/download/rules/").status_code == 200
    assert client.get(f"/models/{model.pk}/download/pickle/").status_code == 404
    client.force_login(stranger)
    assert client.get(f"/models/{model.pk}/download/rules/").status_code == 404


@pytest.mark.one_database
def test_unsettled_sizes_are_listed_beside_the_frontier(register, client, owner):
    document = trained("exact", depth=2, max_leaves=4)
    client.force_login(owner)
    page = client.get(f"/models/{register(document=document).pk}/?mode=proof").content.decode()
    assert "Not settled" not in page
    kept = next(e for e in document["certificate"]["evidence"] if e["kind"] == "leaf-frontier")
    kept["unsettled"] = [{"leaves": 3, "bound": 41}, {"leaves": 4, "bound": 44}]
    page = client.get(f"/models/{register(document=document).pk}/?mode=proof").content.decode()
    assert "with 3 leaves at most 41 rows can be correct, with 4 leaves at most 44 rows" in " ".join(page.split())


def test_page_shows_leaf_frontier_and_optimal_trees(register, client_of, client, owner, stranger):
    model = register(document=trained("exact", depth=2, max_leaves=4))
    url = f"/api/v1/models/{model.pk}/figures/leaf-frontier/"
    figure = client_of(owner).get(url).json()
    assert figure["layout"]["yaxis"]["title"]["text"] == "accuracy on training rows, %"
    assert client_of(stranger).get(url).status_code == 404
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/?mode=proof").content.decode()
    assert 'id="leaf-frontier"' in page
    assert 'id="optimal-trees"' not in page
    listed = register(document=trained("exact", depth=2, optimal_trees=2))
    page = client.get(f"/models/{listed.pk}/?mode=proof").content.decode()
    assert 'id="leaf-frontier"' not in page
    assert "Tree 1</summary>" in page
    assert client_of(owner).get(f"/api/v1/models/{listed.pk}/figures/leaf-frontier/").status_code == 404


@pytest.mark.slow
@pytest.mark.one_database
def test_a_point_of_the_frontier_of_hyperplanes_shows_its_tree(register, client_of, client, owner, stranger):
    model = register(document=trained("cut-h", depth=2, pareto=True, time_limit=6, first_trees="cart"))
    api = client_of(owner)
    base = f"/api/v1/models/{model.pk}/figures"
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/?mode=proof").content.decode()
    for size in ("leaves", "coefficients"):
        url = f"{base}/{'leaf' if size == 'leaves' else 'coefficient'}-frontier/"
        figure = api.get(url).json()
        points = next(trace for trace in figure["data"] if trace["name"] == "models")
        assert figure["layout"]["xaxis"]["title"]["text"] == size
        assert len(points["x"]) > 1
        for number, name in zip(points["x"], points["customdata"], strict=True):
            assert page.count(f'id="{name}"') == page.count(f'data-tree="{name}"') == page.count(f'href="#{name}"') == 1
            tree = api.get(f"{base}/tree/?{size}={number}").json()["layout"]["meta"]["nodes"]
            if size == "leaves":
                assert len(tree) == 2 * number - 1
        assert api.get(f"{base}/tree/?{size}=999").status_code == 404
        assert client_of(stranger).get(url).status_code == 404
