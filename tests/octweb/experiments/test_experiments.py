"""Experiments: plan, leaderboard, choice, held-out rows, stopping and resuming, on pages and API."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone

from octweb.core.deleting import bring_back
from octweb.core.problems import Conflict
from octweb.experiments import actions
from octweb.experiments.board import board, held_out, points
from octweb.experiments.models import Candidate, Experiment
from octweb.experiments.plan import evaluation, plan
from octweb.experiments.wording import honest_words, reasons, reasons_against
from octweb.figures.experiment import experiment_figure
from octweb.jobs.models import RunStatus
from octweb.registry.document.selection import selection_of
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs.models import TrainingRun
from tests.octweb.experiments.conftest import TWO
from trainer.data.folds import holdout
from trainer.errors import ParameterError
from trainer.registry import get
from trainer.tree.numbers import duration_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client, owner, media):
    client.force_login(owner)
    return client


@pytest.fixture
def candidates(experiment):
    return list(experiment.candidates.all())


def test_the_plan_fits_the_table(dataset):
    found = plan(dataset, time_limit=60)
    assert all("pruning" in t.parameters for t in found.trials if t.method in ("cart", "oc1", "bivariate"))
    methods = {t.method for t in found.trials}
    assert {"cart", "exact", "exact-numeric", "bivariate", "local-search", "odt"} <= methods
    for trial in found.trials:
        get(trial.method).settings(trial.parameters)
    names = [t.words for t in found.trials]
    assert len(set(names)) == len(names)
    assert {t.method for t in plan(dataset, kinds=["two"], time_limit=60).trials} == {"bivariate"}


def test_omitted_candidates_have_reasons(dataset):
    dataset.columns = [c for c in dataset.columns if c["name"] != "colour"]
    assert any("no column with three or more" in s["reason"] for s in plan(dataset, time_limit=60).skipped)
    dataset.rows = 10**8
    assert any("too large" in s["reason"] for s in plan(dataset, time_limit=60).skipped)


def test_the_exact_search_gets_the_thresholds_that_it_can_prove(dataset):
    def tried(**more):
        found = [
            t.parameters for t in plan(dataset, kinds=["one"], time_limit=60, **more).trials if t.method == "exact"
        ]
        return {(p["depth"], p["leaf_penalty"]): p["bins"] for p in found}

    few = tried()
    assert {depth for depth, _ in few} == {1, 2, 3, 4, 5}
    dataset.rows = 10**9  # with so many rows, only few thresholds per column can be proved in the time
    many = tried()
    assert {depth for depth, _ in many} == {1, 2, 3, 4}  # a tree of five levels could not be proved in the time
    assert many[max(many)] < max(few.values())


def test_few_rows_are_not_held_out(dataset):
    assert evaluation(dataset) == (0.0, True)
    dataset.rows = 5000
    assert evaluation(dataset) == (0.25, False)


def test_a_start_queues_every_candidate_on_the_same_folds(experiment, candidates):
    assert [c.method for c in candidates] == ["cart", "exact"]
    assert {c.status for c in candidates} == {"queued"}
    assert board(experiment).status == "queued"
    assert candidates[1].name == "Exact search, depth 1, penalty 1\u202f%"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"kinds": ["nonsense"]}, "kinds"),
        ({"folds": 1, "test_share": 0.1}, "folds"),
        ({"test_share": 0.95}, "test_share"),
        ({"time_limit": 0}, "time_limit"),
        ({"candidates": [{"method": "cart", "parameters": {"depth": 99}}]}, "depth"),
        ({"candidates": [{"method": "cart"}] * 41}, "candidates"),
    ],
)
def test_invalid_experiments_are_refused(owner, dataset, changes, name):
    with pytest.raises(ParameterError) as error:
        actions.start(owner=owner, dataset=dataset, **changes)
    assert name in error.value.errors
    assert Experiment.objects.count() == 0


def test_the_simplest_within_one_standard_error_is_recommended(experiment, candidates, finish):
    finish(candidates[0], [0.9, 0.8, 1.0], leaves=8)
    finish(candidates[1], [0.9, 0.9, 0.8], leaves=2, status="optimal", gap=0.0)
    found = board(experiment)
    assert found.chosen.candidate == candidates[1]
    assert found.highest.candidate == candidates[0]
    text = " ".join(reasons(found))
    assert "86.7" in text
    assert "no larger than the standard error" in text
    assert [p["recommended"] for p in points(found)] == [False, True]
    assert [x.candidate.method for x in found.sorted("leaves")] == ["exact", "cart"]
    assert [x.candidate.method for x in found.sorted("accuracy")] == ["cart", "exact"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"status": "optimal", "gap": 0.0}, "proved"),
        ({"status": "optimal", "gap": 0.04}, "gap"),  # the gap that the user permitted
        # a row of small weight may still be wrong, so a better tree may exist
        ({"status": "time_limit", "gap": 5e-7}, "gap"),
        ({"status": "time_limit", "gap": None}, "heuristic"),
    ],
)
def test_only_proved_results_are_called_proved(experiment, candidates, finish, said, kind):
    _, exact = candidates
    finish(exact, [0.9, 0.8, 1.0], **said)
    line = next(x for x in board(experiment).sorted("accuracy") if x.candidate.method == "exact")
    assert line.claim["kind"] == kind


def test_every_other_candidate_says_why_it_is_not_recommended(
    experiment, candidates, finish, browser, client_of, owner, media
):
    cart, exact = candidates

    def why(of_cart, of_exact, **exact_claim):
        finish(cart, **of_cart)
        finish(exact, **of_exact, **exact_claim)
        found = board(experiment)
        (other,) = reasons_against(found)
        assert other["id"] != found.chosen.label
        return other["reason"]

    proved = {"status": "optimal", "gap": 0.0}
    wide = [0.9, 0.8, 1.0]
    low = [0.2, 0.3, 0.1]
    assert (
        why({"accuracies": wide, "leaves": 8}, {"accuracies": wide}, **proved)
        == "about as accurate, but 8 leaves in the folds instead of 2"
    )
    assert (
        why({"accuracies": wide}, {"accuracies": wide}, **proved)
        == "about as accurate and as large, but less is proved about it"
    )
    assert (
        why({"accuracies": low}, {"accuracies": wide})
        == "70.0 points below the highest, more than its standard error of 5.8 points"
    )
    page = browser.get(f"/experiments/{experiment.pk}/").content.decode()
    assert "Why not the others?" in page
    assert "70.0 points below the highest" in page
    (told,) = client_of(owner).get(f"/api/v1/experiments/{experiment.pk}/").json()["others"]
    assert told["name"] == cart.name
    assert told["id"] == str(cart.pk)


def test_the_first_of_equals_is_recommended(owner, dataset, finish):
    made = actions.start(
        owner=owner,
        dataset=dataset,
        candidates=[TWO[0], TWO[0] | {"parameters": {"depth": 3}}],
        folds=3,
        test_share=0.25,
    )
    for candidate in made.candidates.all():
        finish(candidate, [0.9, 0.8, 1.0])
    assert [other["reason"] for other in reasons_against(board(made))] == ["as large, and not more accurate"]
    found = board(made)
    names = [candidate.name for candidate in made.candidates.all()]
    assert [line.candidate.name for line in found.tied] == names
    assert f"It ties with {names[1]} for the highest accuracy" in " ".join(reasons(found))
    assert [point["highest"] for point in points(found)] == [True, True]


def test_ties_and_base_rate_are_named_on_page_and_api(browser, client_of, owner, experiment, candidates, finish):
    finish(candidates[0], [0.9, 0.8, 1.0], leaves=8)
    finish(candidates[1], [1.0, 0.9, 0.8], leaves=8)
    page = " ".join(browser.get(f"/experiments/{experiment.pk}/").content.decode().split())
    assert " ".join(f"tied: {candidates[0].name}, {candidates[1].name}".split()) in page
    assert "most frequent class" not in page  # records of earlier versions do not contain this count
    for candidate in candidates:
        for record in candidate.records:
            record["base_correct"] = 18
        candidate.save()
    page = " ".join(browser.get(f"/experiments/{experiment.pk}/").content.decode().split())
    assert "Always giving the most frequent class of the training rows is right for 60.0" in page
    body = client_of(owner).get(f"/api/v1/experiments/{experiment.pk}/").json()
    assert body["tied"] == [str(candidate.pk) for candidate in candidates]
    assert body["base_rate"] == 0.6


def test_unfinished_folds_recommend_nothing(experiment, candidates, finish):
    finish(candidates[0], [0.9, 0.8])
    found = board(experiment)
    assert found.chosen is None
    assert points(found) == []


def test_held_out_rows_are_measured_at_first_opened_tree(experiment, candidates, finish):
    finish(candidates[0], [0.9, 0.8, 1.0])
    finish(candidates[1], [0.5, 0.5, 0.5])
    assert held_out(experiment) is None
    counts = experiment.dataset.profile["class_counts"]
    kept_out = holdout(np.repeat(range(len(counts)), counts), experiment.test_share, 0)[1]
    assert f"{len(kept_out)} rows were kept out of all of this" in honest_words(board(experiment))
    model = actions.open_candidate(candidates[0])
    assert actions.open_candidate(candidates[0]).pk == model.pk
    actions.open_candidate(candidates[1])
    experiment.refresh_from_db()
    assert experiment.chosen == candidates[0]
    assert held_out(experiment)["correct"] == 24
    assert "80.0" in honest_words(board(experiment))
    assert TreeModel.objects.count() == 2


def test_model_shows_estimate_of_its_selection(experiment, candidates, finish, register, owner):
    finish(candidates[0], [0.9, 0.8, 1.0])
    finish(candidates[1], [0.5, 0.5, 0.5])
    whole = [register(title=f"Again {k}") for k in range(2)]
    for candidate, model in zip(candidates, whole, strict=True):
        run = TrainingRun.objects.create(owner=owner, dataset=experiment.dataset, method="cart", model=model)
        Candidate.objects.filter(pk=candidate.pk).update(retrained=run)
    assert "was not measured" in selection_of(whole[0]).words
    first, second = (actions.open_candidate(c) for c in candidates)
    assert selection_of(first).fair
    assert "took no part in the choice" in selection_of(first).words
    assert not selection_of(second).fair
    assert "for the tree that was opened first" in selection_of(second).words
    again = selection_of(whole[0])
    assert (again.correct, again.n, again.fair) == (24, 30, False)
    assert selection_of(whole[1]).accuracy is None
    assert selection_of(register()) is None


def test_selection_without_estimate_shows_no_estimate(owner, dataset, finish):
    one = actions.start(owner=owner, dataset=dataset, candidates=[{"method": "cart"}], folds=3, nested=True)
    assert selection_of(actions.open_candidate(finish(one.candidates.get(), [0.9, 0.8, 1.0]))) is None
    two = actions.start(owner=owner, dataset=dataset, candidates=[{"method": "cart"}] * 2, folds=3, nested=True)
    found = selection_of(actions.open_candidate(finish(two.candidates.first(), [0.9, 0.8, 1.0])))
    assert found.accuracy is None
    assert "has not ended" in found.words


def test_first_opened_tree_stays_chosen(experiment, candidates, finish):
    finish(candidates[0], [0.9, 0.8, 1.0])
    finish(candidates[1], [0.9, 0.8, 1.0])
    actions.open_candidate(candidates[1])
    actions.open_candidate(candidates[0])
    experiment.refresh_from_db()
    assert experiment.chosen == candidates[1]


def test_candidate_of_deleted_model_says_how_to_restore_it(experiment, candidates, finish):
    finish(candidates[0], [0.9, 0.8, 1.0])
    model = actions.open_candidate(candidates[0])
    registry.delete(model)
    with pytest.raises(Conflict, match="Recently deleted"):
        actions.open_candidate(candidates[0])
    bring_back(model)
    assert actions.open_candidate(candidates[0]).pk == model.pk


def test_stopped_experiment_resumes_with_remaining_fits(experiment, candidates, finish):
    finish(candidates[0], [0.9, 0.8, 1.0])
    actions.stop(experiment)
    assert board(experiment).status == "cancelled"
    with pytest.raises(Conflict):
        actions.stop(experiment)
    actions.go_on(experiment)
    assert [c.status for c in experiment.candidates.all()] == ["succeeded", "queued"]
    with pytest.raises(Conflict):
        actions.go_on(experiment)


def test_retrain_is_a_run_on_all_rows(owner, experiment, candidates, finish):
    with pytest.raises(Conflict):
        actions.retrain(candidates[0], owner=owner)
    run = actions.retrain(finish(candidates[0], [0.9, 0.8, 1.0]), owner=owner)
    assert (run.method, run.test_share, run.parameters["depth"]) == ("cart", 0.0, 2)


def test_an_experiment_that_runs_is_not_deleted(experiment):
    with pytest.raises(Conflict):
        actions.delete(experiment)
    actions.stop(experiment)
    actions.delete(experiment)
    assert not Experiment.objects.kept().exists()
    actions.tidy(timezone.now() + timedelta(days=31))
    assert Candidate.objects.count() == 0


def test_one_row_in_the_list_of_runs(browser, experiment, candidates):
    text = browser.get(reverse("searches")).content.decode()
    assert text.count("Best tree for Small") == 1
    assert "0 of 2 tried" in text
    assert "Best tree" not in browser.get(reverse("searches"), {"q": "nothing like it"}).content.decode()
    assert "Best tree" in browser.get(reverse("searches"), {"q": "small best", "status": "queued"}).content.decode()


def test_experiments_are_sorted_among_the_searches(browser, owner, dataset, experiment):
    later = actions.start(owner=owner, dataset=dataset, candidates=TWO, folds=3, test_share=0.25, name="Another")
    for sort, first in (("", later), ("oldest", experiment), ("name", later), ("nonsense", later)):
        page = browser.get(reverse("searches"), {"sort": sort})
        assert next(iter(page.context["page"])).pk == first.pk, sort
    assert "0 of 2" in page.content.decode()


def test_pages_before_during_and_after(browser, experiment, candidates, finish):
    url = reverse("experiments:detail", args=[experiment.pk])
    assert "Nothing is finished yet" in browser.get(url).content.decode()
    live = reverse("experiments:live", args=[experiment.pk])
    seen = browser.get(live).context["seen"]
    assert browser.get(live, {"seen": seen}).status_code == 204
    finish(candidates[0], [0.9, 0.8, 1.0])
    text = browser.get(live, {"seen": seen}).content.decode()
    assert "recommended" in text
    assert "so far" in text
    # the best candidate, whose name differs from that of others with the same method
    assert f'<dd class="why">{candidates[0].name}</dd>' in text
    assert browser.get(reverse("experiments:chart", args=[experiment.pk])).json()["data"]
    answer = browser.post(reverse("experiments:open", args=[candidates[0].pk]))
    assert answer.url.startswith("/models/")
    Candidate.objects.filter(pk=candidates[1].pk).update(status="running")
    text = browser.post(reverse("experiments:stop", args=[experiment.pk]), follow=True).content.decode()
    assert "It stops; the results so far are kept." in text
    assert "Stopping…" in text
    assert "You can close this page" not in text
    Candidate.objects.filter(pk=candidates[1].pk).update(status="cancelled")
    text = browser.get(url).content.decode()
    assert "Stopping…" not in text
    assert "stopped by you after 0 of 4 fits" in text
    assert "Go on" in text
    assert "<dt>Tried</dt><dd>1 <small>of 2</small></dd>" in text  # a stopped candidate does not count as tried
    runs = browser.get(reverse("searches")).content.decode()
    assert "1 of 2 tried" in runs
    for value, words in (("succeeded", "Finished"), ("cancelled", "Stopped")):  # the badges use the same words
        assert f'<option value="{value}">{words}</option>' in runs


def test_start_from_the_page_and_the_plan_that_it_shows(browser, dataset):
    url = reverse("experiments:new")
    page = browser.get(url, {"dataset": dataset.pk})
    assert page.context["planned"].trials
    data = {"dataset": dataset.pk, "kinds": ["two"], "time_limit": "0.5", "folds": 3, "check": "nested", "name": ""}
    shown = browser.post(url, data | {"show": "1"}, headers={"HX-Request": "true"})
    assert {t.method for t in shown.context["planned"].trials} == {"bivariate"}
    longest = duration_text(len(shown.context["planned"].trials) * 7 * 30)
    assert f"trained 7 times to check it. All together take at most {longest} on one worker" in shown.content.decode()
    assert Experiment.objects.count() == 0
    assert browser.post(url, data).status_code == 302
    experiment = Experiment.objects.get()
    assert (experiment.nested, experiment.time_limit, experiment.fits) == (True, 30.0, 7)
    refused = browser.post(url, data | {"kinds": []})
    assert refused.status_code == 200
    assert "Tick at least one kind of question." in refused.content.decode()
    assert not refused.context["planned"].trials  # the plan must not promise anything that the user did not ask for


@pytest.mark.parametrize("name", ["detail", "live", "chart"])
def test_strangers_get_404(client, stranger, experiment, name, media):
    client.force_login(stranger)
    assert client.get(reverse(f"experiments:{name}", args=[experiment.pk])).status_code == 404


@pytest.mark.slow
def test_the_api_has_one_object(client, client_of, owner, stranger, dataset, finish):
    api = client_of(owner)
    response = api.post(
        "/api/v1/experiments/",
        {"dataset": str(dataset.pk), "kinds": ["one"], "folds": 3, "test_share": 0.2},
        format="json",
    )
    assert response.status_code == 201, response.json()
    pk = response.json()["id"]
    assert response.json()["recommended"] is None
    first = Candidate.objects.filter(experiment=pk).first()
    finish(first, [0.9, 0.9, 0.9])
    answer = api.get(f"/api/v1/experiments/{pk}/").json()
    assert answer["recommended"] == str(first.pk)
    assert answer["estimate"] is None
    opened = api.post(f"/api/v1/experiments/{pk}/candidates/{first.pk}/open/").json()
    interval = opened["estimate"].pop("interval")
    assert opened["estimate"] == {"correct": 24, "n": 30, "accuracy": 0.8}
    assert interval[0] < 0.8 < interval[1]
    assert api.post(f"/api/v1/experiments/{pk}/candidates/{first.pk}/retrain/").status_code == 200
    assert TrainingRun.objects.count() == 1
    assert api.delete(f"/api/v1/experiments/{pk}/").status_code == 409
    assert api.post(f"/api/v1/experiments/{pk}/stop/").json()["status"] == "cancelled"
    assert api.post(f"/api/v1/experiments/{pk}/continue/").json()["status"] == "running"
    assert api.get("/api/v1/experiments/").json()["count"] == 1
    figure = f"/api/v1/experiments/{pk}/figures/accuracy/"
    client.force_login(owner)
    assert client.get(reverse("experiments:chart", args=[pk])).json() == api.get(figure).json()
    for address in (figure, f"/api/v1/experiments/{pk}/"):
        assert client_of(stranger).get(address).status_code == 404
    bad = api.post("/api/v1/experiments/", {"dataset": str(dataset.pk), "kinds": ["x"]}, format="json")
    assert bad.status_code == 400


def test_picture_has_axes_first_and_band_after_first_point():
    empty = experiment_figure([])
    assert empty["data"] == []
    assert empty["layout"]["annotations"]
    p = {
        "id": "a",
        "name": "A",
        "leaves": 4,
        "mean": 0.7,
        "error": 0.01,
        "proved": True,
        "recommended": True,
        "highest": True,
    }
    drawn = experiment_figure(
        [p, p | {"id": "b", "leaves": 9, "proved": False, "recommended": False, "highest": False}]
    )
    assert [t["name"] for t in drawn["data"]] == ["proved optimal", "not proved as a whole", "recommended"]
    assert drawn["layout"]["shapes"][0]["y0"] == pytest.approx(69.0)


def test_labels_of_equal_size_candidates_do_not_overlap():
    high = {"id": "a", "name": "A", "leaves": 4, "mean": 0.71, "error": 0.02, "proved": False, "highest": True}
    points = [
        high | {"recommended": False},
        high | {"id": "b", "mean": 0.7, "error": 0.0, "proved": True, "recommended": True, "highest": False},
    ]
    layout = experiment_figure(points)["layout"]
    words = {a["yanchor"]: a for a in layout["annotations"] if "leaves" in a["text"]}
    assert "recommended" in words["top"]["text"]
    assert "highest" in words["bottom"]["text"]
    # below the error bar of the other candidate, which has the same size
    assert words["top"]["y"] == pytest.approx(69.0)
    assert words["bottom"]["y"] == pytest.approx(73.0)
    assert words["top"]["x"] != words["bottom"]["x"]  # the two labels are side by side and do not overlap
    low, high_end = layout["yaxis"]["range"]
    assert low < 69.0
    assert high_end > 73.0


def test_status_of_one_that_waits_beside_one_that_is_done(experiment, candidates, finish):
    finish(candidates[0], [0.5, 0.5, 0.5])
    assert board(experiment).status == RunStatus.RUNNING
