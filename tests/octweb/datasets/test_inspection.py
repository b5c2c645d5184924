"""The intake report on preview, API and command line, and the warning about models that test an identifier."""

from __future__ import annotations

import io
import json
from io import StringIO

import pandas as pd
import pytest
from django.core.management import CommandError, call_command
from django.template.loader import render_to_string
from django.urls import reverse

from octweb.datasets import actions, stored
from octweb.datasets.choice import ColumnChoice
from octweb.datasets.models import Dataset
from octweb.registry.lifecycle import actions as registry
from tests.octweb.datasets.files import API, api, post, upload
from trainer.cli import dispatch
from trainer.cli.reading_flags import flags_of
from trainer.data.inspect_table import inspect, to_json
from trainer.data.reader import load
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db
SIZES = (3.5, 1.25, 9.0, 4.5, 7.75, 2.5)
TEXT = "Id,end,size,answer\n" + "".join(
    f"{i},{'9999-12-31' if i % 8 == 0 else f'2021-{1 + i % 12:02d}-{1 + i % 28:02d}'},{SIZES[i * i % 6]},"
    f"{('yes', 'Yes', 'no', 'no')[(i > 30) * 2 + (i % 5 > 3)]}\n"
    for i in range(1, 61)
)
MEND = {"column": "Id", "role": "feature", "kind": "numeric"}


@pytest.fixture
def page(client, owner):
    client.force_login(owner)
    return client


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    return str(path)


def start(page) -> str:
    return page.post(reverse("datasets:new"), {"file": upload(TEXT.encode())}).url + "?target=answer"


def fields_of(shown) -> dict[str, str]:
    """Return the fields of the form as the preview shows them."""
    found = {"seen": shown.context["seen"], "target": "answer"}
    for i, column in enumerate(shown.context["columns"]):
        found |= {f"role-{i}": column["role"], f"kind-{i}": column["kind"], f"missing-{i}": column["missing"]}
        if column["kind"] == "categorical":
            found[f"unknown-{i}"] = column["unknown"]
    return found


def test_preview_lists_findings_and_leaves_identifiers_out(page, media):
    shown = page.get(start(page))
    found = {finding["kind"]: finding for finding in shown.context["findings"]}
    assert {"identifier", "look_alike_classes", "sentinel"} <= set(found)
    assert shown.context["findings"][0]["severity"] == "high"
    assert "Merge the spellings" in shown.content.decode()
    assert next(c["role"] for c in shown.context["columns"] if c["name"] == "Id") == "ignored"


DOUBTFUL = "account,level,answer\n" + "".join(
    f"{100_000 + i * 7_919_123 % 900_000},{'?' if i % 50 == 3 else 'x' if i % 60 == 7 else 3 * i},{'ab'[i % 3 > 0]}\n"
    for i in range(120)
)


