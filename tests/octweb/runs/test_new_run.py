"""The page of a new run: answers choose the method, input is kept, and the words fit the settings."""

from __future__ import annotations

import io

import pytest
from django.urls import reverse

from octweb.datasets import actions as datasets
from octweb.datasets import empty_cells
from octweb.datasets.choice import ColumnChoice
from octweb.runs import actions, advice, forms
from octweb.runs.advice import AdviceAnswers
from octweb.runs.constraint_fields import PairsField, RecallField
from octweb.runs.estimate import questions
from octweb.runs.models import RunStatus, TrainingRun
from octweb.runs.reachable import reachable
from octweb.runs.words import in_words, run_name
from trainer.cli.parameters import arguments_of
from trainer.constraints import CONSTRAINTS
from trainer.data.encoding import encode_binary
from trainer.registry import METHODS, get
from trainer.table import MissingPolicy
from trainer.training.estimate import range_words

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]  # the page does not depend on the database


@pytest.fixture
def browser(client, owner, media):
    client.force_login(owner)
    return client


@pytest.fixture
def state(browser, dataset):
    """Provide the fields of the form as a browser would send them, and a function that sends a change."""
    context = browser.get(reverse("runs:new"), {"dataset": dataset.pk}).context
    data = _sent(context)

    def change(**values):
        context = browser.post(reverse("runs:advice"), data | values).context
        data.update(values | _sent(context))
        return context

    change.data = data
    return change


def _sent(context):
    form = context["form"]
    data = {"dataset": str(context["dataset"].pk), "method": context["method"].id}
    data |= {"ask": context["answers"].ask, "sure": context["answers"].sure}
    data |= {"shown_method": data["method"], "shown_ask": data["ask"], "shown_sure": data["sure"]}
    data |= {"shown_dataset": data["dataset"], "own": "1" if context["own"] else "0"}
    data |= {"evaluation": form["evaluation"].value(), "test_percent": 25, "folds": 5, "name": ""}
    for field in form:
        value = field.value()
        if (
            field.name.startswith("p_")
            and not isinstance(value, list)
            and value is not None
            and value is not False
            and value != ""
        ):
            data[field.name] = "on" if value is True else str(value)
    return data | dict(context["kept"]) | {"touched": context["touched"]}


def test_every_method_is_in_the_table_and_has_words():
    shown = [m["method"].id for _, methods in advice.groups_of_methods() for m in methods]
    assert sorted(shown) == sorted(m.id for m in METHODS)
    assert [title for title, _ in advice.groups_of_methods()] == ["Recommended", "Others", "Baselines"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask", "sure", "method"),
    [
        ("one", "quick", "cart"),
        ("one", "proved", "exact"),
        ("two", "quick", "bivariate"),
        ("two", "proved", "bivariate"),
        ("many", "quick", "oc1"),
        ("many", "proved", "cut-h"),
        ("groups", "quick", "cart"),
        ("groups", "proved", "odt"),
    ],
)
def test_answers_choose_a_method(state, ask, sure, method):
    context = state(ask=ask, sure=sure)
    assert context["method"].id == method
    assert context["answers"] == AdviceAnswers(ask=ask, sure=sure)


def test_constraints_choose_the_method_that_takes_them(state):
    assert state(p_fairness="parity", p_depth="2")["method"].id == "exact"
    assert state(p_fairness="none")["method"].id == "exact-numeric"
    assert state(**{"p_recall-0": "80"})["method"].id == "exact"


def test_a_method_picked_by_hand_stays_until_an_answer_changes(state):
    context = state(method="flowoct")
    assert (context["method"].id, context["own"], context["answers"].sure) == ("flowoct", True, "proved")
    assert state(p_depth="1")["method"].id == "flowoct"
    assert state(sure="quick")["method"].id == "cart"


