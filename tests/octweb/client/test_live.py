"""The client against a live server, from a table to recorded outcomes."""

from __future__ import annotations

import csv
import io

import pandas
import pytest
from django.core.management import call_command

from octweb import client as api
from octweb.batch.tasks import predict_batch
from octweb.core.spool import WRITER
from octweb.decisions import collecting
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.registry.models import Recording
from octweb.serving.actions import create_token
from tests.conftest import ROOT
from tests.docs_code_cases import fences
from tests.octweb.decisions.conftest import spool  # noqa: F401
from tests.octweb.runs.test_worker import worker  # noqa: F401
from tests.octweb.small_models import csv_of_small_table

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media")]
ROW = {"width": 3.5, "height": 0.5, "flag": 1, "colour": "red"}


@pytest.fixture
def client(client_of_user, owner):
    return client_of_user(owner)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(csv_of_small_table())
    return path


def test_model_is_reviewed_served_and_found_by_name(client, client_of_user, model, staff):
    mine = client.models.get(str(model.pk))
    assert mine.ask_for_approval("for the test").state == "in_review"
    assert client_of_user(staff).models.get(mine.id).ask_back("For which test?").state == "draft"
    mine.ask_for_approval("for this one")
    approved = client_of_user(staff).models.get(mine.id).approve("It is small.", publish=True)
    assert (approved.state, approved.is_served) == ("approved", True)
    assert client.models.get(mine.name) == mine
    assert client.models.get(mine.name, version=1).predict(ROW, explain=True)[0].path
    history = [event["after"] for event in mine.review()["history"]]
    assert history[:5] == ["draft", "in_review", "draft", "in_review", "approved"]
    assert client_of_user(staff).models.get(mine.id).stop_serving().is_served is False


def test_token_for_predictions_predicts_by_id(client_of_user, owner, model):
    client = client_of_user(owner, scope="predict")
    answer = client.predict(str(model.pk), ROW)[0]
    assert answer.label == model_file(model).tree.classes[answer_code(model, answer.leaf)]
    with pytest.raises(api.NotAllowedError, match="for predictions only"):
        client.models.get(str(model.pk))


def answer_code(model, leaf: int) -> int:
    return int(model_file(model).tree.labels[leaf])


def test_run_is_queued_followed_and_cancelled(client, table):
    dataset = client.datasets.upload(table, name="Small")
    assert dataset.preview(2)[0].keys() == {*ROW, "kind"}
    assert all(finding["sentence"] for finding in dataset.inspect())
    run = client.train(dataset, target="kind", method="cart", depth=2, name="small tree")
    assert dataset.refresh().target == "kind"
    with pytest.raises(api.WaitTimeoutError):
        run.wait(timeout=0.01)
    assert list(client.runs.list(status="queued", dataset=dataset.id)) == [run]
    assert run.cancel().status == "cancelled"
    assert list(run.progress()) == []
    with pytest.raises(api.RunFailedError, match="no model"):
        _ = run.wait().model