def test_every_interface_reports_the_same_list(page, owner, media, tmp_path, capsys):
    """The kinds that a form posts for all columns hide no finding."""
    path = tmp_path / "t.csv"
    path.write_text(DOUBTFUL)
    expected = to_json(inspect(path, target="answer"))
    assert [(own["kind"], own["column"]) for own in expected][:2] == [
        ("words_among_numbers", "level"),
        ("identifier", "account"),
    ]
    assert dispatch.main("octweb", ["inspect", str(path), "--target", "answer", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == expected
    url = page.post(reverse("datasets:new"), {"file": upload(DOUBTFUL.encode())}).url + "?target=answer"
    shown = page.get(url)
    again = page.post(url, fields_of(shown))
    for answer in (shown, again):
        assert [{name: own[name] for name in expected[0]} for own in answer.context["findings"]] == expected
    assert page.post(url, fields_of(again) | {"confirm": "1", "name": "Doubtful"}).status_code == 302
    dataset = Dataset.objects.get()
    assert api(owner).get(f"{API}{dataset.pk}/inspection/").json() == expected


def ordered_parquet() -> bytes:
    levels = pd.Categorical.from_codes(
        [i * 7 % 11 % 4 for i in range(60)], ["none", "low", "mid", "high"], ordered=True
    )
    out = io.BytesIO()
    pd.DataFrame(
        {"level": levels, "n": [float(i % 7) for i in range(60)], "answer": ["ab"[i % 3 > 0] for i in range(60)]}
    ).to_parquet(out)
    return out.getvalue()


RANKS = {"none": "1", "low": "2", "mid": "3", "high": "4"}


def test_button_uses_a_declared_order(page, owner, media):
    url = page.post(reverse("datasets:new"), {"file": upload(ordered_parquet(), "t.parquet")}).url + "?target=answer"
    shown = page.get(url)
    [finding] = [own for own in shown.context["findings"] if own["kind"] == "ordered_categories"]
    assert finding["button"] == "Use the order"
    again = page.post(url, fields_of(shown) | {"mend": finding["value"]})
    assert next(c["kind"] for c in again.context["columns"] if c["name"] == "level") == "numeric"
    assert '<option value="ranks" selected>' in again.content.decode()
    assert "Cannot be stored" not in again.content.decode()
    assert "ordered_categories" not in {own["kind"] for own in again.context["findings"]}
    stored_fields = fields_of(again) | {"taken:level": "ranks", "confirm": "1", "name": "Ranked"}
    assert page.post(url, stored_fields).status_code == 302
    contract = api(owner).get(f"{API}{Dataset.objects.get().pk}/contract/").json()
    assert contract["columns"][0]["spellings"] == RANKS


def test_api_reads_ranks_at_upload_and_afterwards(owner, media):
    kinds = json.dumps({"level": "ranks:none<low<mid<high"})
    answer = post(owner, ordered_parquet(), "t.parquet", target="answer", kinds=kinds)
    assert answer.status_code == 201, answer.content
    later = Dataset.objects.get(pk=post(owner, ordered_parquet(), "t.parquet", target="answer").json()["id"])
    [mend] = [own["mend"] for own in actions.findings(later) if own["kind"] == "ordered_categories"]
    actions.apply_remedy(later, mend)
    changed = post(owner, ordered_parquet(), "t.parquet", target="answer").json()["id"]
    columns = {"columns": [{"name": mend["column"], "kind": mend["kind"]}]}
    assert api(owner).patch(f"{API}{changed}/", columns, format="json").status_code == 200
    for pk in (answer.json()["id"], later.pk, changed):
        contract = api(owner).get(f"{API}{pk}/contract/").json()
        assert (contract["columns"][0]["kind"], contract["columns"][0]["spellings"]) == ("numeric", RANKS)


def test_stored_dates_as_numbers_have_no_button(page, owner, media):
    """Their form is decided at the upload, so a button could only refuse."""
    rows = "".join(f"2021{1 + i % 12:02d}{1 + i % 28:02d},{i % 7},{'ab'[i % 3 > 0]}\n" for i in range(60))
    pk = post(owner, f"shipped,n,answer\n{rows}".encode(), "t.csv", target="answer").json()["id"]
    shown = page.get(reverse("datasets:detail", args=[pk])).content.decode()
    assert "Dates as numbers" in shown
    assert "Read as dates" not in shown


def test_button_restores_an_identifier_column(page, media):
    url = start(page)
    fields = fields_of(page.get(url))
    shown = page.post(url, fields | {"mend": json.dumps(MEND)})
    assert next(c["role"] for c in shown.context["columns"] if c["name"] == "Id") == "feature"
    identifier = next(finding for finding in shown.context["findings"] if finding["kind"] == "identifier")
    assert (identifier["severity"], identifier["button"]) == ("high", "Leave the column out")
    again = page.post(url, fields_of(shown) | {"mend": identifier["value"]})
    assert next(c["role"] for c in again.context["columns"] if c["name"] == "Id") == "ignored"


def test_button_merges_spellings_and_keeps_other_choices(page, media):
    url = start(page)
    shown = page.get(url)
    mend = next(finding["value"] for finding in shown.context["findings"] if finding["kind"] == "look_alike_classes")
    names = [c["name"] for c in shown.context["columns"]]
    unit = {f"unit-{names.index('size')}": "cm"}
    merged = page.post(url, fields_of(shown) | unit | {"mend": mend})
    assert merged.context["merged"] == ["answer"]
    assert merged.context["outlook"].classes == 2
    assert next(c["unit"] for c in merged.context["columns"] if c["name"] == "size") == "cm"
    fields = fields_of(merged) | {"merge:answer": "1", "confirm": "1", "name": "Merged"}
    assert page.post(url, fields).status_code == 302
    dataset = Dataset.objects.get()
    assert dataset.profile["classes"] == ["no", "yes"]
    assert stored.load(dataset)[1].classes == ("no", "yes")
    assert page.get(reverse("datasets:detail", args=[dataset.pk])).context["findings"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mend",
    ["", "[]", "{", '{"column": 3}', '{"column": "Id", "role": "target"}', '{"column": "none", "missing": ["x"]}'],
)
def test_damaged_remedy_changes_nothing(page, media, mend):
    url = start(page)
    shown = page.post(url, fields_of(page.get(url)) | {"mend": mend})
    assert shown.status_code == 200
    assert not Dataset.objects.exists()


def test_api_reports_and_applies_remedies(owner, media):
    answer = post(owner, TEXT.encode(), target="answer")
    address = f"{API}{answer.json()['id']}/"
    found = {record["kind"]: record for record in api(owner).get(f"{address}inspection/").json()}
    assert found["identifier"]["mend"] == MEND
    assert set(found["identifier"]) == {"kind", "column", "severity", "figure", "sentence", "mend", "if_nothing"}
    roles = {c["name"]: c["role"] for c in answer.json()["columns"]}
    assert roles["Id"] == "ignored"
    changed = api(owner).patch(address, {"columns": [{"name": "Id", "role": "feature"}]}, format="json").json()
    assert {c["name"]: c["role"] for c in changed["columns"]}["Id"] == "feature"
    found = {record["kind"]: record for record in api(owner).get(f"{address}inspection/").json()}
    assert found["identifier"]["severity"] == "high"


def test_api_merges_spellings_and_ignores_columns(owner, media):
    answer = post(owner, TEXT.encode(), target="answer", merge='["answer"]', ignore='["size"]')
    assert answer.status_code == 201, answer.content
    assert answer.json()["profile"]["classes"] == ["no", "yes"]
    roles = {c["name"]: c["role"] for c in answer.json()["columns"]}
    assert (roles["size"], roles["Id"]) == ("ignored", "ignored")
    for bad in ("answer", '{"answer": 1}', "[1]"):
        assert post(owner, TEXT.encode(), target="answer", merge=bad).status_code == 400


def test_report_of_an_older_data_set_is_made_when_read(owner, media):
    dataset = Dataset.objects.get(pk=post(owner, TEXT.encode(), target="answer").json()["id"])
    dataset.profile.pop("findings")
    dataset.save()
    assert {finding["kind"] for finding in actions.findings(dataset)} >= {"identifier", "look_alike_classes"}


def test_command_reports_as_text_and_json(table):
    out = StringIO()
    call_command("inspect", table, target="answer", stdout=out)
    assert "high: answer (look_alike_classes)" in out.getvalue()
    assert "To change: --merge answer" in out.getvalue()
    out = StringIO()
    call_command("inspect", table, target="answer", merge=["answer"], json=True, stdout=out)
    document = json.loads(out.getvalue().splitlines()[-1])
    assert "look_alike_classes" not in {own["kind"] for own in document}


@pytest.mark.parametrize(
    ("mend", "flags"),
    [
        ({"column": "a b", "role": "ignored"}, "--ignore 'a b'"),
        ({"column": "y", "merge": {"A": "a"}}, "--merge y"),
        ({"column": "x", "missing": ["-7", "-8"]}, "--missing x=-7 --missing x=-8"),
        (MEND, "--kind Id=number"),
        ({"column": "end", "kind": "text"}, "--kind end=text"),
        ({}, ""),
    ],
)
def test_remedy_is_listed_as_options(mend, flags):
    assert flags_of(mend) == flags


def test_training_warns_if_the_tree_asks_an_identifier(table):
    out = StringIO()
    err = StringIO()
    call_command(
        "train", table, target="answer", method="cart", depth=1, kind=["Id=number"], json=True, stdout=out, stderr=err
    )
    assert "warning: The tree asks Id." in err.getvalue()
    assert json.loads(out.getvalue().splitlines()[-1])["warnings"]
    err = StringIO()
    call_command("train", table, target="answer", method="cart", depth=1, json=True, stdout=StringIO(), stderr=err)
    assert "Column 'Id' was left out" in err.getvalue()
    assert "The tree asks" not in err.getvalue()


def test_training_warns_of_classes_that_look_alike(table):
    out = StringIO()
    call_command("train", table, target="answer", method="cart", depth=1, json=True, stdout=out, stderr=StringIO())
    warned = json.loads(out.getvalue().splitlines()[-1])["warnings"]
    assert warned == [
        "Classes that look alike are different classes here: 'yes' (24), 'Yes' (6). If they mean the same, merge them and train again."
    ]
    out = StringIO()
    call_command(
        "train",
        table,
        target="answer",
        method="cart",
        depth=1,
        json=True,
        merge=["answer"],
        stdout=out,
        stderr=StringIO(),
    )
    assert json.loads(out.getvalue().splitlines()[-1])["warnings"] == []


def test_parameter_that_names_an_identifier_keeps_it(table):
    err = StringIO()
    call_command(
        "train",
        table,
        target="answer",
        method="exact",
        depth=1,
        set=["forbidden_pairs=Id + size"],
        merge=["answer"],
        stdout=StringIO(),
        stderr=err,
    )
    assert "Column 'Id' is used, but its values name or count the rows." in err.getvalue()


def test_model_that_asks_an_identifier_carries_a_warning(owner, media):
    choice = ColumnChoice(target="answer", kinds={"Id": "numeric"})
    dataset = actions.create(owner=owner, file=io.BytesIO(TEXT.encode()), source_name="t.csv", choice=choice)
    data, labels = stored.load(dataset)
    document = train(TrainRequest(table=data, labels=labels, method="cart", parameters={"depth": 1})).model.to_json()
    model = registry.register(owner=owner, document=document, dataset=dataset, title="By id")
    record = api(owner).get(f"/api/v1/models/{model.pk}/").json()
    assert "The tree asks Id" in record["warnings"][0]
    assert "The tree asks Id" in render_to_string("registry/_warnings.html", {"model": model})


def test_model_without_a_data_set_carries_the_warning(owner, table):
    rows, labels, _ = load(table, target="answer", kinds={"Id": "numeric"})
    document = train(TrainRequest(table=rows, labels=labels, method="cart", parameters={"depth": 1})).model.to_json()
    model = registry.register(owner=owner, document=document, dataset=None, title="By id")
    assert "The tree asks Id" in api(owner).get(f"/api/v1/models/{model.pk}/").json()["warnings"][0]
    assert "The tree asks Id" in render_to_string("registry/_warnings.html", {"model": model})


def test_evaluation_notes_the_columns_that_it_leaves_out(table):
    err = StringIO()
    call_command("evaluate", table, target="answer", method=["cart"], folds=2, stdout=StringIO(), stderr=err)
    assert "note: Column 'Id' was left out" in err.getvalue()


@pytest.mark.parametrize("option", ["--ignore=Ids", "--missing=Ids=drop"])
def test_inspect_of_an_unknown_column_is_refused(table, option):
    with pytest.raises(CommandError, match=r"no column 'Ids' in the file.*'Id'"):
        call_command("inspect", str(table), "--target=answer", option, stdout=StringIO())


def test_inspect_of_an_unknown_target_is_refused(table):
    with pytest.raises(CommandError, match=r"no column 'answr' in the file.*'answer'"):
        call_command("inspect", str(table), "--target=answr", stdout=StringIO())


def test_row_names_of_r_stay_out_of_stored_rows(owner, media):
    rows = "".join(f'"car {i * 7 % 41}",{i % 9},"{"pq"[i % 9 > 4]}"\n' for i in range(40))
    answer = post(owner, ('"size","y"\n' + rows).encode(), target="y")
    assert answer.status_code == 201, answer.content
    assert {c["name"]: c["role"] for c in answer.json()["columns"]}["row names"] == "ignored"
    found = api(owner).get(f"{API}{answer.json()['id']}/inspection/").json()
    assert ("identifier", "row names") in {(own["kind"], own["column"]) for own in found}
    assert [column.name for column in stored.load(Dataset.objects.get())[0].columns] == ["size"]


@pytest.mark.slow
def test_proposal_is_no_choice_after_reading_again(page, media):
    url = start(page)
    shown = page.get(url)
    names = [c["name"] for c in shown.context["columns"]]
    again = page.post(url, fields_of(shown) | {"reread": "1"})
    assert again.context["chosen_out"] == []
    assert any("'Id' was left out" in note for note in again.context["outlook"].notes)
    left = page.post(url, fields_of(shown) | {f"role-{names.index('size')}": "ignored", "reread": "1"})
    assert left.context["chosen_out"] == ["size"]


def test_dates_that_count_rows_are_left_out_as_the_page_shows(page, media):
    days = "".join(
        f"2024-{1 + i // 28:02d}-{1 + i % 28:02d},{i * 7 % 5},{'no' if i % 3 else 'yes'}\n" for i in range(100)
    )
    rows = ("day,size,answer\n" + days).encode()
    url = page.post(reverse("datasets:new"), {"file": upload(rows)}).url + "?target=answer"
    shown = page.get(url)
    proposed = {c["name"] for c in shown.context["columns"] if c["role"] == "ignored"}
    assert any(name.startswith("day ") for name in proposed)
    again = page.post(url, fields_of(shown) | {"reread": "1"})
    assert proposed <= {c["name"] for c in again.context["columns"] if c["role"] == "ignored"}
    page.post(url, fields_of(again) | {"confirm": "1", "name": "Days"})
    kept = {c["name"]: c["role"] for c in Dataset.objects.get().columns}
    assert {kept[name] for name in proposed} == {"ignored"}


REPAIRABLE = "id,colour,income,class\n" + "".join(
    f"{i + 1},{('red', 'Red ', 'blue', 'red', 'blue')[i % 5]},{-9 if i % 10 == 0 else 1000 + 37 * (i % 23)},{'yes' if i % 3 else 'no'}\n"
    for i in range(120)
)


@pytest.fixture
def repairable(owner, media):
    file = io.BytesIO(REPAIRABLE.encode())
    return actions.create(owner=owner, file=file, source_name="a.csv", target="class")


def remedies(dataset):
    return {(f["kind"], f["column"]): f["mend"] for f in actions.findings(dataset) if f["mend"]}


def press(client, dataset, mend):
    client.force_login(dataset.owner)
    answer = client.post(f"/datasets/{dataset.pk}/edit/", {"mend": json.dumps(mend)}, follow=True)
    dataset.refresh_from_db()
    return answer.content.decode()


@pytest.mark.django_db
def test_buttons_of_a_stored_table_do_what_they_say(client, repairable):
    found = remedies(repairable)
    page = client_page(client, repairable)
    assert page.count('name="mend"') == len(found) >= 3
    before = repairable.sha256
    spellings = next(mend for (kind, column), mend in found.items() if "merge" in mend)
    assert "The columns were changed." in press(client, repairable, spellings)
    table, _ = actions.load(repairable)
    assert next(c for c in table.schema if c.name == "colour").categories == ("blue", "red")
    codes = next(mend for mend in found.values() if "missing" in mend)
    press(client, repairable, codes)
    table, _ = actions.load(repairable)
    assert int(table.columns[table.names.index("income")].missing.sum()) == 12
    assert next(c for c in table.schema if c.name == "colour").categories == ("blue", "red")
    counter = next(mend for mend in remedies(repairable).values() if mend.get("role") == "feature")
    press(client, repairable, counter)
    assert "id" in actions.load(repairable)[0].names
    assert repairable.sha256 == before


def client_page(client, dataset):
    client.force_login(dataset.owner)
    return client.get(f"/datasets/{dataset.pk}/").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "mend", [{"column": "colour", "role": "ignored"}, {}, [1], {"header": False}, {"column": "nobody", "kind": "text"}]
)
def test_unproposed_remedy_changes_nothing(client, repairable, mend):
    before = repairable.columns
    assert "no longer proposes this change" in press(client, repairable, mend)
    assert repairable.columns == before


@pytest.mark.django_db
def test_api_merges_spellings_and_reads_words_as_empty(client_of, repairable):
    change = {"columns": [{"name": "colour", "merge": True}, {"name": "income", "missing_words": ["-9"]}]}
    answer = client_of(repairable.owner).patch(f"/api/v1/datasets/{repairable.pk}/", change, format="json")
    assert answer.status_code == 200, answer.content
    repairable.refresh_from_db()
    table, _ = actions.load(repairable)
    assert next(c for c in table.schema if c.name == "colour").categories == ("blue", "red")
    assert int(table.columns[table.names.index("income")].missing.sum()) == 12


@pytest.mark.django_db
def test_meanings_of_codes_reach_the_contract(client, client_of, repairable, tmp_path, capsys):
    client.force_login(repairable.owner)
    names = [c["name"] for c in repairable.columns]
    fields = {"target": "class", "name": "a", f"special-{names.index('income')}": "−9: refused to say"}
    client.post(f"/datasets/{repairable.pk}/edit/", fields)
    address = f"/api/v1/datasets/{repairable.pk}/"

    def income():
        contract = client_of(repairable.owner).get(f"{address}contract/").json()
        return next(c for c in contract["columns"] if c["name"] == "income")

    assert (income()["codes"], income()["meanings"]) == ({"-9": "code"}, {"-9": "refused to say"})
    assert "-9: refused to say" in client.get(f"/datasets/{repairable.pk}/edit/").content.decode()
    change = {"columns": [{"name": "income", "meanings": {"-9": "not asked"}}]}
    assert client_of(repairable.owner).patch(address, change, format="json").status_code == 200
    assert income()["meanings"] == {"-9": "not asked"}
    for wrong in ({"abc": "x"}, {"": "x"}, {"5": "no code"}):
        change = {"columns": [{"name": "income", "meanings": wrong}]}
        assert client_of(repairable.owner).patch(address, change, format="json").status_code == 422
    change = {"columns": [{"name": "income", "meanings": {"-9.0": "ill, or away"}}]}
    assert client_of(repairable.owner).patch(address, change, format="json").status_code == 200
    assert income()["meanings"] == {"-9": "ill / or away"}
    assert "-9: ill / or away" in client.get(f"/datasets/{repairable.pk}/edit/").content.decode()
    assert (
        client_of(repairable.owner)
        .patch(address, {"columns": [{"name": "income", "special": []}]}, format="json")
        .status_code
        == 200
    )
    source = tmp_path / "a.csv"
    source.write_text(REPAIRABLE)
    model = tmp_path / "m.json"
    call_command(
        "train", str(source), "--target=class", "--method=cart", "--special=income=-9:not asked=b", f"--output={model}"
    )
    out = StringIO()
    call_command("contract", str(model), stdout=out)
    assert "-9 means code (not asked=b)" in out.getvalue()
