"""PATCH and DELETE of data sets."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from octweb.datasets import actions
from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import API, api, stored_files

pytestmark = pytest.mark.django_db


def patch(user, dataset, **change):
    return api(user).patch(f"{API}{dataset.pk}/", change, format="json")


def column(record, name):
    return next(c for c in record["columns"] if c["name"] == name)


def test_kinds_change_without_loss(owner, dataset):
    before = dataset.sha256
    assert patch(owner, dataset, columns=[{"name": "code", "kind": "categorical"}]).status_code == 200
    dataset.refresh_from_db()
    table, _ = actions.load(dataset)
    assert next(c for c in table.schema if c.name == "code").categories == ("00000", "00001", "00002", "00003")
    assert patch(owner, dataset, columns=[{"name": "code", "kind": "numeric"}]).status_code == 200
    dataset.refresh_from_db()
    assert str(next(c for c in actions.load(dataset)[0].schema if c.name == "code").kind) == "numeric"
    assert dataset.sha256 == before


def test_patch_changes_units_roles_and_policies_only(owner, dataset):
    first = patch(
        owner, dataset, name="Renamed",
        columns=[{"name": "size", "unit": "cm", "missing_policy": "refuse"}, {"name": "day", "role": "ignored"}],
    ).json()  # fmt: skip
    assert first["name"] == "Renamed"
    assert (column(first, "size")["unit"], column(first, "size")["missing_policy"]) == ("cm", "refuse")
    assert column(first, "day")["role"] == "ignored"
    second = patch(owner, dataset, columns=[{"name": "country", "role": "ignored"}]).json()
    assert [c["name"] for c in second["columns"] if c["role"] == "ignored"] == ["country", "day"]
    assert column(second, "size")["unit"] == "cm"
    dataset.refresh_from_db()
    assert actions.load(dataset)[0].names == ("code", "size")


def test_every_left_out_column_can_come_back(owner, dataset):
    patch(owner, dataset, columns=[{"name": "day", "role": "ignored"}, {"name": "code", "role": "ignored"}])
    back = [{"name": "day", "role": "feature"}, {"name": "code", "role": "feature"}]
    dataset.refresh_from_db()
    assert [c["role"] for c in patch(owner, dataset, columns=back).json()["columns"]].count("ignored") == 0
    dataset.refresh_from_db()
    assert actions.load(dataset)[0].names == ("code", "country", "day", "size")


def test_empty_ignore_list_differs_from_no_list(dataset):
    actions.update(dataset, choice=actions.ColumnChoice(ignore=["day"]))
    actions.update(dataset, choice=actions.ColumnChoice(units={"size": "m"}))
    assert actions.load(dataset)[0].names == ("code", "country", "size")
    actions.update(dataset, choice=actions.ColumnChoice(ignore=[]))
    assert actions.load(dataset)[0].names == ("code", "country", "day", "size")


def test_the_target_changes_and_the_old_one_becomes_a_feature(owner, dataset):
    record = patch(owner, dataset, target="country").json()
    assert record["target"] == "country"
    assert column(record, "label")["role"] == "feature"
    assert record["profile"]["classes"] == ["DE", "FR", "NA"]
    dataset.refresh_from_db()
    table, labels = actions.load(dataset)
    assert (labels.name, table.names) == ("country", ("code", "day", "size", "label"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"target": "nothing"}, 422),
        ({"columns": [{"name": "nothing", "kind": "numeric"}]}, 422),
        ({"columns": [{"name": "country", "kind": "numeric"}]}, 422),
        ({"columns": [{"name": "size", "kind": "binary"}]}, 422),
        ({"columns": [{"name": "size", "kind": "colour"}]}, 400),
        ({"columns": [{"kind": "numeric"}]}, 400),
        ({"columns": "size"}, 400),
        ({"name": ""}, 400),
        ({"name": "x" * 201}, 400),
    ],
)
def test_invalid_change_is_refused_without_effect(owner, dataset, change, status):
    before = Dataset.objects.values().get(pk=dataset.pk)
    answer = patch(owner, dataset, **change)
    assert answer.status_code == status, answer.content
    assert Dataset.objects.values().get(pk=dataset.pk) == before


def test_patch_takes_json_only(owner, dataset):
    assert api(owner).patch(f"{API}{dataset.pk}/", {"name": "x"}, format="multipart").status_code == 415


def test_delete_is_409_while_runs_use_it_then_removes_file(
    owner, dataset, run, media, django_capture_on_commit_callbacks
):
    answer = api(owner).delete(f"{API}{dataset.pk}/")
    assert answer.status_code == 409
    assert answer.json()["detail"] == "1 run uses this data set. Delete it first; its models stay."
    assert len(stored_files(media)) == 1
    run.delete()
    with django_capture_on_commit_callbacks(execute=True):
        assert api(owner).delete(f"{API}{dataset.pk}/").status_code == 204
    assert api(owner).get(f"{API}{dataset.pk}/").status_code == 404
    assert actions.purge(timezone.now() + timedelta(days=29)) == 0
    assert len(stored_files(media)) == 1
    assert actions.purge(timezone.now() + timedelta(days=31)) == 1
    assert not Dataset.objects.exists()
    assert not stored_files(media)