def test_typed_values_are_kept(state):
    state(p_min_leaf="7", p_depth="4")
    context = state(method="binoct")
    assert context["form"]["p_depth"].value() == "4"
    assert ("p_min_leaf", "7") in context["kept"]
    assert state(method="cart")["form"]["p_min_leaf"].value() == "7"


def test_typed_value_survives_if_it_equals_a_passing_default(state):
    assert state(p_depth="2")["method"].id == "exact-numeric"
    assert get("exact-numeric").parameter("depth").default == 2
    state(sure="quick")
    assert state(sure="proved")["form"]["p_depth"].value() == "2"


def test_passing_default_is_not_taken_for_typed_value(state):
    state(ask="groups", p_bins="")
    state(ask="one", p_depth="2")
    assert state(sure="quick")["kept"]
    shown = state(sure="proved")
    assert shown["method"].id == "exact"
    assert shown["form"]["p_bins"].value() == ""  # as many thresholds as can be proved soon


def test_untouched_field_takes_default_of_new_method(state):
    assert state(method="flowoct")["form"]["p_depth"].value() == "2"
    assert state(method="cart")["form"]["p_depth"].value() == "4"


def test_the_settings_are_sent_only_where_the_method_changes(browser, state):
    same = browser.post(reverse("runs:advice"), state.data | {"p_depth": "4"}).content.decode()
    assert 'id="in-words"' in same
    assert 'id="method-settings"' not in same
    other = browser.post(reverse("runs:advice"), state.data | {"method": "cart"}).content.decode()
    assert 'id="method-settings"' in other


def test_percent_and_minutes_become_what_the_trainer_reads(browser, state, dataset):
    data = state.data | {"p_leaf_penalty": "0.2", "p_time_limit": "2.5"}
    browser.post(reverse("runs:new"), data)
    run = TrainingRun.objects.get()
    assert (run.parameters["leaf_penalty"], run.parameters["time_limit"]) == (0.002, 150.0)
    assert run.name == "Small, Exact search, depth 3, penalty 0.2\u202f%"


def test_empty_depth_is_no_limit_and_asks_for_penalty(browser, state):
    data = state.data | {"p_depth": "", "p_leaf_penalty": ""}
    errors = browser.post(reverse("runs:new"), data).context["form"].errors
    assert "above 0 without a limit of depth" in errors["p_leaf_penalty"][0]
    context = state(p_depth="", p_leaf_penalty="1")
    assert context["headline"] == "Finds the best tree with any number of questions on a path"
    assert "Proves that no tree of any depth" in context["sentences"][-1]
    assert browser.post(reverse("runs:new"), state.data).status_code == 302
    run = TrainingRun.objects.get()
    assert run.parameters["depth"] is None
    assert run.name == "Small, Exact search, any depth, penalty 1\u202f%"
    assert "--depth=none" in arguments_of(run.parameters.items())


def test_only_methods_without_limit_take_empty_depth(browser, state):
    answer = browser.post(reverse("runs:new"), state.data | {"method": "cart", "own": "1", "p_depth": ""})
    assert "p_depth" in answer.context["form"].errors


def test_pickers_become_the_constraints_of_the_run(browser, state):
    data = state.data | {"p_recall-0": "90", "p_recall-1": "", "p_forbidden": ["colour"]}
    data |= {"p_forbidden_pairs-0-a": "width", "p_forbidden_pairs-0-b": "height"}
    answer = browser.post(reverse("runs:new"), data)
    assert answer.status_code == 302, answer.context["form"].errors
    parameters = TrainingRun.objects.get().parameters
    assert parameters["recall"] == "no: 0.9"
    assert parameters["forbidden"] == "colour"
    assert parameters["forbidden_pairs"] == "width + height"


def test_all_constraints_of_the_form_combine(browser, state):
    data = state.data | {"p_fairness": "parity", "p_fairness_column": "colour", "p_forbidden": ["width"]}
    assert browser.post(reverse("runs:new"), data).status_code == 302
    parameters = TrainingRun.objects.get().parameters
    assert (parameters["fairness_column"], parameters["forbidden"]) == ("colour", "width")


