"""The owner's words for splits: stored, inherited, locked by a review, recorded and quoted."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from django.urls import reverse
from rest_framework.exceptions import ValidationError

from octweb.audit.models import Record
from octweb.core.problems import Conflict
from octweb.decide.actions import audit_guidance, guidance_of, set_contact
from octweb.decide.models import Guidance
from octweb.decide.wording import questions_of, write_words
from octweb.dossier.actions import about
from octweb.dossier.models import ModelDossier
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.models import ShareLevel, TreeModel
from tests.octweb.registry.api_explain_cases import explain
from tests.octweb.small_models import small_table_with_gaps
from tests.octweb.visible_text import visible
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
LOW = "Your score <was> too low."


@pytest.fixture
def model(register):
    return register()


def address(model):
    return f"/api/v1/models/{model.pk}/reasons/"


def test_api_stores_words_and_contact_and_names_errors(model, owner, client_of):
    api = client_of(owner)
    first = api.get(address(model)).json()
    tree = model_file(model).tree
    questions = {n: tree.nodes[n].split.text(tree.schema) for q in first["questions"] for n in q["nodes"]}
    assert questions == {n.id: n.split.text(tree.schema) for n in tree.nodes if n.split is not None}
    assert len(first["questions"]) == len(set(questions.values())) < len(questions)
    node = first["questions"][0]["nodes"][0]
    stored = api.put(address(model), {"texts": [{"node": node, "yes": LOW}], "contact": "Desk 3"}, format="json").json()
    assert stored["questions"][0] | {"yes": LOW, "no": ""} == stored["questions"][0]
    assert stored["contact"] == guidance_of(model).contact == "Desk 3"
    for text, member in (
        ({"node": 999, "yes": "x"}, "texts[0].node"),
        ({"node": node, "no": "x" * 501}, "texts.0.no"),
        ({"node": node, "yes": "a\x00b"}, "texts.0.yes"),
    ):
        answer = api.put(address(model), {"texts": [text]}, format="json")
        assert (answer.status_code, answer.json()["errors"][0]["attr"]) == (400, member)
    assert api.get(address(model)).json() == stored


def test_many_wrong_nodes_are_named_up_to_a_limit(model, owner, client_of):
    answer = client_of(owner).put(address(model), {"texts": [{"node": 10**9}] * 1_000}, format="json")
    assert answer.status_code == 400
    assert 2 <= len(answer.json()["errors"]) <= 20


def test_owner_and_staff_edit_texts(model, owner, staff, stranger, client_of):
    for asker, status in ((None, 401), (stranger, 404), (staff, 200), (owner, 200)):
        api = client_of(asker)
        assert api.get(address(model)).status_code == status
        assert api.put(address(model), {"contact": "x"}, format="json").status_code == status
    assert client_of(owner, scope="predict").put(address(model), {}, format="json").status_code == 403


def test_next_version_asks_the_same_question_in_the_same_words(model, register, owner):
    write_words(model, by=owner, texts=[{"node": 0, "yes": LOW}])
    following = register()
    assert following.family == model.family
    assert questions_of(following)[0]["yes"] == LOW
    assert not Guidance.objects.filter(model=following).exists()
    actions.ask_for_approval(following, by=owner)
    assert guidance_of(following).wording == guidance_of(model).wording
    actions.withdraw(following, by=owner)
    write_words(following, by=owner, texts=[{"node": 0, "yes": ""}])
    assert questions_of(following)[0]["yes"] == ""
    assert questions_of(model)[0]["yes"] == LOW


def test_review_locks_words_for_the_owner_and_shows_them(model, owner, staff, client):
    write_words(model, by=owner, texts=[{"node": 0, "yes": LOW}])
    actions.ask_for_approval(model, by=owner)
    with pytest.raises(Conflict):
        write_words(model, by=owner, texts=[{"node": 0, "yes": "other"}])
    client.force_login(staff)
    assert LOW in visible(client.get(reverse("registry:review-page", args=[model.pk])).content.decode())
    write_words(model, by=staff, texts=[{"node": 0, "no": "It was high."}])
    assert questions_of(model)[0] | {"yes": LOW, "no": "It was high."} == questions_of(model)[0]


def test_other_versions_change_no_words_after_the_request(model, register, owner, staff):
    approved = register()
    actions.ask_for_approval(approved, by=owner)
    approved = actions.approve(approved, by=staff)
    write_words(model, by=owner, texts=[{"node": 0, "yes": LOW}])
    assert questions_of(approved)[0]["yes"] == ""
    other = register(name="Another name")
    write_words(other, by=owner, texts=[{"node": 0, "yes": LOW}])
    assert questions_of(actions.publish(approved, by=owner, name="Another name"))[0]["yes"] == ""


def test_words_are_locked_although_the_page_is_older(model, owner):
    before = TreeModel.objects.get(pk=model.pk)
    actions.ask_for_approval(model, by=owner)
    with pytest.raises(Conflict):
        write_words(before, by=owner, texts=[{"node": 0, "yes": LOW}])


def test_contact_with_control_characters_is_refused(model, owner):
    for text in ("a\x00b", "a\ud800b"):
        with pytest.raises(ValidationError, match="control characters"):
            set_contact(model, by=owner, contact=text)


def test_changed_words_break_the_audit(model, owner):
    write_words(model, by=owner, texts=[{"node": 0, "yes": LOW}])
    assert Record.objects.filter(what="worded reasons", subject_id=model.pk).count() == 1
    assert audit_guidance([model]).problems == []
    guidance = guidance_of(model)
    key = next(iter(guidance.wording))
    Guidance.objects.filter(model=model).update(wording={key: {"yes": "forged"}})
    assert "are others" in audit_guidance([model]).problems[0]


def test_dossier_contains_the_words(model, owner):
    write_words(model, by=owner, texts=[{"node": 0, "yes": LOW}])
    record = about(ModelDossier(model=model, owner=owner))
    assert [q["yes"] for q in record["wording"]] == [LOW]


def test_page_keeps_typed_texts_and_says_what_is_wrong(model, owner, client):
    client.force_login(owner)
    page = reverse("decide:reasons", args=[model.pk])
    html = client.post(page, {"yes-0": "x" * 501, "contact": "Desk 3"}).content.decode()
    assert "the limit is 500" in html
    assert "x" * 501 in html
    assert "Kept" in client.post(page, {"yes-0": f" {LOW}\r\n", "contact": "Desk 3"}, follow=True).content.decode()
    assert (questions_of(model)[0]["yes"], guidance_of(model).contact) == (LOW, "Desk 3")
    actions.ask_for_approval(model, by=owner)
    assert "readonly" in client.get(page).content.decode()


def test_explain_gives_reasons_in_the_words(model, owner, staff, stranger, client_of):
    write_words(model, by=owner, texts=[{"node": 0, "yes": LOW, "no": LOW}])
    actions.share(model, by=owner, username=stranger.username, level=ShareLevel.CALL)
    tree = model_file(model).tree
    row = {"width": 3.5, "height": 0.5, "flag": 1, "colour": "red"}
    for asker in (owner, stranger):
        found = explain(client_of(asker), model, {"rows": [row]}).json()["explanations"][0]["reasons"]
        words = {a["node"]: a["words"] for reason in found["principal"] for a in reason["answers"]}
        assert words[0] == LOW
        assert all(text.startswith(tree.nodes[v].split.text(tree.schema)) for v, text in words.items() if v)
        assert [c["column"] for c in found["columns"]]
        assert all(c["words"] for c in found["columns"])


def test_reason_of_an_empty_cell_is_not_the_words_of_a_value(register, owner, client_of):
    table, labels = small_table_with_gaps()
    model = register(document=train(TrainRequest(table=table, labels=labels, method="cart")).model.to_json())
    questions = questions_of(model)
    write_words(model, by=owner, texts=[{"node": q["nodes"][0], "yes": LOW, "no": LOW} for q in questions])
    row = {"width": None, "flag": 1}
    rows = [row | {"height": height, "colour": colour} for height in (-1, 1) for colour in ("red", "green")]
    found = explain(client_of(owner), model, {"rows": rows}).json()["explanations"]
    answers = [a for explanation in found for reason in explanation["reasons"]["principal"] for a in reason["answers"]]
    assert {answer["words"] == LOW for answer in answers if "width ≤" not in answer["question"]} == {True}
    of_width = {a["words"] for a in answers if "width ≤" in a["question"]}
    assert of_width
    assert all(words.startswith("width was empty. This counts as ") for words in of_width)


@pytest.mark.parametrize(
    ("exact", "principal", "words"),
    [
        (True, [], "No other answers to the questions"),
        (False, [], "it is not proved that there is none"),
        (False, [{"answers": [], "without": "yes", "proved": True}], "not proved that no smaller set"),
    ],
)
def test_page_claims_only_what_is_proved(exact, principal, words):
    html = render_to_string("decide/_reasons.html", {"reasons": {"exact": exact, "principal": principal}})
    assert words in visible(html)
