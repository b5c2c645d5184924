"""Editing sessions with a real child process: edits, prices, good trees, undo, kills, and saving a version."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import threading
import time
import zipfile

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone

from octweb.checking.actions import bundle, proof_of
from octweb.core.files import local_path
from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets import stored
from octweb.jobs import reaper
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import LostLease
from octweb.registry.lifecycle import actions as registry
from octweb.workbench import actions, agreement, work
from octweb.workbench.models import Step, StepKind, StepState, Workbench
from octweb.workbench.work import EditingSupervisor
from tests.octweb.small_models import trained
from trainer.check.recount import verdict, verify
from trainer.errors import ParameterError
from trainer.training.run import TrainRequest, train
from trainer.tree.file import from_json
from trainer.tree.nodes import tree_from_json

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
@pytest.mark.one_database
def test_the_first_step_is_the_model_itself_and_edits_follow(model, owner, serve):
    bench = actions.open_for(owner=owner, model=model)
    first = actions.current(bench)
    assert bench.test_share == 0.25
    edited = actions.edit(bench, add=["leaf y no"])
    prices = actions.ask(bench, StepKind.PRICES, wishes=[], request={"place": "root"})
    good = actions.ask(bench, StepKind.GOOD, wishes=[], request={"slack": "0.2", "listed": 3})
    assert serve(bench) == RunStatus.SUCCEEDED
    for step in (first, edited, prices, good):
        step.refresh_from_db()
        assert step.state == StepState.DONE, step.error
    document = json.loads(model.document)
    assert first.result["status"] == "optimal"
    assert first.result["objective"] == pytest.approx(document["certificate"]["objective"])
    assert first.result["changes"]["rows"] == 0
    assert json.loads(first.document)["fingerprint"] == document["fingerprint"]
    assert edited.result["wishes"][0]["wish"] == "leaf y no"
    assert edited.result["wishes"][0]["price"] == pytest.approx(first.result["objective"] - edited.result["objective"])
    lines = edited.result["changes"]["by_class"]
    assert edited.result["changes"]["rows"] == sum(line["rows"] for line in lines)
    assert "test" not in edited.result
    assert prices.result["complete"]
    rows = [line["rows"] for line in prices.result["prices"]]
    assert rows == sorted(rows)
    assert rows[0] == 0
    assert good.result["status"] == "complete"
    assert len(good.result["trees"]) == min(3, good.result["count"])


@pytest.mark.slow
@pytest.mark.one_database
def test_prices_and_good_trees_are_in_the_unit_of_costs(owner, dataset, serve, client, client_of):
    table, labels = stored.load(dataset)
    first, second = labels.classes[:2]
    asked = {"depth": 2, "costs": f"{first}>{second}=5", "cost_unit": "EUR"}
    document = train(TrainRequest(table=table, labels=labels, method="exact", parameters=asked)).model.to_json()
    model = registry.register(owner=owner, document=document, dataset=dataset, title="Costs")
    bench = actions.open_for(owner=owner, model=model)
    free = actions.current(bench)
    edited = actions.edit(bench, add=[f"leaf root {second}"])
    prices = actions.ask(bench, StepKind.PRICES, wishes=[], request={"place": "root"})
    api = client_of(owner)
    address = f"/api/v1/workbenches/{bench.pk}/good-trees/"
    answer = api.post(address, {"slack_cost": "2.5", "listed": 50}, format="json")
    good = bench.steps.get(number=answer.json()["number"])
    for status, request in (
        (422, {"slack_rows": "1"}),
        (422, {"slack": "0.1", "recalls": {first: "0.9"}}),
        (400, {"slack": "0.1", "slack_cost": "1"}),
    ):
        assert api.post(address, request, format="json").status_code == status, request
    count = agreement.ask(model, owner)
    assert count.workbench == bench
    assert serve(bench) == RunStatus.SUCCEEDED
    for step in (free, edited, prices, good, count):
        step.refresh_from_db()
        assert step.state == StepState.DONE, step.error
    assert free.result["cost"] == document["certificate"]["costs"]["cost"]
    own = json.loads(edited.document)["certificate"]
    alone = sum(
        (labels.codes == k).sum() * (5 if name == first else name != second) for k, name in enumerate(labels.classes)
    )
    assert own["costs"]["cost"] == alone
    price = own["wishes"][0]["price"] * own["optimum"]["objective_cost"]
    assert price == pytest.approx(alone - free.result["cost"])
    assert prices.result["unit"] == "EUR"
    assert prices.result["prices"][0]["cost"] == 0
    client.force_login(owner)
    text = client.get(f"/workbenches/{bench.pk}/").content.decode()
    assert f"+{price:g} EUR" in text
    matrix = table.matrix()
    found = good.result
    price_of_leaf = document["certificate"]["costs"]["leaf_price"]
    assert found["optimum_cost"] == pytest.approx(document["certificate"]["costs"]["least"])
    assert found["optimum_cost"] + 1.5 < found["limit_cost"] <= found["optimum_cost"] + 2.5  # rounded down to a step
    assert len(found["trees"]) == min(50, found["count"])
    for tree in found["trees"]:
        answers = tree_from_json(tree["nodes"], schema=table.schema, classes=labels.classes).predict(matrix)
        each = np.where(answers == labels.codes, 0, np.where((labels.codes == 0) & (answers == 1), 5, 1))
        assert tree["cost"] == each.sum()
        assert each.sum() + tree["leaves"] * price_of_leaf <= found["limit_cost"] + 1e-9
    page = " ".join(client.get(f"/workbenches/{bench.pk}/good-trees/").content.decode().split())
    assert "Cost with leaves" in page
    assert f"1. {found['trees'][0]['cost']:g} EUR" in page
    told = agreement.agreement(model)
    assert told["state"] == "counted"
    assert "more than the best" in told["sentence"]
    assert (told["slack"], told["slack_rows"]) == ("0.01", None)
    assert f"{told['trees']:,}" in told["sentence"] or told["trees"] == 1
    posted = client.post(f"/workbenches/{bench.pk}/good-trees/", {"slack_cost": "-1"})
    assert 'id="slack_cost"' in posted.content.decode()
    assert "Nothing was counted" in posted.content.decode()


@pytest.mark.one_database
def test_undo_redo_and_history_search_nothing_again(model, owner, serve):
    bench = actions.open_for(owner=owner, model=model)
    actions.edit(bench, add=["leaf y no"])
    bench.refresh_from_db()
    actions.edit(bench, add=["depth n 0"])
    bench.refresh_from_db()
    serve(bench)
    assert actions.undo(bench).wishes == ["leaf y no"]
    assert actions.undo(bench).wishes == []
    with pytest.raises(Conflict):
        actions.undo(bench)
    assert actions.redo(bench).number == 2
    assert actions.redo(bench).number == 3
    with pytest.raises(Conflict):
        actions.redo(bench)
    assert actions.go_to(bench, 1).wishes == []
    assert bench.status == RunStatus.SUCCEEDED
    assert Step.objects.filter(workbench=bench).count() == 3


@pytest.mark.one_database
def test_contradicting_or_invalid_wish_gets_an_answer(model, owner, serve):
    bench = actions.open_for(owner=owner, model=model)
    clash = actions.edit(bench, wishes=["leaf y no", "ask y width", "forbid n colour"])
    with pytest.raises(ParameterError, match="no column 'nothing'"):
        actions.edit(bench, wishes=["ask root nothing"])
    odd = actions.ask(bench, StepKind.COMPLETE, wishes=["ask root nothing"])
    serve(bench)
    clash.refresh_from_db()
    odd.refresh_from_db()
    assert clash.result["status"] == "infeasible"
    assert sorted(clash.result["conflict"]) == ["ask y width", "leaf y no"]
    assert clash.document == ""
    assert odd.state == StepState.FAILED
    assert "no column" in odd.error
    with pytest.raises(Conflict):
        actions.save_version(bench)


def test_saved_version_lists_wishes_and_looks_at_unseen_rows(model, owner, serve):
    bench = actions.open_for(owner=owner, model=model)
    actions.edit(bench, add=["leaf y no"], reasons={"leaf y no": "the rows  there are mistakes"})
    bench.refresh_from_db()
    serve(bench)
    assert actions.look_at_unseen(bench)["n"] == 30
    actions.look_at_unseen(bench)
    saved = actions.save_version(bench)
    assert saved.title == model.title == "Small tree"
    assert (saved.family, saved.version) == (model.family, model.version + 1)
    certificate = json.loads(saved.document)["certificate"]
    assert [w["wish"] for w in certificate["wishes"]] == ["leaf y no"]
    assert certificate["wishes"][0]["reason"] == "the rows there are mistakes"
    assert "the wish 'leaf y no'" in certificate["scope"]
    assert certificate["unseen_looks"] == 2
    assert from_json(json.loads(saved.document)).tree.nodes[1].is_leaf
    again = actions.open_for(owner=owner, model=saved)
    assert actions.current_wishes(again) == ["leaf y no"]
    assert actions.current_reasons(again) == {"leaf y no": "the rows there are mistakes"}
    actions.edit(again, drop=["leaf y no"])
    assert actions.current_reasons(again) == {}


@pytest.mark.one_database
def test_step_of_killed_child_is_answered_by_next_child(model, owner, serve, monkeypatch):
    bench = actions.open_for(owner=owner, model=model)
    wanted = actions.edit(bench, add=["depth y 0"])
    killed = []
    real = work.EditingChild.hand

    def hand(child, record):
        real(child, record)
        if (
            len(killed) < 2 and child.process.pid not in killed
        ):  # a child that was killed may still be handed a second step
            killed.append(child.process.pid)
            os.killpg(child.process.pid, signal.SIGKILL)

    monkeypatch.setattr(work.EditingChild, "hand", hand)
    for _ in range(4):
        if serve(bench) == RunStatus.SUCCEEDED:
            break
        assert bench.status == RunStatus.QUEUED
    wanted.refresh_from_db()
    assert len(killed) == 2
    assert wanted.state == StepState.DONE
    assert wanted.wishes == ["depth y 0"]


@pytest.mark.one_database
def test_step_that_kills_every_child_fails(model, owner, serve, monkeypatch):
    bench = actions.open_for(owner=owner, model=model)
    real = work.EditingChild.hand

    def hand(child, record):
        real(child, record)
        child.signal(signal.SIGKILL)

    monkeypatch.setattr(work.EditingChild, "hand", hand)
    for _ in range(6):
        if serve(bench) == RunStatus.SUCCEEDED:
            break
    step = actions.current(bench)
    assert step.state == StepState.FAILED
    assert "ended 3 times" in step.error


def test_steps_of_dead_worker_are_taken_over(model, owner, serve, settings):
    bench = actions.open_for(owner=owner, model=model)
    step = actions.current(bench)
    # as a worker leaves it that was killed in the middle
    Workbench.objects.filter(pk=bench.pk).update(
        status=RunStatus.RUNNING, worker="gone", attempt=1, lease_until=timezone.now()
    )
    Step.objects.filter(pk=step.pk).update(state=StepState.WORKING, tries=1)
    time.sleep(0.01)
    assert reaper.reap() >= 1
    bench.refresh_from_db()
    assert bench.status == RunStatus.QUEUED
    assert serve(bench) == RunStatus.SUCCEEDED
    step.refresh_from_db()
    assert step.state == StepState.DONE


def test_deaths_of_workers_are_no_tries_of_a_step(model, owner, serve, monkeypatch):
    bench = actions.open_for(owner=owner, model=model)

    def gone(child, record):
        raise LostLease  # the worker ends here and leaves everything as it is

    with monkeypatch.context() as patched:
        patched.setattr(work.EditingChild, "hand", gone)
        for _ in range(work.MOST_TRIES + 2):
            serve(bench)
            assert actions.current(bench).state == StepState.WORKING
            Workbench.objects.filter(pk=bench.pk).update(lease_until=timezone.now())
            time.sleep(0.01)
            reaper.reap()
            bench.refresh_from_db()
            actions.wake_if_needed(bench)
            bench.refresh_from_db()
    assert serve(bench) == RunStatus.SUCCEEDED
    step = actions.current(bench)
    assert (step.state, step.tries) == (StepState.DONE, 0)


@pytest.mark.one_database
def test_only_the_step_in_progress_at_a_crash_is_retried(model, owner, serve, monkeypatch):
    bench = actions.open_for(owner=owner, model=model)
    second = actions.edit(bench, add=["depth y 0"])
    real = work.EditingChild.hand
    dead = []

    def hand(child, record):
        real(child, record)
        if record["step"] == second.number and not dead:
            dead.append(os.killpg(child.process.pid, signal.SIGKILL))

    monkeypatch.setattr(work.EditingChild, "hand", hand)
    for _ in range(3):
        if serve(bench) == RunStatus.SUCCEEDED:
            break
    assert [(s.state, s.tries) for s in bench.steps.all()] == [(StepState.DONE, 1), (StepState.DONE, 0)]


def test_stalled_workbench_wakes_and_answers_its_step(model, owner, serve):
    bench = actions.open_for(owner=owner, model=model)
    Workbench.objects.filter(pk=bench.pk).update(status=RunStatus.FAILED, attempt=3, error="died")
    bench.refresh_from_db()
    actions.wake_if_needed(bench)
    assert serve(bench) == RunStatus.SUCCEEDED
    assert actions.current(bench).state == StepState.DONE


@pytest.mark.one_database
def test_stopped_search_keeps_best_tree_or_reports_none(owner, hard_bench, serve):
    step = actions.edit(hard_bench, add=["ask yn c3"])
    actions.stop(hard_bench)
    serve(hard_bench)
    step.refresh_from_db()
    assert step.state == StepState.DONE
    assert step.result["status"] in ("cancelled", "stopped", "optimal")


@pytest.fixture
def hard_bench(owner, media):
    from octweb.datasets import actions as datasets
    from tests.octweb.runs.conftest import hard_csv

    dataset = datasets.create(owner=owner, file=hard_csv(), source_name="hard.csv", name="Hard", target="class")
    return actions.open_for(owner=owner, dataset=dataset, parameters={"depth": 4, "leaf_penalty": 0.01})


@pytest.mark.slow
def test_idle_session_frees_its_slot_for_others_and_resumes(model, owner, dataset_queue, serve, monkeypatch):
    bench = actions.open_for(owner=owner, model=model)
    supervisor = EditingSupervisor(job_id=str(bench.pk), worker="here", stopping=threading.Event())
    with monkeypatch.context() as patch:
        patch.setattr(work, "IDLE_SECONDS", 600.0)
        assert supervisor.run() == RunStatus.SUCCEEDED
    bench.refresh_from_db()
    answered = Step.objects.get(workbench=bench).finished
    assert (bench.finished - answered).total_seconds() < 60  # long before 600 idle seconds are over
    edited = actions.edit(bench, add=["leaf y no"])
    assert serve(bench) == RunStatus.SUCCEEDED
    edited.refresh_from_db()
    assert (edited.state, edited.result["wishes"][0]["wish"]) == (StepState.DONE, "leaf y no")


@pytest.fixture
def dataset_queue(owner, dataset):
    from octweb.runs import actions as runs

    return runs.enqueue(owner=owner, dataset=dataset, method="cart")


@pytest.mark.one_database
def test_other_methods_are_refused_and_tree_limits_accepted(owner, dataset):
    from octweb.registry.lifecycle import actions as registry

    other = registry.register(owner=owner, document=trained("cart", depth=2), dataset=dataset, title="Cart")
    with pytest.raises(Unprocessable, match="methods 'exact', 'exact-numeric' and 'odt'"):
        actions.open_for(owner=owner, model=other)
    bench = actions.open_for(owner=owner, dataset=dataset, parameters={"max_leaves": 3, "recall": "no: 0.5"})
    assert (bench.parameters["max_leaves"], bench.parameters["recall"]) == (3, "no: 0.5")
    with pytest.raises(Unprocessable, match="without limits"):
        actions.ask(bench, StepKind.GOOD, wishes=[], request={"slack": "0.2"})


@pytest.mark.one_database
def test_a_model_over_all_thresholds_is_edited_and_saved(owner, dataset, serve):
    from octweb.registry.lifecycle import actions as registry

    document = trained("exact-numeric", depth=2, leaf_penalty=0.01)
    bench = actions.open_for(
        owner=owner, dataset=dataset, method="exact-numeric", parameters={"depth": 2, "leaf_penalty": 0.01}
    )
    edited = actions.edit(bench, add=["ask root width <= 1.625"])
    prices = actions.ask(bench, StepKind.PRICES, wishes=edited.wishes, request={"place": "root"})
    with pytest.raises(Unprocessable, match="only for the method 'exact'"):
        actions.ask(bench, StepKind.GOOD, wishes=[], request={"slack": "0.2"})
    serve(bench)
    for step in (edited, prices):
        step.refresh_from_db()
        assert step.state == StepState.DONE, step.error
    assert edited.result["status"] == "optimal"
    assert edited.result["wishes"][0]["price"] >= 0
    root = from_json(json.loads(edited.document)).tree.nodes[0]
    assert root.split.threshold == 1.625
    columns = [line["column"] for line in prices.result["prices"]]
    assert len(columns) == len(set(columns)) > 1
    saved = actions.save_version(bench)
    assert saved.method == "exact-numeric"
    assert actions.open_for(owner=owner, model=saved).method == "exact-numeric"
    model = registry.register(owner=owner, document=document, dataset=dataset, title="All thresholds")
    assert actions.open_for(owner=owner, model=model).method == "exact-numeric"


@pytest.mark.one_database
def test_a_model_over_subsets_is_edited_and_saved(owner, dataset, serve):
    from octweb.registry.lifecycle import actions as registry

    model = registry.register(owner=owner, document=trained("odt", depth=2), dataset=dataset, title="Subsets")
    bench = actions.open_for(owner=owner, model=model)
    edited = actions.edit(bench, add=["together root colour in red|green", "ask y colour"])
    prices = actions.ask(bench, StepKind.PRICES, wishes=edited.wishes, request={"place": "y"})
    with pytest.raises(ParameterError, match="has numbers"):
        actions.edit(bench, add=["together root width in red|green"])
    serve(bench)
    for step in (edited, prices):
        step.refresh_from_db()
    assert edited.result["status"] == "optimal", edited.error
    assert all(wish["price"] >= 0 for wish in edited.result["wishes"])
    asked = [
        v.split
        for v in from_json(json.loads(edited.document)).tree.nodes
        if v.split is not None and v.split.used == (2,)
    ]
    assert asked
    schema = from_json(json.loads(edited.document)).tree.schema
    assert all({"red", "green"} & set(split.names(schema)) in (set(), {"red", "green"}) for split in asked)
    columns = [line["column"] for line in prices.result["prices"]]
    assert len(columns) == len(set(columns)) > 1
    saved = actions.save_version(bench)
    assert saved.method == "odt"
    reopened = actions.open_for(owner=owner, model=saved)
    assert actions.current_wishes(reopened) == edited.wishes


@pytest.mark.one_database
def test_model_of_any_depth_says_so_and_has_no_workbench(owner, dataset, client):
    from octweb.registry.lifecycle import actions as registry

    document = trained("exact", depth=None, leaf_penalty=0.05)
    model = registry.register(owner=owner, document=document, dataset=dataset, title="Unlimited")
    client.force_login(owner)
    history = client.get(reverse("registry:detail", args=[model.pk]), {"mode": "history"}).content.decode()
    assert "all trees of any depth with" in history
    assert "Exact search, any depth, each leaf wins 5\u202f% of the rows" in history
    with pytest.raises(ParameterError, match="depth: the workbench and good trees need a number of questions"):
        actions.open_for(owner=owner, model=model)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("parameters", "word"),
    [({"topology": "auto"}, "topology"), ({"specificity": 0.5}, "specificity"), ({"solver": "highs"}, "solver")],
)
def test_uneditable_odt_trees_are_refused_early(owner, dataset, parameters, word):
    with pytest.raises(ParameterError, match=word):
        actions.open_for(owner=owner, dataset=dataset, method="odt", parameters=parameters)


CASES = [
    ("exact", {"depth": 2, "leaf_penalty": 0.01}, ["leaf y no", "forbid n colour"]),
    ("exact-numeric", {"depth": 2, "leaf_penalty": 0.01}, ["ask root width <= 1.625"]),
    ("odt", {"depth": 2}, ["ask root colour in red|green"]),
]


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize(("method", "parameters", "wishes"), CASES)
def test_a_saved_version_gets_its_proof_and_is_proved(owner, dataset, serve, tmp_path, method, parameters, wishes):
    bench = actions.open_for(owner=owner, dataset=dataset, method=method, parameters=parameters, test_share=0.25)
    actions.edit(bench, add=wishes)
    serve(bench)
    saved = actions.save_version(bench)
    step = actions.proof_step(bench, saved)
    assert (step.state, proof_of(saved)) == (StepState.WAITING, None)
    assert actions.current(bench).kind == StepKind.COMPLETE
    serve(bench)
    step.refresh_from_db()
    assert (step.state, step.result["made"]) == (StepState.DONE, True), step.error
    with zipfile.ZipFile(io.BytesIO(bundle(saved))) as packed:
        packed.extractall(tmp_path)
    model = next(tmp_path.glob("*-1.json"))
    proof = next(tmp_path.glob("*.proof.jsonl.gz"))
    assert hashlib.sha256(proof.read_bytes()).hexdigest() == step.result["sha256"]
    findings = verify(model, local_path(dataset.file), proof)
    assert verdict(findings) == "proved", [f for f in findings if f.verdict != "recounted"]
    assert "step" in next(f.detail for f in findings if f.claim == "bound")


@pytest.mark.slow
@pytest.mark.one_database
def test_version_without_proof_is_saved(model, owner, serve):
    """The first proof is stopped, and the version of the second one is deleted before its proof is made."""
    bench = actions.open_for(owner=owner, model=model)
    serve(bench)
    saved = actions.save_version(bench)
    actions.stop(bench)
    gone = actions.save_version(bench)
    steps = [actions.proof_step(bench, version) for version in (saved, gone)]
    gone.delete()
    assert serve(bench) == RunStatus.SUCCEEDED
    for step in steps:
        step.refresh_from_db()
    assert (steps[0].state, steps[0].result["made"]) == (StepState.DONE, False)
    assert "longer" in steps[0].result["reason"]
    assert proof_of(saved) is None
    assert (steps[1].state, steps[1].error) == (StepState.FAILED, "The saved version was deleted, so it gets no proof.")


def test_session_with_unanswered_step_is_never_idle(model, owner):
    bench = actions.open_for(owner=owner, model=model)
    supervisor = EditingSupervisor(job_id=str(bench.pk), worker="here", stopping=threading.Event())
    supervisor._serve(None)  # this supervisor does not hold the session, so nothing is handed on
    supervisor.busy_at -= 2 * work.IDLE_SECONDS  # as if the database had been slow
    assert not supervisor._is_idle()
    Step.objects.update(state=StepState.DONE)
    supervisor._serve(None)
    assert supervisor._is_idle()
