"""Messy files on page and API: the parsing is stated, can be changed, and is used again in training."""

from __future__ import annotations

import html
import json

import pytest
from django.urls import reverse

from octweb.datasets import actions
from octweb.datasets.forms import join_words, split_words, switch_words
from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import post, upload

pytestmark = pytest.mark.django_db
LINES = [
    f"{i},5 kg;{1 + i % 28:02d}/{1 + i % 9:02d}/2024;{'unknown' if i == 7 else 1000 + i * 7 % 40};{'ab'[i % 2]}"
    for i in range(40)
]
MESSY = ("Report\n\nweight;when;size;class\n" + "\n".join(LINES) + "\nTotal;;;\n").encode()
OPEN = b"when,class\n" + b"".join(b"0%d/02/2024,%s\n" % (1 + i % 9, b"ab"[i % 2 :][:1]) for i in range(12))
NAMES = ["weight", "when year", "when month", "when weekday", "when days since 2024-01-01", "size"]


def test_api_reports_parsing_decisions_with_reasons(owner):
    answer = post(owner, MESSY, target="class")
    assert answer.status_code == 201, answer.content
    record = answer.json()
    assert [c["name"] for c in record["columns"]] == [*NAMES, "class"]
    assert record["rows"] == 40
    taken = {own["column"]: own for own in record["reading"] if "column" in own}
    assert [own["line"] for own in record["reading"] if "line" in own] == [1, 44]
    assert (taken["weight"]["decimal"], taken["weight"]["unit"]) == (",", "kg")
    assert "not mm/dd/yyyy, since line" in taken["when"]["reason"]
    assert taken["size"]["missing"] == ["unknown"]
    table, _ = actions.load(Dataset.objects.get())
    assert list(table.names) == NAMES
    # compared as a set, because jsonb keeps no order
    assert set(table.reading["columns"]) == {"weight", "when", "size"}
    assert next(c["unit"] for c in record["columns"] if c["name"] == "weight") == "kg"


def test_the_api_refuses_what_is_open_and_takes_the_switch(owner):
    answer = post(owner, OPEN, target="class")
    assert answer.status_code == 422
    assert "Line 2: column 'when' has '01/02/2024', which can be dd/mm/yyyy or mm/dd/yyyy" in answer.json()["detail"]
    answer = post(owner, OPEN, target="class", kinds=json.dumps({"when": "date:mm/dd/yyyy"}))
    assert answer.status_code == 201, answer.content
    assert "when month" in [c["name"] for c in answer.json()["columns"]]
    answer = post(owner, OPEN, target="class", kinds=json.dumps({"when": "categorical"}))
    assert [c["name"] for c in answer.json()["columns"]] == ["when", "class"]
    for field, value in {"kinds": '{"when": "dates"}', "decimal": "semicolon", "missing_words": '{"a": 1}'}.items():
        assert post(owner, OPEN, target="class", **{field: value}).status_code == 400


def test_signs_words_and_lines_can_be_given_to_the_api(owner):
    content = b"x;y\nn,n;n\n1,234;a\n2,500;b\nnil;a\n3,125;b\nend;b\n"
    answer = post(
        owner,
        content,
        target="y",
        decimal="comma",
        missing_words='["nil"]',
        skip_top="0",
        skip_bottom="1",
        kinds='{"x": "number"}',
    )
    assert answer.status_code == 422
    assert "Line 2: column 'x' has 'n,n'" in answer.json()["detail"]
    content = content.replace(b"n,n;n\n", b"")
    answer = post(owner, content, target="y", decimal="comma", missing_words='["nil"]', skip_bottom="1")
    assert answer.status_code == 201, answer.content
    assert answer.json()["profile"]["columns"][0]["maximum"] == 3.125
    assert answer.json()["rows"] == 4


def test_preview_shows_reasons_and_rereads_without_upload(client, owner):
    client.force_login(owner)
    url = client.post(reverse("datasets:new"), {"file": upload(OPEN, "t.csv")}).url
    response = client.get(url)
    text = response.content.decode()
    assert "which can be dd/mm/yyyy or mm/dd/yyyy" in text
    assert 'name="taken:when"' in text
    fields = {"target": "class", "seen": response.context["seen"], "kind-0": "categorical", "confirm": "1"}
    refused = client.post(url, fields)
    assert refused.status_code == 200
    assert not Dataset.objects.exists()
    again = client.post(url, fields | {"taken:when": "date:dd/mm/yyyy", "confirm": ""} | {"reread": "1"})
    assert "when days since 2024-01-01" in again.content.decode()
    fields = {"target": "class", "seen": again.context["seen"], "taken:when": "date:dd/mm/yyyy", "confirm": "1"}
    assert client.post(url, fields).status_code == 302
    assert Dataset.objects.get().reading["columns"]["when"]["form"] == "dd/mm/yyyy"