@pytest.mark.parametrize("value", [[("a", "")], [("a", "a")], [("a", "zz")]])
def test_incomplete_pair_is_refused(value):
    field = PairsField(first=["a", "b"], second=["a", "b"], join="+", words=("column", "second column"), required=False)
    with pytest.raises(Exception, match="Line 1"):
        field.clean(value)
    assert field.clean([("a", "b"), ("", "")]) == "a + b"


def test_recall_text_round_trips():
    field = RecallField(classes=["no", "yes: sure", "c"], required=False)
    text = field.clean(["12.5", "90", ""])
    assert text == "no: 0.125; yes: sure: 0.9"
    rows = field.widget.get_context("p_recall", text, {})["widget"]["rows"]
    assert [row["value"] for row in rows] == ["12.5", "90", ""]


def test_the_words_say_depth_thresholds_limit_and_constraints(dataset):
    method = get("exact")
    values = method.settings(
        {"depth": 2, "bins": 5, "leaf_penalty": 0.01, "recall": "no: 0.8", "forbidden": "width"}
    ).to_json()
    headline, sentences = in_words(method, values, columns=2, questions=7)
    text = " ".join([headline, *sentences])
    for words in (
        "at most two questions",
        "at most four thresholds",
        "7 yes/no",
        "1\u202f% of the rows",
        "never asks width",
        "80\u202f% of the “no” rows",
        "10\u202fmin",
        "Proves that no tree of this size gets more rows right",
    ):
        assert words in text, (words, text)


def test_table_without_numbers_offers_category_questions(browser, owner):
    text = "fur,tail,class\n" + "".join(f"{'ab'[i % 2]},{'yn'[i % 3 > 0]},{'pq'[i % 2]}\n" for i in range(60))
    votes = datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="v.csv", target="class")
    context = browser.get(reverse("runs:new"), {"dataset": votes.pk}).context
    assert context["kinds"][0].words.startswith(("“fur is a?”", "“fur is b?”"))
    assert "A question looks at one of two columns: " in context["sentences"][0]
    assert "column of numbers" not in " ".join(context["sentences"])


@pytest.mark.parametrize(
    ("depth", "most", "words"),
    [(0, None, "one leaf"), (2, None, "four leaves"), (4, 20, "16 leaves"), (4, 5, "")],
)
def test_the_words_say_how_many_leaves_the_chosen_depth_gives(depth, most, words):
    headline, _ = in_words(get("exact"), {"depth": depth, "max_leaves": most}, columns=2, questions=7)
    assert ("so at most" in headline) == bool(words)
    assert headline.endswith(words)
    assert "eight" not in forms.HELP["depth"]


@pytest.mark.parametrize("name", ["cart", "oc1", "bivariate"])
def test_ineffective_penalty_is_not_shown_first(dataset, name):
    method = get(name)
    form = forms.RunForm(user=None, dataset=dataset, method=method)
    assert [f.name for f in form.size_fields()] == ["p_depth", "p_min_leaf", "p_time_limit"]
    field = next(f for f in form.advanced_fields() if f.name == "p_leaf_penalty")
    assert "does not depend" in field.help_text
    text = " ".join(in_words(method, {"leaf_penalty": 0.01, "pruning": "0.02"}, columns=2, questions=7)[1])
    assert "A leaf must gain" not in text
    assert "The tree does not depend on the leaf penalty" in text
    assert "Leaves that win fewer than 2\u202f% of the rows are removed." in text


def test_names_tell_runs_apart(dataset):
    method = get("exact")
    names = {
        run_name("d", method, method.settings(values).to_json())
        for values in (
            {},
            {"depth": 2},
            {"leaf_penalty": 0.01},
            {"bins": 9},
            {"min_leaf": 5},
            {"class_weight": "balanced"},
        )
    }
    assert len(names) == 6


