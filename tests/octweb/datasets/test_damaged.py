"""A data set with a damaged file or profile: clear errors, no 500, and no server path in the text."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from django.test import Client

from octweb.datasets import actions
from octweb.jobs.supervisor import hide_folders
from tests.octweb.runs.conftest import CSV

pytestmark = pytest.mark.django_db


@pytest.fixture
def stored(owner, media):
    return actions.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class")


def replace_file(dataset, change: str) -> None:
    path = Path(dataset.file.path)
    if change == "no name":
        dataset.file.name = ""
        dataset.save()
        return
    path.unlink()
    if change == "folder":
        path.mkdir()
    if change == "other content":
        path.write_bytes(b"\x00" * 100)


def check_answers(owner, dataset, media) -> None:
    """Call all URLs of the data set and those that use its rows."""
    client = Client(raise_request_exception=False)
    client.force_login(owner)
    page = f"/datasets/{dataset.pk}/"
    call = f"/api/v1/datasets/{dataset.pk}/"
    addresses = (
        page, f"{page}?all", f"{page}edit/", f"{page}download/", call, f"{call}rows/", f"{call}download/", "/datasets/",
        f"/runs/new/?dataset={dataset.pk}", f"/experiments/new/?dataset={dataset.pk}",
    )  # fmt: skip
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code < 500, address
        assert str(media) not in answer.getvalue().decode(), address


@pytest.mark.slow
@pytest.mark.parametrize("change", ["gone", "folder", "no name", "other content"])
def test_damaged_file_has_clear_answers(stored, owner, media, change):
    replace_file(stored, change)
    check_answers(owner, stored, media)


def test_empty_profile_has_clear_answers(stored, owner, media):
    stored.profile = {}
    stored.save()
    check_answers(owner, stored, media)


def test_error_of_a_worker_names_no_path(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        os.listdir(tmp_path / "gone")
    assert str(tmp_path.parent) not in hide_folders(str(caught.value))