def test_categorical_choice_keeps_text_in_later_versions(owner):
    dataset = Dataset.objects.get(pk=post(owner, MESSY, target="class").json()["id"])
    from octweb.datasets import versions

    later = versions.new_version(dataset, owner=owner, file=upload(MESSY, "t.csv"), source_name="t.csv")
    read = [{name: {**own, "reason": ""} for name, own in d.reading["columns"].items()} for d in (later, dataset)]
    assert read[0] == read[1]
    actions.update(dataset, choice=actions.ColumnChoice(kinds={"weight": "categorical"}))
    table, _ = actions.load(dataset)
    assert table.columns[0].schema.categories[0] == "0,5 kg"


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        ("number", "numbers, signs detected"),
        ("number:.", "numbers such as 1234.5"),
        ("number:,.", "numbers such as 1.234,5"),
        ("number:.,", "numbers such as 1,234.5"),
        ("date:mm/dd/yyyy", "dates such as 12/31/2024"),
        ("date:yyyymmdd", "dates such as yyyymmdd"),
        ("text", "text"),
    ],
)
def test_a_switch_is_worded_by_an_example(switch, words):
    assert switch_words(switch) == words


def test_switch_labels_of_a_column_are_unique(client, owner):
    client.force_login(owner)
    content = "x\ty\n" + "".join(f"1.{234 + i}\t{'ab'[i % 2]}\n" for i in range(12))
    url = client.post(reverse("datasets:new"), {"file": upload(content.encode(), "t.csv")}).url
    context = client.get(url).context
    (record,) = [own for own in (*context["taken_told"], *context["taken_plain"]) if own["name"] == "x"]
    words = [words for _, words in record["switches"]]
    assert {"number", "number:."} <= {switch for switch, _ in record["switches"]}
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("?, n/a,,", ["?", "n/a"]),
        ('"37,,2" , 999', ["37,,2", "999"]),
        ('"', ['"']),
        ('""""', ['"']),
        ('5", "a""b,c"', ['5"', 'a"b,c']),
        ('"a,b', ['"a', "b"]),
    ],
)
def test_list_of_words_splits_at_commas_outside_quotes(text, words):
    assert split_words(text) == words
    assert split_words(join_words(words)) == words


def test_word_with_a_comma_is_read_as_empty_by_its_button(client, owner):
    client.force_login(owner)
    cells = [f"36,{i % 10}" for i in range(40)]
    cells[7] = "37,,2"
    lines = [f"{cell};{'ab'[i % 2]}" for i, cell in enumerate(cells)]
    content = ("temp;class\n" + "\n".join(lines) + "\n").encode()
    url = client.post(reverse("datasets:new"), {"file": upload(content)}).url
    shown = client.get(url)
    assert "--missing" not in shown.content.decode()
    assert "has &#x27;37,,2&#x27; among 39 numbers." in shown.content.decode()
    button = next(
        own["value"] for own in shown.context["asked"][0]["offers"] if own["label"] == "Read as an empty cell"
    )
    read = client.post(url, {"mend": button, "seen": shown.context["seen"], "target": "class"})
    assert not read.context["outlook"].refusal
    assert read.context["outlook"].rows_kept == 40
    assert 'name="empty-codes:temp" value="&quot;37,,2&quot;"' in read.content.decode()


@pytest.mark.parametrize(("usual", "other"), [(",", "."), (".", ",")])
def test_lone_decimal_sign_is_read_by_its_button(client, owner, usual, other):
    client.force_login(owner)
    cells = [f"36{usual}{i % 10}" for i in range(40)]
    cells[7] = f"37{other}6"
    lines = [f"{cell};{'ab'[i % 2]}" for i, cell in enumerate(cells)]
    content = ("temp;class\n" + "\n".join(lines) + "\n").encode()
    url = client.post(reverse("datasets:new"), {"file": upload(content)}).url
    shown = client.get(url)
    assert f"Line 9: column 'temp' has '37{other}6', which does not fit 39 other values" in html.unescape(
        shown.content.decode()
    )
    offers = {own["label"]: own["value"] for own in shown.context["asked"][0]["offers"]}
    assert list(offers) == [f"Read 37{other}6 as 37{usual}6", "Read as an empty cell", "Keep as text"]
    label = f"Read 37{other}6 as 37{usual}6"
    read = client.post(url, {"mend": offers[label], "seen": shown.context["seen"], "target": "class"})
    assert not read.context["outlook"].refusal
    assert (read.context["outlook"].rows_kept, read.context["asked"]) == (40, [])