def test_questions_are_those_of_the_encoding(dataset):
    table, _ = datasets.load(dataset)
    for scheme in ("quantile-thresholds", "quantile-buckets", "all-thresholds"):
        for bins in (2, 5, 9):
            assert questions(dataset, scheme, bins) == len(encode_binary(table, scheme, bins).features)


@pytest.mark.parametrize(
    ("low", "high", "limit", "words"),
    [
        (0.1, 0.6, None, "under 1\u202fs"),
        (0.4, 6, None, "0.4 to 6\u202fs"),
        (0.4, 6, 5, "0.4 to 6\u202fs, perhaps more than its limit of 5\u202fs"),
        (700, 9000, 600, "more than 10:00\u202fmin: it stops at its limit, before a proof"),
    ],
)
def test_ranges_in_words(low, high, limit, words):
    assert range_words(low, high, limit, proof=True) == words


@pytest.mark.parametrize(
    ("parameters", "summary", "changed"),
    [
        ({"recall": "yes: 0.9; no: 0.8"}, {"best": 0.05, "best_of": "shortfall of the recalls"}, {"recall": "yes: 0.85; no: 0.75"}),
        ({"fairness_delta": 0.01}, {"best": 0.1234567, "best_of": "difference of rates"}, {"fairness_delta": 0.123457}),
        ({"max_leaves": 2}, {"best": 4, "best_of": "leaves"}, {"max_leaves": 4}),
        ({"max_columns": 1}, {"best": 2, "best_of": "columns"}, {"max_columns": 2}),
        ({"recall": "yes: 0.9"}, {"best": None, "best_of": None}, None),
    ],
)  # fmt: skip
def test_reachable_values_become_settings(owner, dataset, parameters, summary, changed):
    run = actions.enqueue(owner=owner, dataset=dataset, method="exact")
    run.parameters = parameters
    run.status = RunStatus.FAILED
    assert reachable(run) is None
    run.summary = {"status": "infeasible"} | summary
    found = reachable(run)
    assert (found and found.parameters) == (changed and parameters | changed)


def test_recalls_are_printed_as_exact_percentages(owner, dataset):
    asked = {"recall": "yes: 0.99; no: 1"}
    run = actions.enqueue(owner=owner, dataset=dataset, method="exact")
    run.parameters = asked
    run.status = RunStatus.FAILED
    run.summary = {"status": "infeasible", "best": 0.0403145, "best_of": "shortfall of the recalls"}
    # not "95 %", which is more than can be reached
    assert reachable(run).words == "with at least 94.9685\u202f% of yes and 95.9685\u202f% of no found"
    name = run_name("Small", get("exact"), get("exact").settings({"depth": 2} | asked).to_json())
    assert name == "Small, Exact search, depth 2, least recall yes 99\u202f%; no 100\u202f%"


def test_folds_state_their_number_of_trainings(browser, state):
    data = state.data | {"evaluation": "folds", "folds": 2, "p_time_limit": "10"}
    words = browser.post(reverse("runs:advice"), data).content.decode()
    assert "3 trainings of up to 10:00\u202fmin each" in words
    assert "trainings of up to" not in browser.post(reverse("runs:advice"), state.data).content.decode()


