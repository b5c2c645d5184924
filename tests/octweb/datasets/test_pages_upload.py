"""Pages of the two upload steps: upload, then preview and confirmation."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from octweb.core.problems import Conflict
from octweb.datasets import actions, intake
from octweb.datasets.models import Dataset, Upload
from tests.octweb.datasets.files import GOOD, stored_files, upload

pytestmark = pytest.mark.django_db
GAPS = b"id,size,colour,empty,label\n" + b"".join(
    b"name %d,%s,%s,,%s\n" % (i, b"" if i < 3 else b"%d" % (i % 7), (b"red", b"blue")[i % 3 == 0], (b"p", b"q")[i % 2])
    for i in range(30)
)


@pytest.fixture
def page(client, owner):
    client.force_login(owner)
    return client


def start(page, content: bytes, name: str = "t.csv") -> str:
    return page.post(reverse("datasets:new"), {"file": upload(content, name)}).url


def seen(page, url, **query) -> str:
    return page.get(url, query).context["seen"]


def test_two_steps_store_only_when_confirmed(page, media, django_capture_on_commit_callbacks):
    url = start(page, GOOD)
    shown = page.get(url)
    assert shown.status_code == 200
    assert not Dataset.objects.exists()
    fields = {"target": "label", "confirm": "1", "name": "Mine", "seen": shown.context["seen"]}
    fields |= {"kind-0": "categorical", "unit-3": "cm", "role-2": "ignored"}
    with django_capture_on_commit_callbacks(execute=True):
        answer = page.post(url, fields)
    assert answer.status_code == 302
    made = Dataset.objects.get()
    assert (made.name, made.target, made.rows) == ("Mine", "label", 40)
    assert [(c["name"], c["role"], c["kind"], c["unit"]) for c in made.columns if c["name"] in ("code", "day", "size")] == [
        ("code", "feature", "categorical", ""), ("day", "ignored", "categorical", ""), ("size", "feature", "numeric", "cm")
    ]  # fmt: skip
    assert not Upload.objects.exists()
    assert [p.suffix for p in stored_files(media)] == [".parquet"]
    assert page.get(answer.url).status_code == 200
    assert page.get(url).status_code == 404


def test_with_the_header_of_a_script_the_answers_are_json(page, settings):
    script = {"HTTP_X_REQUESTED_WITH": "XMLHttpRequest"}
    answer = page.post(reverse("datasets:new"), {"file": upload(GOOD)}, **script)
    assert answer.status_code == 201
    assert answer.json()["url"] == reverse("datasets:preview", args=[Upload.objects.get().pk])
    bad = page.post(reverse("datasets:new"), {"file": upload(b"a,b\n1,2\n3\n4\n")}, **script)
    assert bad.status_code == 200
    assert [p[:6] for p in bad.json()["problems"]] == ["Line 3", "Line 4"]
    assert page.post(reverse("datasets:new"), **script).json()["error"] == "Choose a file first."
    settings.MAX_UPLOAD_BYTES = 50
    assert page.post(reverse("datasets:new"), {"file": upload(GOOD)}, **script).status_code == 200


def test_request_without_htmx_returns_pages(page, settings, media):
    bad = page.post(reverse("datasets:new"), {"file": upload(b"a,b\n1,2\n3\n")})
    assert bad.status_code == 200
    assert "Line 3 has 1 value" in bad.content.decode()
    assert "Choose a file first." in page.post(reverse("datasets:new")).content.decode()
    settings.MAX_UPLOAD_BYTES = 50
    assert page.post(reverse("datasets:new"), {"file": upload(GOOD)}).status_code == 200
    assert not Upload.objects.exists()
    assert not stored_files(media)


def test_the_preview_says_what_will_be_left_out(page):
    url = start(page, GAPS)
    text = page.get(url, {"target": "label"}).content.decode()
    assert "All 30 rows can be used:" in text
    assert "If these rows are left out, 27 rows train." in " ".join(text.split())
    assert "Column &#x27;id&#x27; was left out: its texts name the rows" in text
    assert "Column &#x27;empty&#x27; was left out: it has no value" in text
    mark = seen(page, url)
    fields = {"target": "label", "missing-1": "drop", "reread": "1", "seen": mark}
    text = page.post(url, fields).content.decode()
    assert "27 of 30 rows can be used:" in text
    assert "3 of 30 rows were dropped for empty cells in: size (3)." in text
    fields = {"target": "label", "role-1": "ignored", "reread": "1", "seen": mark}
    text = page.post(url, fields).content.decode()
    assert "All 30 rows can be used:" in text
    assert "Left out by your choice: size." in text
    assert not Dataset.objects.exists()


def test_names_of_columns_stand_above_their_cells(page):
    """Columns that need a decision come first in the list of columns, but not above the rows."""
    rows = "".join(f"{i},{'abc'[i % 3]},2024-01-{1 + i % 28:02d},{'xy'[i % 2]}\n" for i in range(60))
    shown = page.get(start(page, f"n,letter,day,class\n{rows}".encode()))
    assert [head["name"] for head in shown.context["heads"]] == ["n", "letter", "day", "class"]
    assert shown.context["rows"][0][1][2].startswith("2024-01-01")


def test_previewed_outcome_equals_stored_one(page):
    url = start(page, GAPS)
    foretold = page.get(url, {"target": "label"}).context["outlook"]
    page.post(url, {"target": "label", "confirm": "1"})
    made = Dataset.objects.get()
    assert made.rows == foretold.rows_kept
    assert tuple(made.profile["notes"]) == foretold.notes
    assert len(actions.load(made)[0].schema) == foretold.features


@pytest.mark.slow
def test_unstorable_choice_is_explained_and_can_be_corrected(page):
    url = start(page, b"a,b,y\n1,u,p\n2,u,q\n3,v,p\n")
    assert (
        "Cannot be stored with these choices" in page.post(url, {"target": "y", "kind-1": "numeric"}).content.decode()
    )
    refused = page.post(url, {"target": "y", "kind-1": "numeric", "confirm": "1"})
    assert refused.status_code == 200
    assert Upload.objects.count() == 1
    assert not Dataset.objects.exists()
    assert page.post(url, {"target": "y", "kind-1": "categorical", "confirm": "1"}).status_code == 302


@pytest.mark.slow
def test_reading_with_other_options(page):
    content = "1;2,5;f\u00fcr\n2;3,5;wider\n3;4,5;f\u00fcr\n".encode("cp1252")
    refused = page.post(
        reverse("datasets:new"), {"file": upload("1;\u0434\u0430\n2;\u043d\u0435\u0442\n".encode("cp1251"))}
    )
    assert refused.status_code == 200
    assert '<details class="reading" open>' in refused.content.decode()
    answer = page.post(reverse("datasets:new"), {"file": upload(content), "encoding": "cp1252", "header": "no"})
    assert answer.url.endswith("/?encoding=cp1252&header=no")
    assert page.get(answer.url).context["reading"] == actions.ReadOptions(encoding="cp1252", header=False)
    url = answer.url.split("?")[0]
    semicolon = page.get(url, {"delimiter": ";", "encoding": "cp1252", "header": "no"})
    assert [c["name"] for c in semicolon.context["columns"]] == ["column 1", "column 2", "column 3"]
    assert semicolon.context["rows"][0][1] == ("1", "2,5", "f\u00fcr")
    comma = page.post(url, {"delimiter": ",", "header": "no", "encoding": "cp1252"})
    assert [c["name"] for c in comma.context["columns"]] == ["column 1", "column 2"]
    assert "As Western European Windows (cp1252) it has “f\u00fcr” in line 1" in page.get(url).content.decode()
    wrong = page.get(url, {"encoding": "utf-8"})
    assert wrong.status_code == 200
    # the options are still there, so that the user can read the file again
    assert 'name="encoding"' in wrong.content.decode()
    assert page.get(url, {"encoding": "cp1252", "delimiter": ";"}).status_code == 200
    assert page.get(url, {"encoding": "no-such", "delimiter": "xx"}).status_code in (200, 422)


def test_changed_parsing_is_previewed_before_storing(page):
    url = start(page, GOOD)
    mark = seen(page, url)
    fields = {"target": "label", "confirm": "1", "seen": mark, "header": "no", "kind-0": "numeric"}
    answer = page.post(url, fields)
    assert answer.status_code == 200
    assert "now read in another way" in answer.content.decode()
    assert not Dataset.objects.exists()
    # The kind chosen for the old first column must not apply to the new one.
    assert answer.context["columns"][0]["kind"] == "categorical"


def test_confirming_twice_stores_once(staged):
    reading = actions.ReadOptions()
    choice = actions.ColumnChoice(target="label")
    again = Upload.objects.get(pk=staged.pk)
    actions.confirm(staged, name="", reading=reading, choice=choice)
    with pytest.raises(Conflict, match="stored or removed already"):
        actions.confirm(again, name="", reading=reading, choice=choice)
    assert Dataset.objects.count() == 1


def test_confirm_happens_whole_or_not_at_all(staged, media, monkeypatch, django_capture_on_commit_callbacks):
    def broken(self, *args, **kwargs):
        raise RuntimeError("no database")

    with monkeypatch.context() as patched:
        patched.setattr(Upload, "delete", broken)
        with pytest.raises(RuntimeError):
            actions.confirm(staged, name="", reading=actions.ReadOptions(), choice=actions.ColumnChoice(target="label"))
    assert not Dataset.objects.exists()
    assert Upload.objects.count() == 1
    assert sorted(p.suffix for p in stored_files(media)) == [".csv", ".parquet"]
    with django_capture_on_commit_callbacks(execute=True):
        actions.confirm(staged, name="", reading=actions.ReadOptions(), choice=actions.ColumnChoice(target="label"))
    assert [p.suffix for p in stored_files(media)] == [".parquet"]


def test_discard_and_prune_remove_the_file(page, media, django_capture_on_commit_callbacks, capsys):
    urls = [start(page, GOOD) for _ in range(3)]
    with django_capture_on_commit_callbacks(execute=True):
        page.post(f"{urls[0]}discard/")
    assert len(stored_files(media)) == 2 * Upload.objects.count() == 4
    old = Upload.objects.first()
    Upload.objects.filter(pk=old.pk).update(created=timezone.now() - actions.UPLOAD_LIFE * 1.01)
    with django_capture_on_commit_callbacks(execute=True):
        call_command("prune_uploads")
    assert "1 uploads removed" in capsys.readouterr().out
    assert len(stored_files(media)) == 2 * Upload.objects.count() == 2
    assert not Upload.objects.filter(pk=old.pk).exists()


def test_upload_with_missing_file_is_no_server_error(page, staged):
    staged.rows.storage.delete(staged.rows.name)
    url = reverse("datasets:preview", args=[staged.pk])
    assert page.get(url).status_code == 200
    assert page.post(url, {"confirm": "1"}).status_code == 200


def test_file_is_parsed_again_only_with_other_options(page, monkeypatch):
    parsed = []
    real = intake.read_table
    monkeypatch.setattr(intake, "read_table", lambda *a, **k: parsed.append(k["delimiter"]) or real(*a, **k))
    url = start(page, GAPS)
    shown = page.get(url)
    page.get(url, {"target": "label"})
    page.post(url, {"target": "label", "role-1": "ignored", "reread": "1", "seen": shown.context["seen"]})
    assert parsed == [None]
    assert page.get(url, {"delimiter": ","}).status_code == 200
    assert parsed == [None, ","]
    assert page.post(url, {"target": "label", "delimiter": ",", "confirm": "1"}).status_code == 302
    assert parsed == [None, ","]
    assert Dataset.objects.get().rows == 30


def test_line_numbers_survive_staging(page):
    content = b'a,b,y\n1,u,p\n\n2,"u\nv",q\n3,w,p\n4,w,q\n'
    url = start(page, content)
    assert [n for n, _ in page.get(url).context["rows"]] == [2, 4, 6, 7]
    refused = page.post(url, {"target": "y", "kind-1": "numeric", "confirm": "1"})
    assert "Line 6: column" in refused.content.decode()


def test_staged_rows_that_were_changed_are_not_stored(page, staged):
    rows = pq.read_table(staged.rows.path)
    pq.write_table(rows.take(list(reversed(range(len(rows))))), staged.rows.path)
    refused = page.post(reverse("datasets:preview", args=[staged.pk]), {"target": "label", "confirm": "1"})
    assert refused.status_code == 200
    assert "changed outside octweb" in refused.content.decode()
    assert not Dataset.objects.exists()


CODED = b"income,label\n" + b"".join(
    b"%d,%s\n" % (v, b"ab"[i % 2 : i % 2 + 1]) for i, v in enumerate([-9, -9, -8, -8, 120, 80, 30])
)


def test_proposed_codes_are_stored_and_can_be_removed(page, owner):
    staged = actions.stage(owner=owner, file=io.BytesIO(CODED), source_name="coded.csv")
    url = reverse("datasets:preview", args=[staged.pk])
    shown = page.get(url)
    text = shown.content.decode()
    assert "−9 in 2 rows, −8 in 2 rows stand apart and may be codes" in text
    assert 'name="special-0" value="-9, -8"' in text
    fields = {"target": "label", "confirm": "1", "name": "Coded", "seen": shown.context["seen"], "kind-0": "numeric"}
    refused = page.post(url, fields | {"special-0": "-9, often"})
    assert refused.status_code == 200
    assert "special values of &#x27;income&#x27;" in refused.content.decode()
    page.post(url, fields | {"special-0": "-9, -8"})
    dataset = Dataset.objects.get(name="Coded")
    assert dataset.columns[0]["special"] == [-9.0, -8.0]
    edit = reverse("datasets:edit", args=[dataset.pk])
    assert 'value="-9, -8"' in page.get(edit).content.decode()
    page.post(edit, {"name": "Coded", "target": "label", "kind-0": "numeric", "special-0": ""})
    dataset.refresh_from_db()
    assert "special" not in dataset.columns[0]
