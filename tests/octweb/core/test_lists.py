"""Lists stay quick in a large database: plans use an index, and only rows that are shown are counted."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.urls import reverse

from octweb.core.ownership import Deletable
from octweb.datasets.models import Dataset
from octweb.runs.models import TrainingRun

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
KINDS = [model for model in apps.get_models() if issubclass(model, Deletable)]


@pytest.mark.parametrize("model", KINDS, ids=lambda model: model.__name__)
def test_first_rows_of_a_list_are_read_from_an_index(model, owner, staff):
    for user, name in ((owner, "of_owner"), (staff, "of_all")):
        plan = model.objects.visible_to(user)[:30].explain()
        assert f"{model._meta.model_name}_{name}" in plan
        assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("sort", ["newest", "runs"])
def test_data_sets_are_listed_with_their_runs(client, owner, media, sort, django_assert_max_num_queries):
    datasets = Dataset.objects.bulk_create(
        Dataset(owner=owner, name=f"table {i:02}", target="class", rows=3, sha256="0" * 64) for i in range(40)
    )
    TrainingRun.objects.bulk_create(
        TrainingRun(owner=owner, dataset=dataset, method="cart") for dataset in datasets for _ in range(3)
    )
    client.force_login(owner)
    with django_assert_max_num_queries(8):
        answer = client.get(reverse("datasets:list"), {"sort": sort})
    page = answer.context["page"]
    assert [dataset.run_count for dataset in page] == [3] * 30
    assert page.paginator.count == 40
