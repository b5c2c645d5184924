"""Show the form of a new run.

The answers to some questions select the method. The page describes the run before its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets import empty_cells
from octweb.datasets.models import Dataset
from octweb.jobs import queue
from octweb.registry.document.sensitivity_frontier import latest_frontier_context
from octweb.runs import actions, advice
from octweb.runs.advice import AdviceAnswers
from octweb.runs.counted import counted_page
from octweb.runs.estimate import estimate
from octweb.runs.forms import TOUCHED, RunForm, carry_values, hidden_values
from octweb.runs.thresholds import chooses
from octweb.runs.words import class_words, in_words
from trainer.errors import DataError, ParameterError
from trainer.methods.base import AUTO, Method, stated_values
from trainer.methods.capabilities import Role
from trainer.registry import get, method_for
from trainer.training.estimate import trainings_words
from trainer.tree.numbers import count_words

EMPTY = "learn_empty"  # name of the form's switch for empty cells
DECLARED_UNITS = ("p_", "evaluation", "test_percent", "folds", "name", "group", "time", "weight")


@dataclass(frozen=True, kw_only=True)
class MethodChoice:
    """The method of a form, the answers, and whether the user picked the method (`own`).

    `unknown` is the error message if the picked method does not exist.
    """

    method: Method
    answers: AdviceAnswers
    own: bool
    unknown: str = ""


@login_required
def run_new(request: HttpRequest) -> HttpResponse:
    """Show the form. A POST queues the run and redirects to it."""
    data = request.POST if request.method == "POST" else request.GET
    dataset = _dataset(request, data)
    if dataset is None:
        messages.info(request, "A run needs a data set. Upload one, or take a sample.")
        return redirect("datasets:new")
    if dataset.counts:
        return counted_page(request, dataset)
    stored = dataset
    dataset = _meant(dataset, data)
    choice = chosen_method(data, dataset)
    if request.method != "POST":
        return _page(request, dataset, choice, _form(request, dataset, choice, initial=_initial(data)), stored)
    form = _form(request, dataset, choice, request.POST)
    if choice.unknown:
        form.add_error(None, choice.unknown)
    if form.is_valid():
        try:
            if EMPTY in request.POST:
                stored = empty_cells.learn(stored)
            run = actions.enqueue(owner=request.user, dataset=stored, **form.request())
            return redirect("runs:detail", run.pk)
        except ParameterError as error:
            form.add_parameter_errors(error.errors)
        except DataError as error:
            form.add_error(None, str(error))
        except (Conflict, Unprocessable) as error:
            form.add_error(None, str(error.detail))
    return _page(request, dataset, choice, form, stored)


@login_required
@require_POST
def run_advice(request: HttpRequest) -> HttpResponse:
    """Render the parts of the form that change: the description, another method's settings, or all for other data."""
    stored = _dataset(request, request.POST)
    if stored is None:
        return HttpResponse("There is no such data set, or it is not yours.", status=404)
    dataset = _meant(stored, request.POST)
    choice = chosen_method(request.POST, dataset)
    form = _carry_form(request, dataset, choice)
    context = _context(request, dataset, choice, form, stored)
    context["form"] = form
    if _form_version(stored, EMPTY in request.POST) != (
        request.POST.get("shown_dataset"),
        request.POST.get("shown_empty", "0"),
    ):
        response = render(request, "runs/_new_form.html", context)
        response["HX-Retarget"] = "#run-form"
        response["HX-Reswap"] = "outerHTML"
        return response
    # these fragments replace parts of the page out of band; within a complete form, htmx would remove them
    context["partial"] = True
    context["swap_settings"] = choice.method.id != request.POST.get("shown_method")
    return render(request, "runs/_new_changes.html", context)


