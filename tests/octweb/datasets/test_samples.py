"""The nine samples: each loads once per user, with the rows of its definition."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from octweb.datasets import samples
from octweb.datasets.models import Dataset
from trainer.data.samples import SAMPLES

pytestmark = pytest.mark.django_db
ROWS = {
    "iris": 150, "wine": 178, "breast-cancer": 569, "digits": 1797, "monks-1": 432, "monks-2": 432, "monks-3": 432,
    "tic-tac-toe": 958, "balance-scale": 625,
}  # fmt: skip


@pytest.mark.slow
def test_all_nine_samples_load_only_once(owner, stranger, capsys):
    call_command("load_samples", owner.username)
    assert dict(Dataset.objects.values_list("sample", "rows")) == ROWS
    ids = set(Dataset.objects.values_list("pk", flat=True))
    call_command("load_samples", owner.username)
    assert set(Dataset.objects.values_list("pk", flat=True)) == ids
    assert "9 sample data sets belong to olga." in capsys.readouterr().out
    assert samples.load(owner=stranger, slug="monks-1").owner == stranger
    assert Dataset.objects.count() == 10


def test_classes_match_the_definitions(owner):
    counts = {}
    for slug in ("tic-tac-toe", "balance-scale", "monks-1", "monks-2"):
        profile = samples.load(owner=owner, slug=slug).profile
        counts[slug] = dict(zip(profile["classes"], profile["class_counts"], strict=True))
    assert counts == {
        "tic-tac-toe": {"no": 332, "yes": 626},
        "balance-scale": {"balanced": 49, "left": 288, "right": 288},
        "monks-1": {"no": 216, "yes": 216},
        "monks-2": {"no": 290, "yes": 142},
    }


def test_sample_is_added_by_one_click(owner, client):
    client.force_login(owner)
    address = reverse("datasets:sample", args=["balance-scale"])
    first = client.post(address)
    second = client.post(address)
    assert first.url == second.url == reverse("datasets:detail", args=[Dataset.objects.get().pk])
    assert client.post(reverse("datasets:sample", args=["nothing"])).status_code == 404
    assert client.get(address).status_code == 405


def test_unknown_user_is_reported(db):
    with pytest.raises(CommandError, match="no user 'nobody'"):
        call_command("load_samples", "nobody")


def test_samples_are_written_with_the_targets_listed(tmp_path, capsys):
    call_command("samples", write=tmp_path / "new")
    files = sorted((tmp_path / "new").iterdir())
    assert [path.stem for path in files] == sorted(ROWS)
    for sample in SAMPLES:
        header, *rows = (tmp_path / "new" / f"{sample.slug}.csv").read_text().splitlines()
        assert header.split(",")[-1] == sample.target
        assert len(rows) == ROWS[sample.slug]
        assert f"{sample.slug}.csv   --target {sample.target} " in capsys.readouterr().out or sample.slug != "iris"
    call_command("samples", write=tmp_path / "new")  # fails unless the rows are the same again


def test_samples_never_replace_other_rows(tmp_path):
    (tmp_path / "wine.csv").write_text("my own rows\n")
    with pytest.raises(CommandError, match=r"wine.csv' exists and holds other rows"):
        call_command("samples", write=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["wine.csv"]


def test_samples_name_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match="The samples were not written: The file"):
        call_command("samples", write=tmp_path / "file" / "folder")
