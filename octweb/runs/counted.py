"""Show the form of a training from counts, which has few settings."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from octweb.core.forms import SaidForm
from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets.models import Dataset
from octweb.jobs import queue
from octweb.runs import actions
from trainer.constraints.text import item_text
from trainer.counts.train import METHOD
from trainer.errors import ParameterError


class CountedForm(SaidForm):
    """Settings of a training from counts."""

    name = forms.CharField(required=False, max_length=200, label="Name")
    depth = forms.IntegerField(min_value=1, label="Deepest tree", help_text="Number of questions before an answer")
    leaf_penalty = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.005,
        required=False,
        label="Price of a leaf",
        help_text="A leaf must improve the accuracy by at least this share: 0.005 means half a percent",
    )
    max_leaves = forms.IntegerField(min_value=1, required=False, label="Most leaves")
    min_leaf = forms.IntegerField(min_value=1, required=False, label="Fewest rows in a leaf")
    forbidden = forms.MultipleChoiceField(
        required=False, label="Columns never to ask", widget=forms.CheckboxSelectMultiple
    )

    forbidden_pairs = forms.CharField(
        required=False, label="Columns never to ask together", help_text="On one path, as in age + income; sex + region"
    )
    recall = forms.CharField(
        required=False,
        label="Least share to find",
        help_text="Of the rows of a class, as in yes: 0.9; no: 0.8. Not together with costs",
    )
    costs = forms.CharField(
        required=False,
        label="Costs of wrong answers",
        help_text="True class, answer and number, as in yes>no=5; no>yes=1. Empty: every error costs the same",
    )
    cost_unit = forms.CharField(required=False, max_length=20, label="Unit of the costs", help_text="Such as EUR")

    def __init__(self, *args: Any, dataset: Dataset, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        deepest = dataset.origin["depth"]
        depth = self.fields["depth"]
        depth.initial = deepest
        depth.max_value = deepest
        depth.widget.attrs["max"] = deepest
        columns = [c["name"] for c in dataset.columns if c["role"] == "feature"]
        self.fields["forbidden"].choices = [(name, name) for name in columns]


def counted_page(request: HttpRequest, dataset: Dataset) -> HttpResponse:
    """Show the form for a data set of counts. A POST queues the run and redirects to it."""
    form = CountedForm(request.POST or None, dataset=dataset)
    if request.method == "POST" and form.is_valid():
        values = dict(form.cleaned_data)
        name = values.pop("name")
        forbidden = item_text(values.pop("forbidden"))
        parameters = {key: value for key, value in values.items() if value not in (None, "")}
        parameters |= {"forbidden": forbidden} if forbidden else {}
        try:
            run = actions.enqueue(owner=request.user, dataset=dataset, method=METHOD, parameters=parameters, name=name)
            return redirect("runs:detail", run.pk)
        except ParameterError as error:
            for field, message in error.errors.items():
                form.add_error(field if field in form.fields else None, message)
        except (Conflict, Unprocessable) as error:
            form.add_error(None, str(error.detail))
    context = {"dataset": dataset, "form": form, "workers_seen": queue.worker_seen()}
    return render(request, "runs/counted.html", context)