def chosen_method(data: QueryDict, dataset: Dataset) -> MethodChoice:
    """Return the method that the user picked. If the answers were changed since, return the recommended one."""
    answers = _answers(data)
    posted = data.get("method", "")
    shown_method = data.get("shown_method", "")
    answers_changed = answers != AdviceAnswers(
        ask=data.get("shown_ask", answers.ask), sure=data.get("shown_sure", answers.sure)
    )
    is_own_choice = (
        bool(posted)
        and (not shown_method or posted != shown_method or data.get("own") == "1")
        and not (shown_method and answers_changed)
    )
    if not is_own_choice:
        answers = _possible(answers, dataset)
        return MethodChoice(
            method=advice.recommend(answers, dataset, typed_constraints(data)), answers=answers, own=False
        )
    try:
        method = get(posted)
        unknown = ""
    except ParameterError as error:
        method = method_for(Role.ONE_PROVED)
        unknown = error.errors["method"]
    return MethodChoice(method=method, answers=advice.answers_of(method), own=True, unknown=unknown)


def typed_constraints(data: QueryDict) -> dict[str, Any]:
    """Return the typed parameters, without an invalid depth or `min_leaf`. The form validates the others later."""
    values: dict[str, Any] = {}
    for key in data:
        if not key.startswith("p_"):
            continue
        name = key.removeprefix("p_").split("-")[0]
        if any(value.strip() for value in data.getlist(key)):
            values[name] = data.get(key)
    for name in ("depth", "min_leaf"):
        if not str(values.get(name, "")).strip().isdigit():
            values.pop(name, None)
    return values


def _answers(data: QueryDict) -> AdviceAnswers:
    ask = data.get("ask", "one")
    sure = data.get("sure", "proved")
    return AdviceAnswers(
        ask=ask if ask in ("one", "two", "many", "groups") else "one", sure="quick" if sure == "quick" else "proved"
    )


def _possible(answers: AdviceAnswers, dataset: Dataset) -> AdviceAnswers:
    """Return the answers. If the data do not fit the selected split type, replace it by univariate splits."""
    refused = {kind.id for kind in advice.kinds(dataset) if kind.refusal}
    return AdviceAnswers(ask="one", sure=answers.sure) if answers.ask in refused else answers


def _dataset(request: HttpRequest, data: QueryDict) -> Dataset | None:
    datasets = Dataset.objects.changeable_by(request.user)
    dataset_id = data.get("dataset")
    return datasets.get_for(request, dataset_id) if dataset_id else datasets.first()


def _form(
    request: HttpRequest, dataset: Dataset, choice: MethodChoice, data: QueryDict | None = None, **more: Any
) -> RunForm:
    wishes = () if choice.own else advice.wishes(choice.answers)
    return RunForm(data, user=request.user, dataset=dataset, method=choice.method, wishes=wishes, **more)


def _initial(data: QueryDict) -> dict[str, Any]:
    """Return the initial settings from a link, in the units of the declarations."""
    initial: dict[str, Any] = {name: value for name, value in data.items() if name.startswith(DECLARED_UNITS)}
    for name in ("p_leaf_penalty", "p_time_limit"):
        try:
            initial[name] = float(initial[name])
        except (KeyError, ValueError):
            initial.pop(name, None)
    return initial


def _carry_form(request: HttpRequest, dataset: Dataset, choice: MethodChoice) -> RunForm:
    """Return the form of the selected method, with the values typed for the previous method."""
    try:
        shown_method = get(request.POST.get("shown_method", ""))
    except ParameterError:
        shown_method = choice.method
    before_own = request.POST.get("own") == "1"
    before_answers = AdviceAnswers(
        ask=request.POST.get("shown_ask", "one"), sure=request.POST.get("shown_sure", "proved")
    )
    wishes = () if before_own else advice.wishes(before_answers)
    before = RunForm(user=request.user, dataset=dataset, method=shown_method, wishes=wishes)
    blank = _form(request, dataset, choice)
    return _form(request, dataset, choice, carry_values(request.POST, blank, before))


def _meant(dataset: Dataset, data: QueryDict) -> Dataset:
    """Return the data set of the run.

    With the switch for empty cells on, this is a preview with other rows and columns.
    """
    return empty_cells.preview_learn(dataset) if EMPTY in data else dataset


def _form_version(dataset: Dataset, learning: bool) -> tuple[str, str]:
    """Return a key of the data for which the form was built."""
    return str(dataset.pk), "1" if learning else "0"


