"""Groups and times of rows: command line, form, API, and the stated accuracy."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from rest_framework.test import APIClient

from octweb.datasets import actions as datasets
from octweb.datasets.choice import ColumnChoice
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions
from octweb.runs.child import TrainingProcess
from octweb.runs.dependence import file_columns, propose_group, propose_time
from octweb.runs.models import TrainingRun
from trainer.check.recount import verify
from trainer.errors import ParameterError

pytestmark = pytest.mark.django_db

# visits of 20 patients, German dates, the class by patient
ROWS = "".join(
    f"P{i // 4:02};{1 + i // 4}.{1 + i % 4:02}.2024;{i % 5};{'yes' if (i // 4) % 3 == 0 else 'no'}\n" for i in range(80)
)
VISITS = f"patient;day;x;class\n{ROWS}"


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text(VISITS, encoding="utf-8")
    return str(path)


def make_dataset(owner, text=VISITS, **choice):
    return datasets.create(
        owner=owner,
        file=io.BytesIO(text.encode()),
        source_name="visits.csv",
        name="Visits",
        target="class",
        **({"choice": ColumnChoice(target="class", **choice)} if choice else {}),
    )


@pytest.fixture
def dataset(owner, media):
    return make_dataset(owner)


def run(capsys, command: str, *arguments: str) -> dict:
    call_command(command, *arguments, "--target=class", "--method=exact", "--depth=1", "--json")
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


# -- command line ------------------------------------------------------------------------------------------------------


def test_train_with_groups_writes_a_model_that_verifies(capsys, visits, tmp_path):
    model = str(tmp_path / "model.json")
    found = run(capsys, "train", visits, "--group=patient", "--folds=4", "--test-share=0.25", f"--output={model}")
    assert found["group"] == {"column": "patient"}
    assert found["unseen_accuracy"]["groups"] == 20
    assert [fold["groups"] for fold in found["by_fold"]] == [5] * 4
    verdicts = {f.claim: f.verdict for f in verify(model, visits)}
    assert verdicts["folds"] == verdicts["rows held out"] == "recounted"
    assert "refuted" not in verdicts.values()


def test_train_by_time_holds_the_last_rows_out(capsys, visits, tmp_path):
    model = tmp_path / "model.json"
    found = run(
        capsys, "train", visits, "--time=day", "--ignore=day", "--folds=3", "--test-share=0.25", f"--output={model}"
    )
    assert found["time"] == {"column": "day"}
    held_out = [i for i, sign in enumerate(json.loads(model.read_text())["rows"]["held_out"]) if sign == "1"]
    assert held_out == [i for i in range(80) if i % 4 == 3]  # April
    assert "refuted" not in {f.verdict for f in verify(model, visits)}


@pytest.mark.slow
def test_evaluate_by_groups_has_wider_intervals(capsys, visits, tmp_path):
    plain = run(capsys, "evaluate", visits, "--folds=4")
    state = tmp_path / "state.jsonl"
    model = tmp_path / "model.json"
    grouped = run(capsys, "evaluate", visits, "--folds=4", "--group=patient", f"--state={state}", f"--model={model}")
    assert grouped["interval"][1] - grouped["interval"][0] > plain["interval"][1] - plain["interval"][0]
    assert all(json.loads(line)["group"] == "patient" for line in state.read_text().splitlines())
    assert "refuted" not in {f.verdict for f in verify(model, visits)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--group=patent"], "no group column 'patent' in the file"),
        (["--group=patient", "--folds=30"], "20 groups, too few for 30 folds"),
        (["--time=patient"], "cannot order the rows"),
        (["--group=day", "--time=day"], "cannot be the group column and the time column"),
    ],
)
def test_bad_columns_end_with_a_sentence(visits, arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("train", visits, "--target=class", "--method=cart", *arguments)


# -- columns that look like it -----------------------------------------------------------------------------------------


def test_a_date_and_a_repeating_identifier_are_proposed(dataset):
    assert file_columns(dataset) == ["patient", "day", "x"]
    group = propose_group(dataset)
    assert group.column == "patient"
    assert group.reason == "'patient' has 20 values in 80 rows, and its name is that of a person or thing."
    time = propose_time(dataset)
    assert time.column == "day"
    assert time.reason == "'day' holds dates."


def test_codes_are_proposed_and_plain_columns_are_not(owner, media):
    codes = make_dataset(owner, VISITS.replace("patient;", "who;", 1))
    assert propose_group(codes).reason.endswith("these look like numbers of persons or things.")
    plain = make_dataset(
        owner, "width;colour;class\n" + "".join(f"{i % 7};{'rgb'[i % 3]};{'ab'[i % 2]}\n" for i in range(60))
    )
    assert propose_group(plain) is None
    assert propose_time(plain) is None


@pytest.mark.parametrize(("number", "is_proposed"), [(25, True), (6, False)])
def test_codes_of_one_digit_are_proposed_if_many(number, is_proposed, owner, media):
    rows = "".join(f"{i % 7};C{i % number};{'ab'[i % 2]}\n" for i in range(60))
    table = make_dataset(owner, f"width;cust;class\n{rows}")
    assert (propose_group(table) is not None) == is_proposed


# -- a new run ---------------------------------------------------------------------------------------------------------


def test_form_asks_both_questions_with_the_reasons(client, owner, dataset):
    client.force_login(owner)
    page = client.get(reverse("runs:new"), {"dataset": dataset.pk}).content.decode()
    assert "Do several rows belong to the same person or thing?" in page
    assert "Are later rows what you want to predict?" in page
    assert "20 values in 80 rows" in page
    assert "holds dates" in page


def test_form_starts_a_run_with_the_chosen_columns(client, owner, dataset):
    client.force_login(owner)
    data = {"dataset": str(dataset.pk), "method": "cart", "evaluation": "folds", "folds": 4, "name": ""}
    context = client.get(reverse("runs:new"), {"dataset": dataset.pk, "method": "cart"}).context
    for field in context["form"]:
        value = field.value()
        if field.name.startswith("p_") and not isinstance(value, (list, bool)) and value not in (None, ""):
            data[field.name] = value
    answer = client.post(reverse("runs:new"), data | {"group": "patient", "time": "day"})
    assert answer.status_code == 302, answer.context["form"].errors
    made = TrainingRun.objects.get()
    assert (made.group, made.time) == ("patient", "day")
    page = client.get(reverse("runs:detail", args=[made.pk])).content.decode()
    assert "same value of patient" in page
    again = client.post(reverse("runs:new"), data | {"group": "nobody"})
    assert "group" in again.context["form"].errors


def test_api_takes_both_columns_and_refuses_others(owner, dataset):
    api = APIClient()
    api.force_authenticate(owner)
    body = {"dataset": str(dataset.pk), "method": "cart", "folds": 4}
    response = api.post("/api/v1/runs/", body | {"group": "patient", "time": "day"}, format="json")
    assert response.status_code == 201, response.json()
    assert (response.json()["group"], response.json()["time"]) == ("patient", "day")
    plain = api.post("/api/v1/runs/", body, format="json").json()
    assert (plain["group"], plain["time"]) == ("", "")
    for wrong, words in (
        ({"group": "patent"}, "no group column 'patent'"),
        ({"time": "class"}, "'class' is the target"),
        ({"group": "day", "time": "day"}, "Choose two columns"),
    ):
        refused = api.post("/api/v1/runs/", body | wrong, format="json")
        assert refused.status_code == 422
        assert words in json.dumps(refused.json(), ensure_ascii=False)


def test_same_key_with_other_groups_is_another_request(owner, dataset):
    first = actions.enqueue(owner=owner, dataset=dataset, method="cart", key="one", group="patient")
    assert actions.enqueue(owner=owner, dataset=dataset, method="cart", key="one", group="patient") == first
    with pytest.raises(Exception, match="another request"):
        actions.enqueue(owner=owner, dataset=dataset, method="cart", key="one", time="patient")


def test_run_of_ignored_columns_trains_and_says_what_it_counted(owner, client, media, capsys):
    """The child's command runs on a stored data set whose group and time columns are ignored."""
    dataset = make_dataset(owner, ignore=["patient", "day"])
    made = actions.enqueue(
        owner=owner, dataset=dataset, method="cart", test_share=0.25, folds=4, group="patient", time="day"
    )
    with pytest.raises(ParameterError, match="no time column"):
        actions.enqueue(owner=owner, dataset=dataset, method="cart", time="when")
    made.time = ""
    made.save()
    child = TrainingProcess.prepare(made)
    command = child.command()
    call_command(*command[command.index("train") :])
    document = json.loads(child.result.read_text())
    assert [column["name"] for column in document["columns"]] == ["x"]
    assert document["rows"]["group"] == {"column": "patient"}
    capsys.readouterr()
    model = registry.register(owner=owner, document=document, dataset=dataset, title="Visits")
    assert model_file(model).rows["group"] == {"column": "patient"}
    client.force_login(owner)
    words = "Accuracy on 20 values of &#x27;patient&#x27; that its tree has not seen."
    page = client.get(reverse("registry:detail", args=[model.pk])).content.decode()
    assert words in page
    performance = client.get(reverse("registry:detail", args=[model.pk]), {"mode": "performance"}).content.decode()
    assert "draws whole groups" in performance
    low, high = document["metrics"]["cross_validation"]["interval"]
    assert f"{100 * low:.1f}" in performance.replace("\u202f", "")
    assert high > low
