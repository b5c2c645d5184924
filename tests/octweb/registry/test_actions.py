"""Registration of models, the steps of a review, and its history."""

from __future__ import annotations

import copy
import itertools
import threading

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import F
from rest_framework.exceptions import ValidationError

from octweb.core.problems import Conflict
from octweb.registry.document.model_files import DocumentCache, model_file
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.model_cache import model_by_name
from octweb.registry.models import Family, ReviewEvent, State, TreeModel
from trainer.errors import ModelFileError

ALLOWED = {
    ("draft", "ask"): "in_review",
    ("rejected", "ask"): "in_review",
    ("in_review", "withdraw"): "draft",
    ("in_review", "return"): "draft",
    ("in_review", "approve"): "approved",
    ("in_review", "reject"): "rejected",
    ("approved", "retire"): "retired",
    ("rejected", "retire"): "retired",
}


def test_register_copies_what_lists_need(model, cart_document):
    assert str(model) == "small-cart version 1"
    assert model.state == State.DRAFT
    assert model.method == "cart"
    assert model.unseen_accuracy == cart_document["metrics"]["cross_validation"]["accuracy"]
    assert model.train_accuracy == cart_document["metrics"]["train"]["accuracy"]
    assert model.leaves == sum("class" in node for node in cart_document["nodes"])
    assert [e.after for e in model.events.all()] == ["draft"]
    assert model_file(model).tree.n_leaves == model.leaves


def test_versions_count_up_within_a_family(register, db):
    assert [register().version for _ in range(3)] == [1, 2, 3]
    assert Family.objects.count() == 1


def test_name_reveals_no_drafts_of_others(register, owner, stranger, staff):
    first = register()
    second = register(owner=stranger)
    third = register(owner=stranger)
    assert {m.family.name for m in (first, second, third)} == {"small-cart"}
    assert second.family == third.family != first.family
    assert (first.version, second.version, third.version) == (1, 1, 2)


def test_an_approved_name_belongs_to_one_owner(register, owner, stranger, staff):
    draft = register()
    other = register(owner=stranger)
    approved = actions.approve(actions.ask_for_approval(draft, by=owner), by=staff)
    assert approved.family.name == "small-cart"
    later = register(owner=stranger, name="small-cart")  # the first family now has this name in public
    assert later.family.name == "small-cart-2"
    # A draft that had the name before gets another one at its approval, and its history states that.
    served = actions.approve(actions.ask_for_approval(other, by=stranger), by=staff)
    assert served.family.name == "small-cart-3"
    assert "small-cart-3" in served.events.order_by("id").last().reason
    assert model_by_name("small-cart", None) == approved
    assert model_by_name("small-cart-3", None) == served
    assert register().family == draft.family


def test_a_damaged_document_is_refused_and_nothing_is_stored(register, cart_document, db):
    broken = copy.deepcopy(cart_document)
    broken["nodes"][0]["left"] = 0
    with pytest.raises(ModelFileError):
        register(document=broken)
    broken = copy.deepcopy(cart_document)
    broken["certificate"]["gap"] = "none"
    with pytest.raises(ModelFileError, match=r"certificate\.gap"):
        register(document=broken)
    assert not TreeModel.objects.exists()
    assert not Family.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_versions_stay_unique_when_many_register_at_once(register, owner):
    problems = []

    def work():
        try:
            for _ in range(4):
                register()
        except Exception as error:
            problems.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert sorted(TreeModel.objects.values_list("version", flat=True)) == list(range(1, 17))


@pytest.mark.slow
@pytest.mark.parametrize(("state", "verb"), list(itertools.product(State.values, actions.TRANSITIONS)))
def test_the_state_machine(model, staff, state, verb):
    TreeModel.objects.filter(pk=model.pk).update(state=state)
    model.refresh_from_db()
    before = ReviewEvent.objects.count()
    if (state, verb) in ALLOWED:
        actions.STEPS[verb](model, by=staff, reason="because")
        model.refresh_from_db()
        assert model.state == ALLOWED[state, verb]
        # an approval without a choice also serves the model, which is one more event
        event = ReviewEvent.objects.exclude(before=F("after")).last()
        assert (event.before, event.after, event.by, event.reason) == (state, model.state, staff, "because")
    else:
        with pytest.raises(Conflict):
            actions.STEPS[verb](model, by=staff, reason="because")
        model.refresh_from_db()
        assert model.state == state
        assert ReviewEvent.objects.count() == before
    assert set(actions.possible_steps(model, staff)) == {v for (s, v) in ALLOWED if s == model.state}


@pytest.mark.parametrize("verb", actions.TRANSITIONS)
def test_stranger_is_refused_everywhere(model, stranger, verb):
    with pytest.raises(PermissionDenied):
        actions.STEPS[verb](model, by=stranger, reason="x")


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_only_staff_review(model, owner, verb):
    actions.ask_for_approval(model, by=owner)
    with pytest.raises(PermissionDenied):
        actions.STEPS[verb](model, by=owner, reason="x")
    assert actions.possible_steps(model, owner) == ["withdraw"]


def test_rejecting_needs_a_reason(model, owner, staff):
    actions.ask_for_approval(model, by=owner)
    with pytest.raises(ValidationError):
        actions.reject(model, by=staff, reason="  ")
    model.refresh_from_db()
    assert model.state == State.IN_REVIEW


def test_four_eyes(register, staff, settings):
    model = register(owner=staff)
    actions.ask_for_approval(model, by=staff)
    settings.FOUR_EYES = True
    assert "approve" not in actions.possible_steps(model, staff)
    with pytest.raises(PermissionDenied, match="Four eyes"):
        actions.approve(model, by=staff)
    settings.FOUR_EYES = False
    assert actions.approve(model, by=staff).state == State.APPROVED


def test_the_highest_approved_version_is_served(register, staff):
    models = [register() for _ in range(3)]
    assert actions.served_version(models[0].family) is None
    for m in models[:2]:
        actions.ask_for_approval(m, by=staff)
        actions.approve(m, by=staff)
    assert actions.served_version(models[0].family) == models[1]


def test_the_store_of_parsed_models_is_bounded(model):
    store = DocumentCache(entries=2, characters=100)
    parsed = model_file(model)
    for key, size in (("a", 10), ("b", 10), ("c", 10)):
        store.put(key, parsed, size)
    assert len(store) == 2
    assert store.get("a") is None
    store.put("d", parsed, 95)
    assert len(store) == 1
    store.put("e", parsed, 101)
    assert len(store) == 0
