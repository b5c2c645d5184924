"""The menu, and redirects from earlier addresses."""

import pytest
from django.urls import reverse

from octweb.core.navigation import places

LABELS = ["Data", "Trees", "Decisions", "Review", "API"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/runs/", "/models/searches/"),
        ("/experiments/", "/models/searches/"),
        ("/workbenches/", "/models/drafts/"),
        ("/predictions/", "/decisions/"),
    ],
)
def test_old_address_redirects_for_good_with_its_query(client, owner, media, old, new):
    client.force_login(owner)
    answer = client.get(old, {"q": "first try"})
    assert (answer.status_code, answer.url) == (301, f"{new}?q=first+try")
    assert client.get(answer.url).status_code == 200


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/datasets/new/", "Data"),
        ("/models/", "Trees"),
        ("/models/searches/", "Trees"),
        ("/models/drafts/", "Trees"),
        ("/models/compare/", "Trees"),
        ("/runs/new/", "Trees"),
        ("/experiments/new/", "Trees"),
        ("/models/review/", "Review"),
        ("/decisions/", "Decisions"),
        ("/predictions/new/", "Decisions"),
        ("/api/", "API"),
    ],
)
def test_one_place_of_the_menu_is_marked(path, label):
    found = places(path)
    assert [place["label"] for place in found] == LABELS
    assert [place["label"] for place in found if place["here"]] == [label]


def test_decisions_list_approved_models_first_and_only_own(client, owner, stranger, register, approved, media):
    draft = register(title="A draft")
    client.force_login(owner)
    page = client.get(reverse("decisions"))
    assert [model.pk for model in page.context["models"]] == [approved.pk, draft.pk]
    assert reverse("decide:decision", args=[draft.pk]) in page.content.decode()
    client.force_login(stranger)
    page = client.get(reverse("decisions"))
    assert [model.pk for model in page.context["models"]] == [approved.pk]
