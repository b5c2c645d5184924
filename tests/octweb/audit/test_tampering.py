"""`manage.py audit` detects SQL edits of any column that a reviewer relies on."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from octweb.audit import actions as audit
from octweb.audit import chain
from octweb.audit.models import Head, Record
from octweb.checking import actions as checking
from octweb.core.models import Team
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.decide.actions import mark, publish
from octweb.decide.models import Guidance
from octweb.registry.lifecycle import actions
from octweb.registry.models import Doubt, ReviewEvent, Share, TreeModel
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db
LATER = "2031-05-05 05:05:05.000005"
# Model and column → value as SQL, and the beginning of the command's message.
EDITS = {
    (TreeModel, "title"): ("'Another'", "(title)"),
    (TreeModel, "created"): (f"'{LATER}'", "(created)"),
    (TreeModel, "version"): ("7", "another version number"),
    (TreeModel, "method"): ("'exact'", "(method)"),
    (TreeModel, "state"): ("'retired'", "is retired"),
    (TreeModel, "served_since"): (f"'{LATER}'", "served since another time"),
    (TreeModel, "document"): ("replace(document, '\"method\":\"cart\"', '\"method\":\"oc1\"')", "not the one that was recorded"),
    (TreeModel, "sha256"): ("'" + "0" * 64 + "'", "its SHA-256 is not that of its model file"),
    (TreeModel, "status"): ("'optimal'", "(status)"),
    (TreeModel, "guarantee"): ("'tree'", "(guarantee)"),
    (TreeModel, "objective"): ("0.99", "(objective)"),
    (TreeModel, "bound"): ("0.99", "(bound)"),
    (TreeModel, "gap"): ("0", "(gap)"),
    (TreeModel, "train_accuracy"): ("0.99", "(train_accuracy)"),
    (TreeModel, "unseen_accuracy"): ("0.99", "(unseen_accuracy)"),
    (TreeModel, "leaves"): ("99", "(leaves)"),
    (TreeModel, "depth"): ("99", "(depth)"),
    (TreeModel, "doubt"): ("''", "(doubt)"),
    (TreeModel, "recording"): ("'full'", "(recording)"),
    (TreeModel, "keep_days"): ("7", "(keep_days)"),
    (TreeModel, "owner"): ("OTHER", "(owner)"),
    (TreeModel, "family"): ("FAMILY", "under another name"),
    (TreeModel, "dataset"): ("DATASET", "(dataset)"),
    (TreeModel, "team"): ("TEAM", "another team"),
    (Dataset, "team"): ("TEAM", "another team"),
    (ReviewEvent, "at"): (f"'{LATER}'", "(at)"),
    (ReviewEvent, "by"): ("OTHER", "(by)"),
    (ReviewEvent, "before"): ("'rejected'", "(before"),
    (ReviewEvent, "after"): ("'rejected'", "(after"),
    (ReviewEvent, "reason"): ("'fine'", "(reason)"),
    (ReviewEvent, "model"): ("MODEL", "the step is missing"),
    (Dataset, "sha256"): ("'" + "0" * 64 + "'", "(sha256)"),
    (Dataset, "rows"): ("7", "(rows)"),
    (Dataset, "source_name"): ("'other.csv'", "(file)"),
    (Dataset, "file"): ("'datasets/none.parquet'", "is gone"),
    (Share, "user"): ("OTHER", "no record says so"),
    (Share, "level"): ("'call'", "no record says so"),
    (Share, "records"): ("NOT records", "no record says so"),
    (Share, "model"): ("MODEL", "no record says so"),
}  # fmt: skip
# Column → why no claim depends on it.
FREE = {
    (TreeModel, "id"): "the key: another one leaves a history without records",
    (TreeModel, "deleted_at"): "deleting is a step of its own",
    (TreeModel, "ignored"): "columns that callers may send; no answer depends on them",
    (ReviewEvent, "id"): "the key: another one is a step without a record",
    (Dataset, "id"): "the key: another one is a data set without a record",
    (Dataset, "owner"): "the model names its own owner",
    (Dataset, "created"): "the record has the time of the upload",
    (Dataset, "deleted_at"): "deleting is a step of its own",
    (Dataset, "name"): "shown; the record and the model name the table by its SHA-256",
    (Dataset, "target"): "owners may change it; the model file has the target of the training",
    (Dataset, "columns"): "owners may change them; the model file has the columns of the training",
    (Dataset, "profile"): "computed from the rows for display",
    (Dataset, "reading"): "owners may change it; the model file has the reading of the training",
    (Dataset, "source_bytes"): "shown only",
    (Dataset, "sample"): "the name of the sample, shown only",
    (Dataset, "counts"): "empty where there are rows; else its file is checked like theirs",
    (Dataset, "origin"): "shown; the model file names the source and the SHA-256 of its counts",
    (Dataset, "version"): "order of files with the same columns",
    (Dataset, "previous"): "order of files with the same columns",
    (Share, "id"): "a key",
    (Share, "at"): "shown; the record has its own time",
}


@pytest.fixture
def model(owner, staff, stranger, media):
    """Provide a model with its data set, approved, served and shared."""
    lines = [f"{i % 17},{i % 5},{'yes' if i % 17 > 8 else 'no'}" for i in range(120)]
    file = io.BytesIO(("a,b,answer\n" + "\n".join(lines) + "\n").encode())
    dataset = datasets.create(owner=owner, file=file, source_name="small.csv", target="answer")
    table, labels = datasets.load(dataset)
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2}, test_share=0.25)
    document = train(request).model.to_json()
    made = actions.register(owner=owner, document=document, dataset=dataset, title="Small")
    actions.register(owner=stranger, document=document, dataset=None, title="Other")
    actions.ask_for_approval(made, by=owner)
    actions.approve(made, by=staff)
    actions.share(made, by=owner, username=stranger.username, level="read")
    return TreeModel.objects.get(pk=made.pk)


def run(capsys):
    try:
        call_command("audit")
        status = 0
    except SystemExit as error:
        status = error.code
    out = capsys.readouterr()
    return status, out.out, out.err


def change(kind, column, value, pk):
    """Change one column of one row by SQL, as somebody with access to the database would."""
    field = kind._meta.get_field(column)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA defer_foreign_keys = ON" if connection.vendor == "sqlite" else "SELECT 1")
        cursor.execute(
            f"UPDATE {kind._meta.db_table} SET {field.column} = {value} WHERE {kind._meta.pk.column} = %s",
            [kind._meta.pk.get_db_prep_value(pk, connection)],
        )
        assert cursor.rowcount == 1


def sql_of(value, staff, model):
    """Return the keys of other rows, in place of their names."""
    other = TreeModel.objects.exclude(pk=model.pk).get()
    if value == "DATASET":
        wrong = Dataset.objects.get(pk=model.dataset_id)
        wrong.pk = None
        wrong.file.name = ""
        wrong._state.adding = True
        wrong.id = "00000000-0000-4000-8000-000000000000"
        wrong.save(force_insert=True)
        return f"'{wrong.pk.replace('-', '') if connection.vendor == 'sqlite' else wrong.pk}'"
    if value == "TEAM":
        team = Team.objects.create(name="Wrong").pk
        return f"'{team.hex if connection.vendor == 'sqlite' else team}'"
    if value == "FAMILY":
        TreeModel.objects.filter(pk=other.pk).update(version=3)  # version numbers are unique within a family
    names = {
        "OTHER": staff.pk,
        "FAMILY": other.family_id,
        "MODEL": f"'{other.pk.hex if connection.vendor == 'sqlite' else other.pk}'",
    }
    return str(names.get(value, value))


def refute(model):
    """Store the verdict of a check that refutes the model, as the process of checks does."""
    checking.settle_doubt(model, verdict="refuted")
    audit.record("checked", model, by=model.owner, verdict="refuted")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "column"), EDITS, ids=lambda one: getattr(one, "__name__", one))
def test_edit_of_a_column_by_sql_is_found(model, staff, capsys, kind, column):
    assert run(capsys)[0] == 0
    value, said = EDITS[kind, column]
    rows = {TreeModel: model, Dataset: model.dataset, Share: model.shares.get()}
    if column == "doubt":
        refute(model)
    approval = model.events.filter(before="in_review", after="approved").get()
    # an administrator has made the approval already, so another event is changed
    owners = model.events.order_by("pk").first()
    row = rows.get(kind, owners if column == "by" else approval)
    change(kind, column, sql_of(value, staff, model), row.pk)
    status, _, err = run(capsys)
    assert status == 1
    assert said in err


def test_draft_that_was_never_served_is_found_served(model, capsys):
    draft = TreeModel.objects.exclude(pk=model.pk).get()
    change(TreeModel, "served_since", f"'{LATER}'", draft.pk)
    status, _, said = run(capsys)
    assert status == 1
    assert f"{draft} is served, but no record says so." in said


def test_models_refuted_before_the_column_are_checked_again(model, capsys):
    # at that time there was no column, so nothing was written to it
    audit.record("checked", model, by=model.owner, verdict="refuted")
    assert run(capsys)[0] == 1
    import_module("octweb.registry.migrations.0011_doubt_refuted").doubt_refuted(apps, None)
    assert TreeModel.objects.get(pk=model.pk).doubt == Doubt.PENDING
    assert run(capsys)[0] == 0
    audit.record("checked", model, by=model.owner, verdict="proved")
    assert run(capsys)[0] == 0  # a model that waits for another check raises no alarm


def test_every_column_is_either_checked_or_free_for_a_reason():
    columns = {(kind, f.name) for kind in (TreeModel, ReviewEvent, Dataset, Share) for f in kind._meta.concrete_fields}
    assert columns == {*EDITS, *FREE}


def test_changed_rows_of_a_data_set_are_found(model, capsys):
    with open(model.dataset.file.path, "ab") as stream:
        stream.write(b" ")
    status, _, err = run(capsys)
    assert status == 1
    assert "the stored file of the data set" in err


def test_renamed_users_raise_no_alarm(model, owner, staff, stranger, capsys):
    for user in (owner, staff, stranger):
        user.username = f"{user.username}-renamed"
        user.save()
    status, _, err = run(capsys)
    assert (status, err) == (0, "")


def test_renamed_users_of_old_chain_are_unchecked(model, owner, staff, stranger, capsys):
    forget_details({"by_id", "user_id"})
    assert run(capsys)[:1] == (0,)
    stranger.username = "stranger-renamed"
    stranger.save()
    staff.username = "staff-renamed"
    staff.save()
    status, out, err = run(capsys)
    assert (status, err) == (0, "")
    assert "who took the step" in out
    assert "is shared with stranger-renamed" in out


def test_swapped_names_of_old_chain_are_found(model, owner, staff, capsys):
    forget_details({"by_id", "user_id"})
    names = owner.username, staff.username
    for user, name in ((owner, "between"), (staff, names[0]), (owner, names[1])):
        user.username = name
        user.save()
    status, _, err = run(capsys)
    assert status == 1
    assert "(by)" in err


def test_old_chain_is_complete_and_says_what_is_unchecked(model, capsys):
    forget_details({"event_at", "served_since", "title", "created"})
    status, out, err = run(capsys)
    assert (status, err) == (0, "")
    for words in ("the time of the step", "since when", "the title of"):
        assert words in out
    event = model.events.get(before="in_review", after="approved")
    ReviewEvent.objects.filter(pk=event.pk).update(at=event.at - timedelta(days=1))
    assert run(capsys)[0] == 1


def test_unchecked_parts_are_in_the_json(model, capsys):
    forget_details({"title"})
    call_command("audit", json=True)
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert document["whole"] is True
    assert any("the title of" in line for line in document["unchecked"])


def forget_details(names: set[str]) -> None:
    """Make the chain one of an earlier version, whose records lack these details."""
    before = chain.START
    for record in Record.objects.all():
        record.details = {name: value for name, value in record.details.items() if name not in names}
        record.before = before
        record.digest = chain.digest(record.to_json())
        record.save()
        before = record.digest
    Head.objects.update(digest=before)


@pytest.mark.parametrize(
    "edit",
    [
        "purpose = 'other'",
        "contact = 'other'",
        "public = NOT public",
        "show_training = NOT show_training",
        "change = '{}'",
    ],
)
def test_sql_edit_of_permissions_or_public_page_is_found(model, owner, capsys, edit):
    mark(model, by=owner, change={"a": "never"})
    publish(model, by=owner, purpose="Loans", contact="loans@example.org", show_training=False)
    assert run(capsys)[0] == 0
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {Guidance._meta.db_table} SET {edit}")
    status, _, err = run(capsys)
    assert status == 1
    assert "the public page" in err


def test_public_page_without_a_record_is_found(model, capsys):
    Guidance.objects.create(model=model, public=True, purpose="Loans", contact="loans@example.org")
    status, _, err = run(capsys)
    assert status == 1
    assert "has a public page, but no record says so" in err


def test_removed_public_page_is_found(model, owner, capsys):
    publish(model, by=owner, purpose="Loans", contact="loans@example.org", show_training=False)
    Guidance.objects.all().delete()
    status, _, err = run(capsys)
    assert status == 1
    assert "its public page were removed" in err
