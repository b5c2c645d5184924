"""Who sees which source, what may be chosen, and that no text shows an address."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404

from octweb.datasets.sources import NamedSource, chosen_rows, source_of, sources_of
from octweb.environment import sources_setting
from octweb.sources import actions
from octweb.sources.actions import CountSettings
from octweb.teams import actions as teams
from tests.octweb.sources.conftest import PASSWORD
from trainer.errors import DataError, ParameterError

pytestmark = pytest.mark.django_db


def names_of(user) -> list[str]:
    return [source.name for source in sources_of(user)]


def test_source_needs_permission_and_group(sources, counter, stranger, staff):
    assert names_of(stranger) == []
    assert names_of(counter) == ["bank", "folder", "secret"]
    assert names_of(staff) == ["bank", "folder", "risk", "secret"]
    counter.groups.add(Group.objects.create(name="risk"))
    assert "risk" in names_of(counter)


def test_source_of_a_team_is_for_its_owners_and_editors(sources, counter, stranger, settings):
    team = teams.create(by=stranger, name="Risk")
    settings.SECRET_SOURCES |= {"lake": {"address": "/srv", "teams": (team.pk,)}}
    teams.set_member(team, by=stranger, username=counter.username, role="reader")
    assert "lake" not in names_of(counter)
    teams.set_member(team, by=stranger, username=counter.username, role="editor")
    assert "lake" in names_of(counter)
    teams.remove_member(team, by=stranger, username=counter.username)
    assert "lake" not in names_of(counter)


@pytest.mark.parametrize("name", ["risk", "nothing", ""])
def test_source_that_is_not_offered_is_not_found(sources, counter, name):
    with pytest.raises(Http404):
        source_of(counter, name)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"source": "bank"}, "Choose a table, or write a query"),
        ({"source": "bank", "table": "loans", "query": "SELECT 1"}, "not both"),
        ({"source": "folder", "query": "SELECT 1"}, "takes no query"),
        ({"source": "folder", "table": "../../etc/passwd"}, "not a file of 'folder'"),
        ({"source": "folder", "table": "/etc/passwd"}, "not a file of 'folder'"),
        ({"source": "folder", "table": "2024/.env"}, "not a file of 'folder'"),
        ({"source": "bank", "query": "SELECT 1" + " " * 5 + "--" * 20_000}, "at most 20,000"),
        ({"source": "bank", "query": "SELECT '\x00'"}, "character 0"),
    ],
)
def test_wrong_choice_of_rows_is_refused(sources, counter, record, words):
    with pytest.raises(DataError, match=words):
        chosen_rows(counter, record)


@pytest.mark.parametrize(
    ("address", "table", "place"),
    [
        ("/srv/loans/", "2024/a.csv", "/srv/loans/2024/a.csv"),
        ("s3://bucket/loans?region=eu-west-1", "a.parquet", "s3://bucket/loans/a.parquet?region=eu-west-1"),
        ("s3://bucket/loans?region=eu-west-1", "", "s3://bucket/loans?region=eu-west-1"),
        ("s3://b/loans", "a?endpoint_override=evil", "s3://b/loans/a%3Fendpoint_override%3Devil"),
        ("file:///srv/loans", "%2e%2e/secret.csv", "file:///srv/loans/%252e%252e/secret.csv"),
        ("file:///srv/loans", "ü #1.csv", "file:///srv/loans/%C3%BC%20%231.csv"),
        ("/srv/loans", "ü #1%.csv", "/srv/loans/ü #1%.csv"),
        ("duckdb:/srv/bank.duckdb", "loans", "duckdb:/srv/bank.duckdb"),
    ],
)
def test_place_joins_address_and_table(settings, staff, address, table, place):
    settings.SECRET_SOURCES = {"one": {"address": address, "groups": ()}}
    assert chosen_rows(staff, {"source": "one", "table": table}).place == place


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (
            "postgresql://anna:ge%2Fheim@db/bank",
            "FATAL for anna: ge/heim, ge%2Fheim in postgresql://anna:ge%2Fheim@db/bank",
        ),
        ("s3://KEY:heim+x@bucket/loans", "cannot open s3://KEY:heim+x@bucket/loans: heim+x"),
        ("duckdb:/srv/heim/bank.duckdb", "There is no database '/srv/heim/bank.duckdb'."),
        ("/srv/heim", "There is no file or folder '/srv/heim/a.csv'."),
    ],
)
def test_texts_about_a_source_hide_address_and_password(address, text):
    hidden = NamedSource(name="source", address=address).hide(text)
    assert "heim" not in hidden
    assert address not in repr(NamedSource(name="source", address=address))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ('{"Bank!": "/x"}', "must have 1 to 50"),
        ('{"bank": 5}', "must be an address"),
        ('{"bank": {"address": "/heim", "group": []}}', "must be an address"),
        ('{"bank": {"address": "/heim", "groups": "risk"}}', "must be a list"),
        ('{"bank": {"address": "/heim", "teams": ["risk"]}}', "must be a list of their ids"),
        ('{"bank": {"address": "/heim", "teams": [5]}}', "must be a list of their ids"),
        ('{"bank": "duckdb:"}', "needs a folder"),
    ],
)
def test_wrong_setting_is_refused_without_its_address(monkeypatch, value, words):
    monkeypatch.setenv("OCTWEB_SOURCES", value)
    with pytest.raises(ImproperlyConfigured, match=words) as caught:
        sources_setting("OCTWEB_SOURCES")
    assert "heim" not in str(caught.value)


def test_sources_are_read_from_a_file(monkeypatch, tmp_path):
    path = tmp_path / "sources.json"
    path.write_text(json.dumps({"bank": "postgresql://a@b/c", "lake": {"address": "/srv", "groups": ["risk"]}}))
    monkeypatch.setenv("OCTWEB_SOURCES_FILE", str(path))
    assert sources_setting("OCTWEB_SOURCES") == {
        "bank": {"address": "postgresql://a@b/c", "groups": (), "teams": ()},
        "lake": {"address": "/srv", "groups": ("risk",), "teams": ()},
    }


def test_no_page_or_answer_shows_an_address(sources, staff, client, client_of, media):
    client.force_login(staff)
    api = client_of(staff)
    texts = [client.get(path).content.decode() for path in ("/sources/", "/datasets/")]
    texts.append(api.get("/api/v1/sources/").content.decode())
    for text in texts:
        assert PASSWORD not in text
        assert not any(entry["address"] in text for entry in sources.values())
    assert '"secret"' in texts[2]


def test_strangers_get_404_for_sources_samples_and_counts(sources, counter, stranger, client, client_of, media):
    from octweb.datasets.models import Upload
    from octweb.sources.models import SourceCount

    upload = Upload.objects.create(owner=counter, source_name="bank", origin={"source": "bank", "table": "loans"})
    job = SourceCount.objects.create(owner=counter, source="bank", table="loans", name="Loans", target="paid")
    client.force_login(stranger)
    for path in ("/sources/bank/", f"/sources/samples/{upload.pk}/", f"/sources/counts/{job.pk}/"):
        assert client.get(path).status_code == 404
    assert client.post(f"/sources/counts/{job.pk}/cancel/").status_code == 404
    api = client_of(stranger)
    assert api.get("/api/v1/sources/").json() == []
    assert api.get(f"/api/v1/counts/{job.pk}/").status_code == 404
    assert (
        api.post("/api/v1/counts/", {"source": "bank", "table": "loans", "target": "paid"}, "json").status_code == 404
    )
    assert client_of(counter).get(f"/api/v1/counts/{job.pk}/").json()["source"] == "bank"


def test_sample_of_a_replaced_source_redirects(sources, counter, client, media, settings):
    from octweb.datasets.models import Upload

    origin = {"source": "bank", "table": "", "query": "SELECT 1"}
    upload = Upload.objects.create(owner=counter, source_name="bank", origin=origin)
    settings.SECRET_SOURCES = {"bank": sources["folder"]}
    client.force_login(counter)
    answer = client.get(f"/sources/samples/{upload.pk}/")
    assert (answer.status_code, answer["Location"]) == (302, "/sources/bank/")


def test_long_name_of_target_is_refused_before_the_count(sources, counter):
    rows = chosen_rows(counter, {"source": "bank", "table": "loans"})
    with pytest.raises(ParameterError, match="at most 200"):
        actions.start(owner=counter, rows=rows, staged=None, target="t" * 201, settings=CountSettings())


def test_defaults_of_a_training_stay_within_limits(counter, settings, media):
    from octweb.datasets.models import Dataset
    from octweb.runs import actions as runs

    settings.MAX_TRAINING_SECONDS = 1
    settings.MAX_TRAINING_MB = 16
    columns = [
        {"name": "a", "kind": "boolean", "role": "feature"},
        {"name": "b", "kind": "categorical", "role": "target"},
    ]
    dataset = Dataset.objects.create(
        owner=counter, name="Loans", target="b", rows=9, columns=columns, counts="counts/a.zip",
        profile={"classes": ["no", "yes"], "class_counts": [5, 4]}, origin={"asked": {}, "depth": 2},
    )  # fmt: skip
    run = runs.enqueue(owner=counter, dataset=dataset, method="exact")
    assert (run.parameters["time_limit"], run.parameters["memory_limit"]) == (1, 16)
