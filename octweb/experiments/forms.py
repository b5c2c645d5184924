"""Define the form of a new experiment."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from octweb.core.forms import SaidForm
from octweb.datasets.models import Dataset
from octweb.experiments.actions import FOLDS, LONGEST_FIT
from octweb.experiments.models import fits_of
from octweb.experiments.plan import HELD_OUT, evaluation
from octweb.runs import advice
from octweb.runs.constraint_fields import MinutesField
from octweb.runs.forms import costs_field, dependence_fields
from trainer.data.folds import MOST_FOLDS, held_out_of

CHECKS = (
    ("auto", "Choose to fit the number of rows"),
    ("held-out", "Hold out a quarter of the rows, measured once"),
    ("nested", "Nested folds: no row is lost, three times the fits"),
)


class ExperimentForm(SaidForm):
    """Form of a new experiment: kinds of splits, time limit per fit, folds, and how the choice is evaluated."""

    name = forms.CharField(
        max_length=200, required=False, label="Name", help_text="If left empty: best tree for the data set."
    )
    kinds = forms.MultipleChoiceField(
        label="What may a tree ask?",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Tick at least one kind of question."},
    )
    time_limit = MinutesField(
        min_value=0,
        initial=LONGEST_FIT,
        label="Longest time of one fit",
        help_text="A fit that reaches its limit keeps its best tree and its gap.",
    )
    folds = forms.IntegerField(min_value=3, max_value=MOST_FOLDS, initial=FOLDS, label="Folds")
    check = forms.ChoiceField(
        choices=CHECKS, initial="auto", label="How is the choice checked?", widget=forms.RadioSelect
    )

    def __init__(self, *args: Any, dataset: Dataset, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dataset = dataset
        self.fields |= dependence_fields(dataset)
        costs = costs_field(dataset, required=False, label="Costs of answers")
        if costs is not None:
            self.fields["costs"] = costs
        possible = [kind for kind in advice.kinds(dataset) if not kind.refusal]
        self.fields["kinds"].choices = [(kind.id, kind.title) for kind in possible]
        self.fields["kinds"].initial = [kind.id for kind in possible]
        self.fields["time_limit"].unit = "min"
        self.fields["time_limit"].widget.attrs["step"] = "any"

    def clean_time_limit(self) -> float:
        value = self.cleaned_data["time_limit"]
        if not 0 < value <= settings.MAX_TRAINING_SECONDS:
            raise forms.ValidationError(
                f"must be more than 0 and at most {settings.MAX_TRAINING_SECONDS / 60:g} minutes."
            )
        return value

    def plan_options(self) -> dict[str, Any]:
        """Return the valid kinds, time limit, folds and evaluation, for the preview of the plan."""
        initial = {"kinds": self.fields["kinds"].initial, "time_limit": LONGEST_FIT, "folds": FOLDS, "check": "auto"}
        if not self.is_bound:
            return initial
        self.is_valid()
        nothing: dict[str, Any] = {} if self.data.getlist("kinds") else {"kinds": []}
        return initial | {name: v for name, v in self.cleaned_data.items() if name in initial and v} | nothing

    def request(self) -> dict[str, Any]:
        """Return the arguments for `actions.start`."""
        values = self.cleaned_data
        how: dict[str, Any] = {
            "auto": {"test_share": None, "nested": None},
            "held-out": {"test_share": HELD_OUT, "nested": False},
            "nested": {"test_share": 0.0, "nested": True},
        }[values["check"]]
        options = {name: values[name] for name in ("name", "kinds", "time_limit", "folds")}
        return options | how | {name: values.get(name) or "" for name in ("group", "time", "weight", "costs")}

    def fits(self) -> int:
        """Return the number of trees to train per candidate under the form's current choices."""
        wanted = self.plan_options()
        nested = evaluation(self.dataset)[1] if wanted["check"] == "auto" else wanted["check"] == "nested"
        return fits_of(wanted["folds"], nested)

    def check_words(self) -> str:
        """Describe what the choice `auto` means for these data."""
        _, nested = evaluation(self.dataset)
        if nested:
            return "These data have few rows, so none is held out: the choice is made again without each fold (nested folds)."
        rows = sum(held_out_of(n, HELD_OUT) for n in self.dataset.profile.get("class_counts", ()))
        return f"{rows:,} rows are held out of everything and measured once, when you choose a tree."