def test_one_switch_keeps_rows_with_empty_cells(browser, owner, media):
    text = "a,b,n,class\n" + "".join(
        f"{'y' if i % 3 else ''},{i % 2},{'' if i == 5 else i},{'pq'[i % 2]}\n" for i in range(40)
    )
    dropped = ColumnChoice(missing={"a": MissingPolicy.DROP, "n": MissingPolicy.DROP})
    dataset = datasets.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name="votes.csv", target="class", choice=dropped
    )
    found = empty_cells.describe_switch(dataset)
    assert found.columns == ("a", "n")
    page = browser.get(reverse("runs:new"), {"dataset": dataset.pk, "p_bins": "5"})
    assert f"{found.dropped} of 40 rows have empty cells" in page.content.decode()
    data = _sent(page.context) | {"learn_empty": "on"}
    # the form says what the switch would change, and changes nothing before the start
    before = browser.post(reverse("runs:advice"), data | {"shown_dataset": str(dataset.pk), "shown_empty": "1"})
    whole = browser.post(reverse("runs:advice"), data | {"shown_dataset": str(dataset.pk), "shown_empty": "0"})
    assert (before.get("HX-Retarget"), whole["HX-Retarget"]) == (None, "#run-form")
    assert "40 rows, 3 columns" in whole.content.decode()
    assert "15 of 40 rows have empty cells and would be left out" in " ".join(whole.content.decode().split())
    for answer in (before, whole):
        assert answer.context["expected"].rows + answer.context["unseen_rows"] == 40
        assert answer.context["learning"]
    assert page.context["expected"].rows + page.context["unseen_rows"] == 25
    # four thresholds with empty cells on either side, "is n empty?", "y" or empty, and b
    assert (page.context["expected"].questions, before.context["expected"].questions) == (5, 11)
    dataset.refresh_from_db()
    assert dataset.rows == 25
    assert browser.post(reverse("runs:new"), data).status_code == 302
    dataset.refresh_from_db()
    assert dataset.rows == 40
    assert empty_cells.describe_switch(dataset) is None


def test_the_switch_opens_questions_about_groups(browser, owner, media):
    """Two categories and missing make three, which is enough for groups."""
    text = "a,b,class\n" + "".join(f"{('y', 'n', '')[i % 3]},{('y', 'n')[i % 2]},{'pq'[i % 2]}\n" for i in range(40))
    dropped = ColumnChoice(missing={"a": MissingPolicy.DROP})
    dataset = datasets.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name="votes.csv", target="class", choice=dropped
    )
    page = browser.get(reverse("runs:new"), {"dataset": dataset.pk})
    assert [k.refusal == "" for k in page.context["kinds"]] == [True, False, False, False]
    data = _sent(page.context) | {"learn_empty": "on", "shown_dataset": str(dataset.pk), "shown_empty": "0"}
    answer = browser.post(reverse("runs:advice"), data)
    assert [k.refusal == "" for k in answer.context["kinds"]] == [True, False, False, True]
    assert (page.context["expected"].questions, answer.context["expected"].questions) == (2, 4)


def test_the_switch_of_the_preview_changes_what_would_train(browser, owner):
    text = "a,b,class\n" + "".join(f"{'xyz'[i % 3] if i % 4 else ''},{i},{'pq'[i % 2]}\n" for i in range(40))
    upload = datasets.stage(owner=owner, file=io.BytesIO(text.encode()), source_name="gaps.csv")
    url = reverse("datasets:preview", args=[upload.pk])
    page = browser.get(url)
    assert page.context["outlook"].rows_kept == 40
    assert page.context["empty_card"]["complete"] == 30
    page = browser.post(url, {"reread": "1", "missing_all": "drop", "header": "yes"})
    assert page.context["outlook"].rows_kept == 30
    assert page.context["empty_card"]["rows"] == 40


ASKED = {
    "max_leaves": 3,
    "max_columns": 2,
    "recall": "yes: 0.9",
    "fairness": "parity",
    "forbidden_pairs": "age + income",
    "monotone": "age up",
}


def test_every_side_constraint_is_on_the_form_and_in_the_summary():
    """A new constraint appears by its declaration, but its sentence must be written."""
    names = {p.name for p in CONSTRAINTS}
    assert names <= set(forms.CONSTRAINTS)
    assert names <= set(advice.wishes(AdviceAnswers(ask="one", sure="proved")))
    assert names - {"fairness_column", "fairness_class", "fairness_delta"} == set(ASKED)
    method = get("bendoct")
    without = method.settings({})
    beside = {"fairness_column": "sex", "fairness_class": "yes"}

    def sentences(asked):
        return set(in_words(method, {**without, **beside, **asked}, columns=4, questions=9)[1])

    for name, value in ASKED.items():
        assert sentences({name: value}) - sentences({}), name
