"""The form of a new run, made from the declaration of its method."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from octweb.datasets.models import Dataset
from octweb.registry.models import TreeModel
from trainer.data.folds import MOST_FOLDS, MOST_HELD_OUT
from trainer.method import MAX_TEXT, Method, Parameter

START = "p_warm_start"  # beside the parameters of the method, and checked like one of them
MOST_PERCENT = round(100 * MOST_HELD_OUT)
EVALUATION = (
    ("test", "Hold out a share of the rows"),
    ("folds", "Cross-validate"),
    ("none", "Only training rows"),
)


def field_of(parameter: Parameter) -> forms.Field:
    """A form field for a declared parameter; the declaration's own check runs again when the run is queued."""
    common: dict[str, Any] = {
        "label": parameter.label,
        "help_text": parameter.help,
        "required": parameter.default is not None and parameter.type not in {"boolean", "text"},
        "initial": parameter.default,
    }
    field: forms.Field
    if parameter.type == "boolean":
        field = forms.BooleanField(**common)
    elif parameter.type == "choice":
        field = forms.ChoiceField(choices=[(c, c) for c in parameter.choices], **common)
    elif parameter.type == "text":
        field = forms.CharField(max_length=MAX_TEXT, **common)
    elif parameter.type == "integer":
        low, high = _whole(parameter.minimum), _whole(_server_limit(parameter))
        field = forms.IntegerField(min_value=low, max_value=high, **common)
    else:
        field = forms.FloatField(min_value=parameter.minimum, max_value=_server_limit(parameter), **common)
        field.widget.attrs["step"] = "any"
    field.unit = parameter.unit  # type: ignore[attr-defined]
    field.advanced = parameter.advanced  # type: ignore[attr-defined]
    return field


class RunForm(forms.Form):
    """Data set, evaluation and the method's own parameters; nothing that the method does not take."""

    name = forms.CharField(max_length=200, required=False, label="Name", help_text="Left empty: data set and method.")
    evaluation = forms.ChoiceField(
        choices=EVALUATION, initial="test", label="Accuracy on unseen rows", widget=forms.RadioSelect
    )
    test_percent = forms.IntegerField(
        min_value=1, max_value=MOST_PERCENT, initial=25, label="Held-out share", required=False
    )
    folds = forms.IntegerField(min_value=2, max_value=MOST_FOLDS, initial=5, label="Folds", required=False)

    def __init__(self, *args: Any, user: Any, dataset: Dataset, method: Method, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dataset = dataset
        self.method = method
        for parameter in method.parameters:
            self.fields[f"p_{parameter.name}"] = field_of(parameter)
        if method.warm_start:
            field = forms.ModelChoiceField(
                queryset=TreeModel.objects.filter(owner=user, dataset=dataset).select_related("family"),
                required=False,
                label="Begin with",
                help_text="The tree of a model of yours on these data; only better ones are then looked for.",
                empty_label="no known tree",
            )
            field.advanced = True  # type: ignore[attr-defined]
            self.fields[START] = field

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("evaluation") == "test" and not values.get("test_percent") and "test_percent" not in self.errors:
            self.add_error("test_percent", f"Say how many percent of the rows to hold out, from 1 to {MOST_PERCENT}.")
        if values.get("evaluation") == "folds" and not values.get("folds") and "folds" not in self.errors:
            self.add_error("folds", f"Say how many folds, from 2 to {MOST_FOLDS}.")
        return values

    def request(self) -> dict[str, Any]:
        """Arguments for `runs.enqueue`."""
        values = self.cleaned_data
        evaluation = values["evaluation"]
        return {
            "method": self.method.id,
            "parameters": {p.name: values.get(f"p_{p.name}") for p in self.method.parameters},
            "test_share": values["test_percent"] / 100 if evaluation == "test" else 0.0,
            "folds": values["folds"] if evaluation == "folds" else 0,
            "name": values["name"],
            "warm_start": values.get(START),
        }

    def add_parameter_errors(self, errors: dict[str, str]) -> None:
        """Show the sentences of a ParameterError at their fields."""
        for name, text in errors.items():
            self.add_error(f"p_{name}" if f"p_{name}" in self.fields else None, text)

    def main_fields(self) -> list[forms.BoundField]:
        return [self[f] for f in self.fields if f.startswith("p_") and not getattr(self.fields[f], "advanced", False)]

    def advanced_fields(self) -> list[forms.BoundField]:
        return [self[f] for f in self.fields if f.startswith("p_") and getattr(self.fields[f], "advanced", False)]


def _server_limit(parameter: Parameter) -> float | None:
    limits = {
        "time_limit": settings.MAX_TRAINING_SECONDS,
        "memory_limit": settings.MAX_TRAINING_MB,
        "threads": settings.MAX_TRAINING_THREADS,
    }
    limit = limits.get(parameter.name)
    if limit is None:
        return parameter.maximum
    return limit if parameter.maximum is None else min(limit, parameter.maximum)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
