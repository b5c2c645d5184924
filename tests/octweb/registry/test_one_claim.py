"""All places describe the claim of a workbench version in the same words, with constraints and prices."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.core.management import call_command

from octweb.datasets import stored
from octweb.dossier.document import to_html
from octweb.registry.lifecycle import actions
from octweb.workbench import actions as workbench
from octweb.workbench.models import Step, StepState
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.visible_text import visible
from trainer.dossier import dossier as make_dossier
from trainer.methods.monitor import Monitor
from trainer.training.claims import read_claim
from trainer.training.run import TrainRequest
from trainer.tree.describe import number_text
from trainer.tree.file import from_json
from trainer.workbench.requests import WorkbenchSession

pytestmark = pytest.mark.django_db
WISHES = ("leaf n yes", "ask root height")
IN_WORDS = ("After no: always “class yes”", "At the root: ask height")
PAGES = {
    "strip": "/models/{pk}/",
    "proof": "/models/{pk}/?mode=proof",
    "inspector": "/models/{pk}/?mode=tree&tab=proof",
    "history": "/models/{pk}/?mode=history",
    "list": "/models/",
    "home": "/",
    "review": "/models/{pk}/review/",
    "waiting": "/models/review/",
    "compare all": "/models/compare/",
    "compare two": "/models/compare/?models={pk}&models={other}",
    "API": "/api/v1/models/{pk}/",
    "HTML file": "/models/{pk}/download/html/",
    "admin": "/admin/registry/treemodel/",
}


@pytest.fixture
def request_of(dataset):  # noqa: F811
    table, labels = stored.load(dataset)
    parameters = {"depth": 2, "leaf_penalty": 0.01}
    return TrainRequest(table=table, labels=labels, method="exact", parameters=parameters, test_share=0.25)


@pytest.fixture
def documents(request_of):
    """Provide model files with and without constraints."""
    session = WorkbenchSession(request_of)
    found = [session.result(session.complete(wishes, session.monitor()), session.monitor()) for wishes in (WISHES, ())]
    return [result.model.to_json() for result in found]


@pytest.fixture
def model(owner, dataset, documents):  # noqa: F811
    return actions.register(owner=owner, document=documents[0], dataset=dataset, title="Changed")


@pytest.fixture
def other(owner, dataset, documents):  # noqa: F811
    return actions.register(owner=owner, document=documents[1], dataset=dataset, title="Best")


@pytest.fixture
def claim(documents):
    found = read_claim(documents[0]["certificate"])
    assert re.fullmatch(r"Best with 2 wishes, \+[\d.]+ rows", found.words)
    return found


def test_price_of_all_wishes_is_what_the_optimum_gains(documents, claim):
    changed, best = (d["certificate"] for d in documents)
    assert claim.price_rows == pytest.approx((best["objective"] - changed["objective"]) * best["n"])
    assert claim.price_rows > 1
    assert not claim.proved_optimal
    assert read_claim(best).words == "Proved optimal"
    assert read_claim(best).price_rows is None


@pytest.mark.slow
@pytest.mark.parametrize("place", PAGES)
def test_claim_of_changed_tree_is_the_same_everywhere(place, model, claim, client, staff, request):
    actions.ask_for_approval(model, by=model.owner)
    other = request.getfixturevalue("other").pk if "{other}" in PAGES[place] else None
    client.force_login(staff)
    address = PAGES[place].format(pk=model.pk, other=other)
    answer = client.get(address)
    assert answer.status_code == 200
    text = visible(answer.content.decode())
    assert claim.words in text
    assert text.count("Proved optimal") == (1 if other else 0)
    assert WISHES[0] not in text or place == "API"


def test_reviewer_sees_each_wish_and_its_price(model, claim, client, staff):
    client.force_login(staff)
    for address in (f"/models/{model.pk}/review/", f"/models/{model.pk}/?mode=proof"):
        text = visible(client.get(address).content.decode())
        assert [words for words in IN_WORDS if words not in text] == []
        assert f"All wishes together, against the best tree without wishes {claim.price_words}" in text


def test_price_of_wishes_says_what_a_leaf_counts(documents):
    certificate = documents[0]["certificate"] | {"leaf_penalty": "1/100"}
    found = read_claim(certificate)
    assert found.leaf_words == f"{number_text(certificate['n'] / 100)} rows"
    assert found.explanation.endswith(f"{found.price_words}, where a leaf counts as {found.leaf_words}")
    assert read_claim(documents[0]["certificate"] | {"leaf_penalty": "0"}).leaf_words == ""
    assert read_claim(documents[1]["certificate"] | {"leaf_penalty": "1/100"}).leaf_words == ""


def test_compare_says_which_rows_were_unseen(model, other, client, owner):
    client.force_login(owner)
    text = visible(client.get(f"/models/compare/?models={model.pk}&models={other.pk}").content.decode())
    assert text.count("held-out rows correct") == 2


def test_review_calls_a_count_no_check(model, client, staff):
    """The independent checker has not run, and the page only counts the rows again."""
    client.force_login(staff)
    text = visible(client.get(f"/models/{model.pk}/review/").content.decode())
    assert "Counted again when this page was opened yes," in text
    assert "Checked again" not in text


def test_api_says_wishes_and_their_price(model, other, claim, client_of):
    api = client_of(model.owner)
    answer = api.get(f"/api/v1/models/{model.pk}/").json()
    assert answer["proved_optimal"] is False
    assert answer["claims"][0]["words"] == claim.words
    assert answer["claims"][0]["kind"] == "wishes"
    assert [wish["words"] for wish in answer["wishes"]] == list(IN_WORDS)
    assert answer["price_rows"] == claim.price_rows
    best = api.get(f"/api/v1/models/{other.pk}/").json()
    assert (best["proved_optimal"], best["wishes"], best["price_rows"]) == (True, [], None)


def test_answers_of_predictions_say_wishes(model, other, claim, client_of):
    row = {"width": 1, "height": 2, "colour": "red"}
    api = client_of(model.owner)
    for changed in (model, other):
        answer = api.post(f"/api/v1/models/{changed.pk}/predict/", {"rows": [row]}, format="json").json()
        said = answer["certificate"]
        assert said["proved_optimal"] is (changed is other)
        assert said.get("price_rows") == (claim.price_rows if changed is model else None)
        assert said.get("wishes") == (list(IN_WORDS) if changed is model else None)


def test_protocol_answers_say_wishes_as_text(model, claim, staff, client_of):
    actions.ask_for_approval(model, by=model.owner)
    actions.approve(model, by=staff, reason="The wishes are wanted.", publish=True)
    inputs = [{"name": "width", "shape": [1, 1], "datatype": "FP64", "data": [1.0]},
              {"name": "height", "shape": [1, 1], "datatype": "FP64", "data": [2.0]},
              {"name": "colour", "shape": [1, 1], "datatype": "BYTES", "data": ["red"]}]  # fmt: skip
    answer = client_of(model.owner).post(f"/v2/models/{model.family.name}/infer", {"inputs": inputs}, format="json")
    said = answer.json()["parameters"]
    assert said["proved_optimal"] is False
    assert said["wishes"] == "; ".join(IN_WORDS)
    assert said["price_rows"] == claim.price_rows


def test_dossier_says_the_claim_with_wishes_in_words(documents, claim, csv_file, tmp_path):  # noqa: F811
    path = tmp_path / "model.json"
    path.write_text(json.dumps(documents[0]))
    record = make_dossier(path, csv_file)
    assert record["claim"]["words"] == claim.words
    assert record["claim"]["proved_optimal"] is False
    text = visible(to_html(record, from_json(documents[0]).tree))
    assert claim.words in text
    assert "Proved optimal" not in text
    assert WISHES[0] not in text
    assert f"All wishes together, against the best tree without wishes {claim.price_words}" in text


def test_workbench_badge_is_the_claim_of_its_version(request_of, documents, claim, owner, dataset, client):  # noqa: F811
    bench = workbench.open_for(owner=owner, dataset=dataset, parameters=request_of.parameters, test_share=0.25)
    step = workbench.current(bench)
    session = WorkbenchSession(request_of)
    result = session.result(session.complete(WISHES, Monitor()), Monitor())
    Step.objects.filter(pk=step.pk).update(
        wishes=list(WISHES), state=StepState.DONE, document=json.dumps(documents[0]), result=result.summary
    )
    client.force_login(owner)
    text = visible(client.get(f"/workbenches/{bench.pk}/").content.decode())
    assert claim.words in text
    assert "Proved optimal" not in text


def test_command_says_the_claim_and_wishes_in_words(csv_file, claim):  # noqa: F811
    given = [
        "--target=class",
        "--depth=2",
        "--leaf-penalty=0.01",
        "--test-share=0.25",
        *(f"--wish={w}" for w in WISHES),
    ]
    out = StringIO()
    call_command("complete", str(csv_file), *given, stdout=out, stderr=StringIO())
    assert out.getvalue().splitlines()[-3].startswith(f"{claim.words}: ")
    assert f": {IN_WORDS[0]}" in out.getvalue()
    out = StringIO()
    call_command("complete", str(csv_file), *given, "--json", stdout=out, stderr=StringIO())
    record = json.loads(out.getvalue().splitlines()[-1])
    assert record["claim"] == claim.words
    assert record["proved_optimal"] is False
    assert record["price_rows"] == claim.price_rows


def test_stopped_search_without_optimum_names_no_price(documents):
    stopped = documents[0]["certificate"] | {"status": "time_limit", "gap": 0.125, "bound": 0.9, "optimum": None}
    found = read_claim(stopped)
    assert found.words.replace("\u202f", " ") == "Gap 12.5 % with 2 wishes"
    assert found.price_words == "price not known"
    open_optimum = documents[0]["certificate"]["optimum"] | {"bound": 1.0, "proved": False}
    found = read_claim(stopped | {"optimum": open_optimum})
    assert "at least +" in found.words
    assert found.price_rows is None


def test_file_without_certificate_claims_nothing():
    assert read_claim({}).words == "No claim"