def _page(request: HttpRequest, dataset: Dataset, choice: MethodChoice, form: RunForm, stored: Dataset) -> HttpResponse:
    context = _context(request, dataset, choice, form, stored) | {"form": form}
    return render(request, "runs/new.html", context)


def _context(
    request: HttpRequest, dataset: Dataset, choice: MethodChoice, form: RunForm, stored: Dataset
) -> dict[str, Any]:
    """Return the template context. `stored` is the data set without the switch for empty cells."""
    learning = EMPTY in (request.POST if request.method == "POST" else request.GET)
    method = choice.method
    return {
        "dataset": dataset,
        "datasets": Dataset.objects.changeable_by(request.user)[:200],
        "class_words": class_words(dataset),
        "method": method,
        "own": choice.own,
        "answers": choice.answers,
        "kinds": advice.kinds(dataset),
        "groups": (groups := advice.groups_of_methods()),
        "other_methods": count_words(sum(len(methods) for _, methods in groups[1:]), "method"),
        "kept": hidden_values(request.POST, form) if request.method == "POST" else [],
        "touched": form.data.getlist(TOUCHED) if isinstance(form.data, QueryDict) else [],
        "workers_seen": queue.worker_seen(),
        "reach": latest_frontier_context(request.user, dataset) if method.parameter("sensitivity") else None,
        "empties": empty_cells.describe_switch(stored),
        "learning": learning,
        "shown_empty": _form_version(stored, learning)[1],
        **describe_run(request.user, dataset, method, form),
    }


def describe_run(user: Any, dataset: Dataset, method: Method, form: RunForm) -> dict[str, Any]:
    """Describe the run, and estimate its time, from the valid values of the form."""
    values = _readable(form, method)
    why = ""
    if chooses(method) and values["bins"] in (None, AUTO):
        bins_choice = form.chosen_bins(values)
        values["bins"] = bins_choice.bins
        values["binarise"] = str(bins_choice.scheme)
        why = bins_choice.why
    evaluation = values.get("evaluation", "test")
    share = (values.get("test_percent") or 25) / 100 if evaluation == "test" else 0.0
    expected = estimate(user=user, dataset=dataset, method=method, values=values, test_share=share)
    columns = len(advice.feature_columns(dataset)) - len(
        [c for c in str(values.get("forbidden") or "").split(";") if c]
    )
    folds = int(values.get("folds") or 0) if evaluation == "folds" else 0
    limit = values.get("time_limit")
    numbers = bool(advice.feature_columns(dataset, "numeric"))
    headline, sentences = in_words(method, values, columns=columns, questions=expected.questions, numbers=numbers)
    return {
        "expected": expected,
        "headline": headline,
        "sentences": [sentences[0], *filter(None, [why]), *sentences[1:]],
        "unseen_rows": dataset.rows - expected.rows,
        "unseen_folds": folds,
        "trainings": trainings_words(folds, None if limit is None else float(limit)),
        "constraint_count": sum(
            1 for f in form.constraint_fields() if values.get(f.name[2:]) not in (None, "", "none", 0.05)
        ),
    }


def _readable(form: RunForm, method: Method) -> dict[str, Any]:
    """Return the values by parameter: defaults, overridden by valid typed values."""
    defaults = {p.name: p.default for p in method.parameters}
    if form.is_bound:
        copied_form = RunForm(form.data, user=None, dataset=form.dataset, method=form.method, wishes=_wishes_of(form))
        return defaults | stated_values(method, copied_form.so_far())
    initial = {name.removeprefix("p_"): value for name, value in form.initial.items() if value not in (None, "")}
    return defaults | _numbers(method, initial)


def _numbers(method: Method, values: dict[str, Any]) -> dict[str, Any]:
    """Parse the values of a link by the declarations. Invalid values are dropped."""
    numbers: dict[str, Any] = {}
    for name, value in values.items():
        parameter = method.parameter(name)
        try:
            if parameter:
                numbers[name] = parameter.parse(value)
            else:
                numbers[name] = int(value) if name in ("test_percent", "folds") else value
        except ValueError:
            continue
    return numbers


def _wishes_of(form: RunForm) -> tuple[str, ...]:
    return tuple(f[2:] for f in form.fields if f.startswith("p_") and form.method.parameter(f[2:]) is None)
