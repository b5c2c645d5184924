"""The review page: notes, four eyes, comparison with the served version, and publishing as a separate step."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
from django.core.exceptions import PermissionDenied

from octweb.audit.models import Record
from octweb.core.problems import Conflict
from octweb.datasets import actions as datasets
from octweb.datasets import versions
from octweb.dossier.actions import about
from octweb.dossier.models import ModelDossier
from octweb.registry.document.difference import compare_with_served
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.audit_trail import audit_models
from octweb.registry.lifecycle.model_cache import model_by_name
from octweb.registry.models import Family, Share, ShareLevel, State, TreeModel
from tests.octweb.registry.test_pages import dataset  # noqa: F401 (a fixture)
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import trained
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def served(register, staff, dataset):  # noqa: F811
    first = register(dataset=dataset)
    actions.ask_for_approval(first, by=first.owner)
    return actions.approve(first, by=staff)


@pytest.fixture
def second(served, register, dataset):  # noqa: F811
    model = register(dataset=dataset, document=copy.deepcopy(trained("cart", depth=1, folds=3)))
    return actions.ask_for_approval(model, by=model.owner, reason="Shorter, and as good.")


def page(client, user, model):
    client.force_login(user)
    return client.get(f"/models/{model.pk}/review/")


def test_history_says_what_changed_in_words_and_rows(client, owner, second):
    client.force_login(owner)
    answer = client.get(f"/models/{second.pk}/?mode=history")
    change = answer.context["changes"][0]
    text = " ".join(answer.content.decode().split())
    assert "has two leaves instead of" in text
    rows = change["rows"].training
    assert f"{rows.different} of {rows.rows} training rows" in text
    assert rows.different > 0


def test_the_reviewer_sees_why_and_what_changes(client, staff, second, served):
    answer = page(client, staff, second)
    text = answer.content.decode()
    assert "Shorter, and as good." in text
    words = " ".join(text.split())
    assert "Approve and serve as small-cart" in words
    assert "in place of version 1" in words
    assert "Approve only" in words
    assert "Version 1 stays served under the name" in words
    assert second.sha256 in text
    found = answer.context["difference"]
    assert any(line["kind"] == "removed" for line in found.lines)
    both = found.training
    assert both.different == both.now_right + both.now_wrong + both.neither
    assert 0 < both.different <= both.rows


def test_counts_of_changed_rows_equal_those_of_the_list(second, served):
    comparison = compare_with_served(second, served)
    examples = [e for e in comparison.examples if not e["unseen"]]
    if len(comparison.examples) < 50:
        assert len(examples) == comparison.training.different
        assert sum(e["right"] for e in examples) == comparison.training.now_right
    assert all(e["then"] != e["now"] for e in comparison.examples)
    rows = rows_of(second)
    for e in comparison.examples:
        place = rows.at_line(e["number"])
        assert (e["called"], e["actual"]) == ("row", model_file(second).tree.classes[rows.codes[place]])


def test_rows_that_trained_the_served_version_are_left_out(client, register, owner, staff):
    file = io.BytesIO(CSV.encode())
    data = datasets.create(owner=owner, file=file, source_name="a.csv", name="A", target="class")
    model, same = (trained_on(register, data, depth) for depth in (1, 2))
    everything = trained_on(register, data, 2, held_out=0.0)
    unseen = len(rows_of(model).unseen)
    comparison = compare_with_served(model, same)  # both models have the same held-out rows
    assert (comparison.left_out, comparison.unseen.rows) == (0, unseen)
    comparison = compare_with_served(model, everything)
    assert (comparison.left_out, comparison.unseen) == (unseen, None)
    assert not any(example["unseen"] for example in comparison.examples)
    actions.ask_for_approval(everything, by=everything.owner)
    actions.approve(everything, by=staff)
    words = " ".join(page(client, staff, model).content.decode().split())
    assert f"Left out: {unseen} held-out rows on which the served version was trained" in words
    assert (
        f"Version {everything.version} was trained on {unseen} held-out rows, so there is no unseen row to compare."
        in words
    )


def test_history_leaves_out_rows_that_earlier_version_saw(client, register, owner):
    file = io.BytesIO(CSV.encode())
    data = datasets.create(owner=owner, file=file, source_name="a.csv", name="A", target="class")
    trained_on(register, data, 2, held_out=0.0)
    model = trained_on(register, data, 1)
    client.force_login(owner)
    answer = client.get(f"/models/{model.pk}/?mode=history")
    rows = answer.context["changes"][0]["rows"]
    assert rows.left_out == len(rows_of(model).unseen)
    words = " ".join(answer.content.decode().split())
    assert f"Left out: {rows.left_out} held-out rows on which version 1 was trained." in words


def test_history_distinguishes_return_from_withdrawal(second, staff, owner):
    actions.ask_back(second, by=staff, reason="Which counters?")
    assert second.events.last().step == "Asked back"
    second.events.update(by=owner)
    assert second.events.last().step == "Taken back"


def trained_on(register, dataset, depth, held_out=0.25):  # noqa: F811
    table, labels = datasets.load(dataset)
    parameters = {"depth": depth}
    result = train(TrainRequest(table=table, labels=labels, method="cart", parameters=parameters, test_share=held_out))
    return register(dataset=dataset, document=result.model.to_json())


def test_rows_of_the_earlier_file_are_found_by_content(client, register, owner, staff):
    """Served: 75 % of a file. New: that file in another order and writing, and as many rows again."""
    head, *lines = CSV.strip().split("\n")
    first = datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="a.csv", name="A", target="class")
    # "1.50" and "1.5" are the same number; the other rows have numbers of their own
    width = head.split(",").index("width")
    others = [",".join(f"{c}7" if j == width else c for j, c in enumerate(x.split(","))) for x in lines]
    written = [",".join(f"{c}0" if j == width and "." in c else c for j, c in enumerate(x.split(","))) for x in lines]
    more = io.BytesIO("\n".join([head, *reversed(written), *others]).encode())
    newer = versions.new_version(first, owner=owner, file=more, source_name="newer.csv", as_it_is=True)
    old = trained_on(register, first, 2)
    model = trained_on(register, newer, 1)
    rows = rows_of(model)
    known = {lines[i - 1] for i in rows_of(old).numbers[rows_of(old).training]}
    everything = [*reversed(lines), *others]
    expected = sum(everything[i - 1] in known for i in rows.numbers[rows.unseen])
    comparison = compare_with_served(model, old)
    assert comparison.left_out == expected > 0
    assert comparison.unseen.rows == len(rows.unseen) - expected > 0
    assert not comparison.overlap_unknown


def test_newer_model_is_compared_with_served_one_on_its_data(client, register, owner, staff):
    head, *lines = CSV.strip().split("\n")
    first = datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="a.csv", name="A", target="class")
    more = io.BytesIO("\n".join([head, *lines, *lines[::3]]).encode())
    newer = versions.new_version(first, owner=owner, file=more, source_name="newer.csv")
    old = trained_on(register, first, 2)
    model = trained_on(register, newer, 1)
    actions.ask_for_approval(old, by=owner)
    actions.approve(old, by=staff)
    comparison = compare_with_served(model, old)
    rows = rows_of(model)
    assert comparison.training.rows + comparison.unseen.rows + comparison.left_out == newer.rows
    now, then = (model_file(m).tree.predict(rows.matrix) for m in (model, old))
    assert comparison.training.different == (now != then)[rows.training].sum() > 0
    first.file.delete()
    old = TreeModel.objects.get(pk=old.pk)
    comparison = compare_with_served(model, old)
    assert comparison.overlap_unknown
    assert comparison.training.different + comparison.unseen.different == (now != then).sum()
    actions.ask_for_approval(model, by=owner)
    assert "may have been trained on some of the unseen rows" in page(client, staff, model).content.decode()


def test_version_with_new_category_is_compared_by_names(register, owner):
    """The new file has more categories, so the codes of the old ones differ."""
    head, *lines = CSV.strip().split("\n")
    first = datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="a.csv", name="A", target="class")
    more = [line.replace("red", "amber").replace("green", "violet") for line in lines[:20]]
    content = io.BytesIO("\n".join([head, *lines, *more]).encode())
    newer = versions.new_version(first, owner=owner, file=content, source_name="newer.csv", as_it_is=True)
    old = trained_on(register, first, 3)
    model = trained_on(register, newer, 1)
    tree = model_file(old).tree
    assert "colour" in [tree.schema[j].name for j in tree.used_columns]
    rows = rows_of(model)
    then = []
    for cells in rows.matrix:
        record = dict(zip(["width", "height", "colour"], cells, strict=True))
        word = model_file(model).tree.schema[2].categories[int(cells[2])]
        known = tree.schema[2].categories
        record["colour"] = float(known.index(word)) if word in known else -1.0
        then.append(int(tree.predict(np.array([[record[c.name] for c in tree.schema]]))[0]))
    now = model_file(model).tree.predict(rows.matrix)
    comparison = compare_with_served(model, old)
    assert comparison.training.different == (now != np.array(then))[rows.training].sum()


def test_strangers_see_no_review(client, stranger, second):
    assert page(client, stranger, second).status_code == 404


@pytest.mark.parametrize(("step", "version"), [("approve-and-serve", 2), ("approve-only", 1), ("approve", 1)])
def test_approving_serves_only_where_it_is_asked_for(client, staff, second, served, step, version):
    client.force_login(staff)
    client.post(f"/models/{second.pk}/review/{step}/", {"back": "review", "reason": "Shorter."})
    second.refresh_from_db()
    assert second.state == State.APPROVED
    assert actions.served_version(second.family).version == version
    assert model_by_name(second.family.name, None).version == version
    assert (model_by_name(second.family.name, 2) is not None) is (version == 2)
    # a version number selects its version, whichever version the name alone selects
    assert model_by_name(second.family.name, 1).pk == served.pk


def test_the_first_version_is_served_by_a_step_of_its_own_too(client, client_of, staff, stranger, model):
    actions.ask_for_approval(model, by=model.owner)
    text = " ".join(page(client, staff, model).content.decode().split())
    assert "Approve and serve as small-cart" in text
    assert "Nothing answers to the name" in text
    client.post(f"/models/{model.pk}/review/approve-only/", {"back": "review"})
    model.refresh_from_db()
    api = client_of(stranger)
    assert (model.state, model.served_since) == (State.APPROVED, None)
    assert api.get(f"/api/v1/models/{model.pk}/").status_code == 200  # it is approved, so users reach it by its id
    for address in ("/v2/models/small-cart", "/v2/models/small-cart/versions/1", "/v2/models/small-cart/ready"):
        assert api.get(address).status_code == 404
    assert api.post("/v2/repository/index").json() == []
    assert "Approved, and not served" in page(client, staff, model).content.decode()
    client.post(f"/models/{model.pk}/publish/", {"back": "review"})
    assert api.get("/v2/models/small-cart").json()["versions"] == ["1"]
    client.post(f"/models/{model.pk}/stop-serving/", {"back": "review", "reason": "A new table comes."})
    assert api.get("/v2/models/small-cart").status_code == 404
    model.refresh_from_db()
    assert model.state == State.APPROVED
    steps = [(e.step, e.by, e.reason) for e in model.events.all()][2:]
    assert steps == [
        ("Approved", staff, ""),
        ("Served name", staff, "served as small-cart version 1"),
        ("Served name", staff, "no longer served as small-cart version 1: A new table comes."),
    ]
    done = list(Record.objects.filter(subject_id=model.pk).order_by("number").values_list("what", flat=True))
    assert done == ["trained", "ask", "approve", "served", "no longer served"]
    assert audit_models([model]).problems == []


def test_a_name_goes_back_to_the_version_that_was_served_before(client, staff, second, served):
    actions.approve(second, by=staff, reason="Shorter.", publish=True)
    assert "then answers with version 1." in page(client, staff, second).content.decode()
    actions.stop_serving(second, by=staff)
    assert actions.served_version(second.family) == served
    assert "small-cart version 1 answers to the name" in second.events.last().reason
    with pytest.raises(Conflict, match="not served"):
        actions.stop_serving(second, by=staff)
    actions.retire(served, by=staff)
    served.refresh_from_db()
    assert (served.served_since, actions.served_version(served.family), model_by_name("small-cart", 1)) == (
        None,
        None,
        None,
    )


def test_a_version_that_is_served_is_served_again_without_a_step(staff, served):
    steps = served.events.count()
    actions.publish(served, by=staff)
    assert served.events.count() == steps


def test_approver_and_publisher_are_recorded_separately(owner, staff, second):
    actions.approve(second, by=staff, reason="Shorter.", publish=False)
    actions.publish(second, by=owner)
    said = about(ModelDossier(model=second, owner=owner, said={}))
    assert said["signatures"]["Approved by"] == staff.username
    assert [s["step"] for s in said["review"]][-2:] == ["Approved", "Served name"]


def test_older_version_is_not_served_automatically(register, staff, served, second):
    older = register()  # version 3, submitted only after version 4 is approved
    newer = register()
    for model in (newer, older):
        actions.ask_for_approval(model, by=model.owner)
        actions.approve(model, by=staff)
    assert actions.served_version(newer.family).pk == newer.pk


def test_serving_is_a_step_and_is_kept_in_the_history(client, staff, owner, second, served):
    actions.approve(second, by=staff, reason="Shorter.", publish=False)
    client.force_login(owner)
    client.post(f"/models/{second.pk}/publish/", {"name": second.family.name, "back": "review"})
    assert actions.served_version(second.family) == second
    assert "served as small-cart version 2" in second.events.last().reason
    actions.publish(served, by=staff)
    assert actions.served_version(second.family) == served
    actions.retire(served, by=staff)
    assert actions.served_version(second.family) == second


def test_a_model_moves_to_the_name_under_which_it_is_served(staff, second, served, register):
    other = register(title="Credit scores")
    actions.approve(second, by=staff, reason="Shorter.")
    moved = actions.publish(second, by=staff, name="credit scores")
    assert (moved.family, moved.version) == (other.family, 2)
    assert actions.served_version(other.family) == moved
    assert actions.served_version(Family.objects.get(name="small-cart")) == served
    assert model_by_name("credit-scores", None).pk == moved.pk


def test_a_served_name_needs_a_letter_or_a_digit(client, staff, second, served):
    actions.approve(second, by=staff, reason="Shorter.")
    before = second.family
    client.force_login(staff)
    answer = client.post(f"/models/{second.pk}/publish/", {"name": "日本!", "back": "review"})
    assert answer.status_code == 200
    assert "Use at least one letter from a to z or a digit" in answer.content.decode()
    second.refresh_from_db()
    assert second.family == before
    page = client.post(f"/models/{second.pk}/publish/", {"name": "Ward 5, triage!", "back": "review"}, follow=True)
    assert "Version 1 of <code>ward-5-triage</code>" in " ".join(page.content.decode().split())
    assert "pattern=" not in page.content.decode()  # a browser would refuse such a name without giving a reason


def test_rejected_model_states_reviewer_reason_and_next_step(client, staff, owner, second):
    actions.reject(second, by=staff, reason="Too many are missed.")
    client.force_login(owner)
    banner = client.get(f"/models/{second.pk}/").content.decode().split('<p class="banner bad">')[1].split("</p>")[0]
    assert "Rejected by ada" in banner
    assert "Too many are missed." in banner
    assert f'href="/models/{second.pk}/review/#decide">Say what has changed and ask again' in banner


def test_home_shows_rejection_until_approval_is_requested_again(client, staff, owner, second):
    def back(user):
        client.force_login(user)
        return [(e.model_id, e.after, e.reason) for e in client.get("/").context["back"]]

    assert back(owner) == []
    actions.withdraw(second, by=owner, reason="Not yet.")
    assert back(owner) == []  # the owner withdrew it, so there is nothing to tell
    actions.ask_for_approval(second, by=owner)
    actions.ask_back(second, by=staff, reason="Which counters?")
    assert back(owner) == [(second.pk, State.DRAFT, "Which counters?")]
    assert "Which counters?" in client.get("/").content.decode()
    assert back(staff) == []
    actions.ask_for_approval(second, by=owner, reason="Those of the west.")
    assert back(owner) == []
    actions.reject(second, by=staff, reason="Too many are missed.")
    assert back(owner) == [(second.pk, State.REJECTED, "Too many are missed.")]
    actions.retire(second, by=owner)
    assert back(owner) == []


def test_list_describes_how_runs_ended(client, owner, second):
    client.force_login(owner)
    page = client.get("/models/", {"status": "time_limit"}).content.decode()
    assert '<option value="time_limit" selected>at its time limit</option>' in page
    assert ">time_limit<" not in page
    assert 'value="heuristic">heuristic, without a proof' in page


def test_only_approved_models_are_served_and_not_by_strangers(second, stranger, owner):
    with pytest.raises(Conflict):
        actions.publish(second, by=owner)
    with pytest.raises(PermissionDenied):
        actions.publish(second, by=stranger)


def test_asking_back_needs_a_note_and_ends_in_a_draft(client, staff, owner, second):
    client.force_login(staff)
    client.post(f"/models/{second.pk}/review/return/", {"reason": " "})
    assert TreeModel.objects.get(pk=second.pk).state == State.IN_REVIEW
    client.post(f"/models/{second.pk}/review/return/", {"reason": "Which rows were left out?"})
    assert TreeModel.objects.get(pk=second.pk).state == State.DRAFT
    assert "Which rows were left out?" in page(client, owner, second).content.decode()


def test_a_rejected_model_says_why_and_how_to_ask_again(client, staff, owner, second):
    actions.reject(second, by=staff, reason="The leaf with three rows.")
    text = page(client, owner, second).content.decode()
    assert "The leaf with three rows." in text
    assert "Ask again" in text
    client.post(f"/models/{second.pk}/review/ask/", {"reason": "It has thirty rows now."})
    assert TreeModel.objects.get(pk=second.pk).state == State.IN_REVIEW


def test_four_eyes_are_on_with_two_administrators(register, staff, django_user_model, settings, client):
    settings.FOUR_EYES = None
    model = register(owner=staff)
    actions.ask_for_approval(model, by=staff)
    assert "approve" in actions.possible_steps(model, staff)
    django_user_model.objects.create_superuser("bea", password="a long password")
    assert "approve" not in actions.possible_steps(model, staff)
    assert "Four eyes" in page(client, staff, model).content.decode()


@pytest.mark.parametrize(("level", "calls"), [(ShareLevel.READ, False), (ShareLevel.CALL, True)])
def test_a_share_opens_a_draft_to_one_person(model, stranger, django_user_model, client, client_of, level, calls):
    other = django_user_model.objects.create_user("zoe", password="a long password")
    Share.objects.create(model=model, user=stranger, level=level)
    client.force_login(stranger)
    assert client.get(f"/models/{model.pk}/").status_code == 200
    api = client_of(stranger)
    assert api.get(f"/api/v1/models/{model.pk}/").status_code == 200
    status = api.post(f"/api/v1/models/{model.pk}/predict/", {"rows": []}, format="json").status_code
    assert (status != 404) is calls
    use = client.get(f"/models/{model.pk}/?mode=use").content.decode()
    assert ("curl " in use) is calls
    assert ("shared with you for reading only" in use) is not calls
    client.force_login(other)
    assert client.get(f"/models/{model.pk}/").status_code == 404
    assert client_of(other).get(f"/api/v1/models/{model.pk}/").status_code == 404


def test_the_list_of_what_waits(client, staff, stranger, second):
    client.force_login(staff)
    assert str(second.pk) in client.get("/models/review/").content.decode()
    client.force_login(stranger)
    assert str(second.pk) not in client.get("/models/review/").content.decode()
