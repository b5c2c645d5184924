"""Pages, API, command line and exports show the base rate beside each accuracy."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from tests.octweb.small_models import csv_of_small_table, trained
from trainer import ExactTreeClassifier
from trainer.evaluate.verdict import base_rate, training_base_words
from trainer.model_page import Subject, claims

pytestmark = pytest.mark.django_db
BESIDE = ("one answer:", "most frequent class", "Always answering", "always answering")
PAGES = ["", "?mode=history", "?mode=performance", "?mode=proof"]


@pytest.fixture(autouse=True)
def _media(media):
    pass


@pytest.fixture
def measured(register):
    return register(document=trained("cart", folds=4), title="Measured", name="measured")


@pytest.mark.parametrize("mode", PAGES)
def test_page_of_a_model_has_the_base_rate(client, owner, measured, mode):
    client.force_login(owner)
    page = client.get(reverse("registry:detail", args=[measured.pk]) + mode).content.decode()
    assert any(words in page for words in BESIDE)


def test_lists_have_the_base_rate_beside_each_accuracy(client, owner, staff, measured):
    rate = f"{100 * base_rate(model_file(measured)).share:.1f}"
    client.force_login(owner)
    assert f"one answer: {rate}" in client.get(reverse("registry:list")).content.decode()
    history = client.get(reverse("registry:detail", args=[measured.pk]) + "?mode=history").content.decode()
    assert history.count(f"one answer: {rate}") >= 2  # once beside the title, and once in the line of the version
    actions.ask_for_approval(measured, by=owner)
    client.force_login(staff)
    review = client.get(reverse("registry:review-page", args=[measured.pk])).content.decode()
    assert "most frequent class of the training rows is right for" in review
    assert f"one answer: {rate}" in client.get(reverse("home")).content.decode()
    actions.approve(measured, by=staff, reason="Tested.")
    client.logout()
    welcome = client.get(reverse("home")).content.decode()
    assert f"one answer: {rate}" in welcome


def test_api_has_the_base_rate(client_of, owner, measured):
    answer = client_of(owner).get(f"/api/v1/models/{measured.pk}/").json()
    assert answer["base_rate"] == base_rate(model_file(measured)).to_json()


def test_file_to_carry_away_has_the_base_rate(measured):
    file = model_file(measured)
    lines = dict(claims(Subject(file=file, title="", sha256="", document="")))
    assert "right" in lines["Cross-validation"]
    share = base_rate(file)
    assert lines["One answer for all"].startswith(f"“{share.label}” is right for {100 * share.share:.1f}")


@pytest.mark.parametrize("command", ["train", "complete", "frontier"])
def test_commands_print_the_base_rate(tmp_path, command):
    (tmp_path / "rows.csv").write_text(csv_of_small_table(), encoding="utf-8")
    out = io.StringIO()
    options = {"target": "kind", "method": "exact", "depth": "2", "stdout": out, "stderr": out}
    call_command(command, str(tmp_path / "rows.csv"), **options)
    assert any(words in out.getvalue() for words in (*BESIDE, "one answer"))


def test_train_json_has_the_base_rate(tmp_path):
    (tmp_path / "rows.csv").write_text(csv_of_small_table(), encoding="utf-8")
    out = io.StringIO()
    call_command("train", str(tmp_path / "rows.csv"), target="kind", method="cart", json=True, stdout=out)
    assert json.loads(out.getvalue().splitlines()[-1])["base_rate"]["class"] in "abc"


def test_notebook_shows_the_base_rate():
    classifier = ExactTreeClassifier(depth=1).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    assert "Always the most frequent class, “a”: 2 of 3 training rows are right." in classifier._html_repr()
    assert training_base_words(classifier.tree_) in classifier._html_repr()