@pytest.mark.slow
def test_python_of_the_page_trains_and_predicts(worker, live_server, owner, tmp_path, monkeypatch, capsys):  # noqa: F811
    """The code blocks of the page run in order, with a real worker and the sample `iris.csv`."""
    monkeypatch.chdir(tmp_path)
    call_command("samples", "--write", ".")
    monkeypatch.setenv("OCTWEB_URL", live_server.url)
    monkeypatch.setenv("OCTWEB_TOKEN", create_token(owner=owner)[1])
    worker()
    blocks = list(fences(ROOT / "docs" / "client.md", {"python"}))
    exec(compile("\n".join(blocks), "docs/client.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "optimal True 0.9" in printed
    assert "versicolor {'setosa': 0.0" in printed
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 151


def test_downloaded_model_answers_like_the_server(client, model, tmp_path):
    remote = client.models.get(str(model.pk))
    tree = remote.download(tmp_path / "model.json")
    rows = [{**ROW, "width": width, "colour": colour} for width in (0.5, 9.5) for colour in ("blue", "green")]
    answers = remote.predict(rows)
    frame = pandas.DataFrame(rows)
    assert tree.predict(frame).tolist() == answers.labels
    assert remote.predict_frame(frame)["label"].tolist() == answers.labels
    assert answers[0].probabilities.keys() == set(remote.classes)
    assert (tmp_path / "model.json").stat().st_size > 1000
    assert remote.rules() == remote.export("rules", tmp_path / "rules.txt").decode()
    assert len(remote.tree) == len(tree.tree_.to_json())
    assert remote.explain(ROW, change={"colour": "never"})[0]["label"] == remote.predict(ROW)[0].label


def test_unusual_cells_are_named_in_the_answers(client, model):
    remote = client.models.get(str(model.pk))
    answers = remote.predict([ROW | {"colour": "violet"}, ROW | {"width": 1000.0}])
    assert "violet" in answers.notes[0]
    assert answers[1].out_of_range == ["width"]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda client, model: client.models.get(model).predict({"width": 1}), api.InvalidValueError, "height"),
        (lambda client, model: client.models.get("0" * 32), api.NotFoundError, "model"),
        (lambda client, model: client.models.get(model).approve(), api.NotAllowedError, "administrator"),
        (lambda client, model: client.models.get(model).withdraw(), api.StateConflictError, "review"),
        (lambda client, model: client.models.get(model).export("docx"), api.BadRequestError, "onnx"),
        (lambda client, model: list(client.runs.list(odd=1)), api.BadRequestError, "odd"),
        (lambda client, model: client.datasets.upload(b""), api.InvalidValueError, "empty"),
    ],
)  # fmt: skip
def test_refusal_of_the_server_has_its_own_class(client, model, call, kind, words):
    with pytest.raises(kind, match=words) as refused:
        call(client, str(model.pk))
    assert refused.value.type.endswith(f"#{refused.value.code}")
    assert refused.value.code


def test_unknown_token_is_refused(live_server):
    with pytest.raises(api.AuthenticationError, match="not known"):
        api.Client(live_server.url, "f" * 64, retries=0).methods()


def test_lists_have_every_object_once(client, register, monkeypatch):
    monkeypatch.setattr("octweb.client.connection.PAGE_SIZE", 2)
    wanted = {str(register(title=f"Tree {i}").pk) for i in range(5)}
    listed = [model.id for model in client.models]
    assert set(listed) == wanted
    assert len(listed) == 5


def test_file_is_predicted_in_the_background(client, model, table, tmp_path, settings):
    settings.DATA_DIR = tmp_path / "data"
    remote = client.models.get(str(model.pk))
    batch = remote.predict_file(table, keep_columns=True)
    predict_batch.func(batch.id)
    batch.wait(timeout=60)
    assert batch.rows == sum(batch.labels.values()) == 120
    answers = list(csv.DictReader(io.StringIO(batch.download(tmp_path / "answers.csv").read_text())))
    assert [answer["label"] for answer in answers[:5]] == remote.predict(
        [{n: a[n] for n in ROW} for a in answers[:5]]
    ).labels
    assert len(batch.to_frame()) == 120
    batch.delete()
    with pytest.raises(api.NotFoundError):
        batch.refresh()


@pytest.mark.usefixtures("spool")
def test_outcomes_reach_the_records_of_decisions(client, model, staff):
    actions.ask_for_approval(model, by=model.owner)
    actions.approve(model, by=staff, recording=Recording.FULL)
    answers = client.models.get(str(model.pk)).predict([ROW, ROW, ROW])
    WRITER.close()
    collecting.collect()
    first, second, third = answers.decisions
    assert client.decisions.outcome(first, "a", known_at="2026-11-01")["value"] == "a"
    rows = [{"decision": second, "value": "b"}, {"decision": third, "value": "c"}]
    assert client.decisions.outcomes(rows) == {"added": 2, "unchanged": 0}
    assert client.decisions.outcomes(f"decision,outcome\n{third},c\n".encode()) == {"added": 0, "unchanged": 1}
    record = client.decisions.get(first)
    assert (record["label"], record["outcome"]["value"]) == (answers[0].label, "a")
    listed = client.models.get(str(model.pk)).decisions()
    assert {entry["decision"]: entry["outcome"] for entry in listed} == {first: "a", second: "b", third: "c"}
