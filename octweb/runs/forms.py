"""Build the form of a new run from the method's declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms.utils import ErrorDict
from django.http import QueryDict

from octweb.core.forms import SaidForm
from octweb.core.limits import server_limits
from octweb.datasets.models import Dataset
from octweb.registry.models import TreeModel
from octweb.runs.advice import feature_columns
from octweb.runs.constraint_fields import (
    ColumnsField,
    CostsField,
    MinutesField,
    PairsField,
    PercentField,
    PickField,
    RecallField,
)
from octweb.runs.dependence import file_columns, propose_group, propose_time, propose_weight
from octweb.runs.thresholds import HELP as HELP_BINS
from octweb.runs.thresholds import BinCount, chooses, chosen_bins
from octweb.runs.words import CONSTRAINTS
from trainer.data.folds import MAX_HELD_OUT_SHARE, MOST_FOLDS
from trainer.methods.base import AUTO, MAX_TEXT, POSITIVE, Method, Parameter
from trainer.registry import METHODS

START = "p_warm_start"  # not a parameter of any method, but errors are reported as for one
MOST_PERCENT = round(100 * MAX_HELD_OUT_SHARE)
EVALUATION = (
    ("test", "Hold out a share of the rows"),
    ("folds", "Cross-validate"),
    ("none", "Only training rows"),
)
GROUP_QUESTION = "Do several rows belong to the same person or thing?"
TIME_QUESTION = "Are later rows what you want to predict?"
HELP_GROUP = "Then the accuracy is that on persons or things that the tree has not seen. No question asks this column."
HELP_TIME = "Then the tree trains on earlier rows, and the last rows check it."
WEIGHT_QUESTION = "Do some rows count more than others?"
HELP_WEIGHT = "Then a row counts as its weight: 2 counts twice, 0 not at all. No question asks this column."
TOUCHED = "touched"  # hidden inputs of this name list the fields in which the user has typed
SIZE = ("depth", "leaf_penalty", "min_leaf", "time_limit")
GOALS = ("goal", "positive")
COSTS = ("class_weight", "negative_weight")
ANSWER_COSTS = ("costs", "cost_unit", "column_price")
MOST_COST_CLASSES = 6  # with more classes, the form has no cell for each pair of true class and answer
MOST_GROUPS = 20  # a column with more values cannot form the groups of a fairness constraint
# labels and help texts of the fields at the top of the form
LABELS = {
    "depth": "Questions on a path, at most",
    "leaf_penalty": "A leaf must gain",
    "min_leaf": "Fewest rows in a leaf",
    "time_limit": "Time limit",
    "class_weight": "Mistakes cost",
    "goal": "What counts as good",
    "positive": "Class to find",
}
UNITS = {"leaf_penalty": "% of rows", "time_limit": "min", "depth": ""}
HELP = {
    "depth": "1 question: up to 2 answers. 2: up to 4. 3: up to 8.",
    "leaf_penalty": "Each extra answer must get at least this share of rows right that would otherwise be wrong. 0: the tree may fit these rows too closely.",
    "min_leaf": "Smaller leaves are not made.",
    "fairness": "Same share of “yes” for men and women: of everybody (parity, two classes), or of those who should get “yes” (opportunity).",
    "binarise": "Where may a column of numbers be cut? At a few evenly spread values (thresholds), into bands (buckets), or anywhere (all).",
    "bins": "More cut-off values can find better questions, and take longer.",
    "time_limit": "The best tree found by then is kept, with its gap.",
    "goal": "Correct rows suit most tables. The others help if one class is rare.",
    "positive": "For F1 only. Empty: the class with fewer training rows.",
    "class_weight": "Balanced: every class counts the same, no matter how many rows it has.",
}
PLACEHOLDER = "chosen by the data"
UNLIMITED = "no limit"
HELP_UNLIMITED = "Empty: no limit; then a leaf must gain a share of the rows above 0."
HELP_SIZE = "Empty: the data choose how many leaves help on rows that the training sets aside."
HELP_COSTS = (
    "What an answer costs in one row: a number, or a number times a column. Empty cells count as shown. With costs the "
    "tree of least cost is searched, and a leaf must save the given share of what the best single answer costs."
)
CHOICES = {
    "class_weight": {"none": "the same for every row", "balanced": "more in rare classes (balanced)"},
    "goal": {
        "auto": "correct rows, or the costs below if there are any",
        "accuracy": "correct rows",
        "costs": "the costs of answers",
        "balanced": "balanced accuracy: every class counts the same",
        "f1": "F1 of one class: found and rightly named",
        "mcc": "Matthews' coefficient (MCC)",
    },
}


class AutomaticField(forms.IntegerField):
    """Field for an integer. If it is empty or 'auto', the training chooses."""

    def to_python(self, value: Any) -> int | None:
        """Return the number, or None for "" and 'auto'."""
        return super().to_python(self.prepare_value(value))

    def prepare_value(self, value: Any) -> Any:
        """Return the value to show, "" for 'auto'."""
        return "" if value == AUTO else super().prepare_value(value)


def reported_only(parameter: Parameter) -> bool:
    """Return whether the parameter is the leaf penalty of a method whose tree does not depend on it."""
    return parameter.name == "leaf_penalty" and parameter.advanced


def field_of(parameter: Parameter, dataset: Dataset) -> forms.Field:
    """Return the form field of a declared parameter. `enqueue` checks the value again by the declaration."""
    is_reported = reported_only(parameter)  # this penalty does not mean what the field at the top means
    common: dict[str, Any] = {
        "label": parameter.label if is_reported else LABELS.get(parameter.name, parameter.label),
        "help_text": parameter.help if is_reported else _help_of(parameter),
        "required": parameter.default is not None
        and not (parameter.automatic or parameter.unlimited)
        and parameter.type not in {"boolean", "text"},
        "initial": _default(parameter),
    }
    field = _of_names(parameter, dataset, common) or _of_type(parameter, common)
    if parameter.automatic:
        field.widget.attrs["placeholder"] = PLACEHOLDER
    if parameter.unlimited:
        field.widget.attrs["placeholder"] = UNLIMITED
        field.help_text = f"{field.help_text} {HELP_UNLIMITED}"
    field.unit = UNITS.get(parameter.name, parameter.unit)
    field.advanced = parameter.advanced
    return field


def _help_of(parameter: Parameter) -> str:
    """Return the help text of a field."""
    text = HELP.get(parameter.name, parameter.help)
    return f"{HELP_SIZE} {text}" if parameter.name == "leaf_penalty" and parameter.automatic else text


def costs_field(dataset: Dataset, **common: Any) -> CostsField | None:
    """Return the field for costs by class and answer. None if the data have too few or too many classes."""
    classes = [str(c) for c in dataset.profile.get("classes") or ()]
    if not 2 <= len(classes) <= MOST_COST_CLASSES:
        return None
    numbers = [c["name"] for c in feature_columns(dataset, "numeric")]
    return CostsField(classes=classes, columns=numbers, **{**common, "help_text": HELP_COSTS})


def _of_names(parameter: Parameter, dataset: Dataset, common: dict[str, Any]) -> forms.Field | None:
    """Return the picker for a parameter that names columns or classes. None for other parameters."""
    classes = [str(c) for c in dataset.profile.get("classes") or ()]
    columns = [c["name"] for c in feature_columns(dataset)]
    names_options = {**common, "help_text": ""}
    if parameter.name == "recall":
        return RecallField(
            classes=classes, **{**names_options, "help_text": "The share of a class that must be found. Empty: any."}
        )
    if parameter.name == "costs":
        return costs_field(dataset, **common)
    if parameter.name == "forbidden":
        return ColumnsField(columns=columns, **names_options)
    if parameter.name == "forbidden_pairs":
        words = ("column", "second column")
        return PairsField(first=columns, second=columns, join="+", words=words, **names_options)
    if parameter.name == "monotone":
        numbers = [c["name"] for c in feature_columns(dataset, "numeric")]
        pair_options = {
            **names_options,
            "help_text": "Example: a higher income must never make the answer worse. Classes are ordered as listed.",
        }
        return PairsField(first=numbers, second=["up", "down"], join=" ", words=("column", "direction"), **pair_options)
    if parameter.name == "fairness_column":
        groups = [c["name"] for c in feature_columns(dataset) if int(c.get("distinct") or 0) <= MOST_GROUPS]
        return PickField(names=groups, none="choose a column", **common)
    if parameter.name in ("fairness_class", "positive"):
        first = "the rarer class" if parameter is POSITIVE else "the last class"
        return PickField(names=classes, none=first, **common)
    return None


def _of_type(parameter: Parameter, common: dict[str, Any]) -> forms.Field:
    if parameter.name == "leaf_penalty":
        field: forms.Field = PercentField(min_value=0, **common)
        field.widget.attrs |= {"step": "any"}
        return field
    if parameter.name == "time_limit":
        field = MinutesField(min_value=0, **common)
        field.widget.attrs |= {"step": "any"}
        return field
    if parameter.type == "boolean":
        return forms.BooleanField(**common)
    if parameter.type == "choice":
        words = CHOICES.get(parameter.name, {})
        return forms.ChoiceField(choices=[(c, words.get(c, c)) for c in parameter.choices], **common)
    if parameter.type == "text":
        return forms.CharField(max_length=MAX_TEXT, **common)
    if parameter.type == "integer":
        low = _is_whole_number(parameter.minimum)
        high = _is_whole_number(_server_limit(parameter))
        kind = AutomaticField if parameter.automatic else forms.IntegerField
        return kind(min_value=low, max_value=high, **common)
    field = forms.FloatField(min_value=parameter.minimum, max_value=_server_limit(parameter), **common)
    field.widget.attrs["step"] = "any"
    return field


def dependence_fields(dataset: Dataset) -> dict[str, forms.Field]:
    """Return the fields for groups, time and weights of rows, each with a proposal if a column looks suitable."""
    columns = file_columns(dataset)
    questions = (
        ("group", GROUP_QUESTION, "no: every row is on its own", HELP_GROUP, propose_group(dataset)),
        ("time", TIME_QUESTION, "no: rows have no order", HELP_TIME, propose_time(dataset)),
        ("weight", WEIGHT_QUESTION, "no: every row counts the same", HELP_WEIGHT, propose_weight(dataset)),
    )
    return {
        name: PickField(
            names=columns,
            none=none,
            label=label,
            help_text=help_text if proposal is None else f"{help_text} {proposal.reason}",
            required=False,
        )
        for name, label, none, help_text, proposal in questions
    }


class RunForm(SaidForm):
    """Form of a new run: name, evaluation and method parameters.

    `wishes` names parameters of other methods that the form also offers.
    """

    name = forms.CharField(
        max_length=200,
        required=False,
        label="Name",
        help_text="If left empty: data set, method, depth, and the settings that were changed.",
    )
    evaluation = forms.ChoiceField(
        choices=EVALUATION, initial="test", label="Accuracy on unseen rows", widget=forms.RadioSelect
    )
    test_percent = forms.IntegerField(
        min_value=1, max_value=MOST_PERCENT, initial=25, label="Held-out share", required=False
    )
    folds = forms.IntegerField(min_value=2, max_value=MOST_FOLDS, initial=5, label="Folds", required=False)

    def __init__(
        self, *args: Any, user: Any, dataset: Dataset, method: Method, wishes: tuple[str, ...] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.dataset = dataset
        self.method = method
        self.fields |= dependence_fields(dataset)
        for parameter in offered_parameters(method, wishes):
            self.fields[f"p_{parameter.name}"] = field_of(parameter, dataset)
        if chooses(method):
            self.fields["p_bins"].help_text = HELP_BINS
        if method.warm_start:
            field = forms.ModelChoiceField(
                queryset=TreeModel.objects.kept().filter(owner=user, dataset=dataset).select_related("family"),
                required=False,
                label="Begin with",
                help_text="A tree that you have for this data set; the search then looks only for better ones.",
                empty_label="no known tree",
            )
            field.advanced = True
            self.fields[START] = field

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("evaluation") == "test" and not values.get("test_percent") and "test_percent" not in self.errors:
            self.add_error("test_percent", f"Say what percentage of the rows to hold out, from 1 to {MOST_PERCENT}.")
        if values.get("evaluation") == "folds" and not values.get("folds") and "folds" not in self.errors:
            self.add_error("folds", f"Say how many folds, from 2 to {MOST_FOLDS}.")
        return values

    def request(self) -> dict[str, Any]:
        """Return arguments for `runs.actions.enqueue`, without owner and data set. The form must be valid."""
        values = self.cleaned_data
        evaluation = values["evaluation"]
        parameters = {p.name: values.get(f"p_{p.name}") for p in self.method.parameters}
        return {
            "method": self.method.id,
            "parameters": parameters,
            "test_share": values["test_percent"] / 100 if evaluation == "test" else 0.0,
            "folds": values["folds"] if evaluation == "folds" else 0,
            "group": values.get("group") or "",
            "time": values.get("time") or "",
            "weight": values.get("weight") or "",
            "name": values["name"],
            "warm_start": values.get(START),
        }

    def chosen_bins(self, values: Mapping[str, Any]) -> BinCount:
        """Return the binarisation chosen for this data set if the user enters no number of thresholds."""
        return chosen_bins(dataset=self.dataset, method=self.method, values=values)

    def so_far(self) -> dict[str, Any]:
        """Return the valid values so far, by parameter or field name, and discard the errors."""
        self.full_clean()
        values = dict(self.cleaned_data)
        self._errors = ErrorDict()
        return {name.removeprefix("p_"): value for name, value in values.items()}

    def add_parameter_errors(self, errors: Mapping[str, str]) -> None:
        """Add the sentences of a ParameterError to their fields or, without a field, to the form."""
        for name, text in errors.items():
            field = next((form_field for form_field in (f"p_{name}", name) if form_field in self.fields), None)
            self.add_error(field, text)

    def _named(self, names: tuple[str, ...]) -> list[forms.BoundField]:
        return [self[f"p_{name}"] for name in names if f"p_{name}" in self.fields]

    def size_fields(self) -> list[forms.BoundField]:
        return self._named(tuple(n for n in SIZE if (p := self.method.parameter(n)) is None or not reported_only(p)))

    def cost_fields(self) -> list[forms.BoundField]:
        return self._named((*GOALS, *COSTS) if self.method.parameter("goal") else COSTS)

    def states_goal(self) -> bool:
        """Return whether a goal or a weight of classes differs from its default."""
        fields = {field.name.removeprefix("p_"): field.value() for field in self.cost_fields()}
        defaults = {name: getattr(self.method.parameter(name), "default", None) for name in fields}
        return any(str(value or "") != str(defaults[name] or "") for name, value in fields.items())

    def answer_cost_fields(self) -> list[forms.BoundField]:
        return self._named(ANSWER_COSTS)

    def states_costs(self) -> bool:
        """Return whether a cost, a unit or a price of columns was typed."""
        values = [field.value() for field in self.answer_cost_fields()]
        return any(any(value) if isinstance(value, list) else bool(value) for value in values)

    def constraint_fields(self) -> list[forms.BoundField]:
        return self._named(CONSTRAINTS)

    def main_fields(self) -> list[forms.BoundField]:
        return [f for f in self._rest() if not getattr(f.field, "advanced", False)]

    def advanced_fields(self) -> list[forms.BoundField]:
        return [f for f in self._rest() if getattr(f.field, "advanced", False)]

    def _rest(self) -> list[forms.BoundField]:
        placed = {
            f.name
            for f in (*self.size_fields(), *self.cost_fields(), *self.answer_cost_fields(), *self.constraint_fields())
        }
        return [self[f] for f in self.fields if f.startswith("p_") and f not in placed]


def offered_parameters(method: Method, wishes: tuple[str, ...]) -> list[Parameter]:
    """Return the parameters of the method, and those of other methods named in `wishes`."""
    parameters = {p.name: p for p in method.parameters}
    for other in METHODS:
        for parameter in other.parameters:
            if parameter.name in wishes:
                parameters.setdefault(parameter.name, parameter)
    return list(parameters.values())


def carry_values(data: QueryDict, form: RunForm, before: RunForm | None) -> QueryDict:
    """Return the values typed for the previous method, as data for the form of another method.

    Fields of both methods keep typed values. An untouched default becomes the default of the new method. Fields that
    only the new method has begin with their defaults, unless a typed value was kept for them.
    """
    out = data.copy()
    touched = touched_fields(data, before)
    out.setlist(TOUCHED, touched)
    for name, field in form.fields.items():
        if not name.startswith("p_"):
            continue
        mine = _display_default(form, name)
        old = None if before is None or name not in before.fields else _display_default(before, name)
        if old is None:
            fresh = _begins_anew(field, mine, data, name, touched)
        else:
            fresh = name not in touched and not isinstance(old, list) and data.get(name) == old != mine
        if fresh:
            _set_value(out, name, mine)
    return out


def _begins_anew(field: forms.Field, mine: Any, data: QueryDict, name: str, touched: list[str]) -> bool:
    """Return whether a field that the previous method does not have begins with its default."""
    if isinstance(field, forms.BooleanField) or field.widget.value_omitted_from_data(data, {}, name):
        return True
    # the user left the field empty for a method that chooses the value itself
    if field.required and data.get(name) == "":
        return True
    # the value is the default of a method that was chosen in between
    return isinstance(mine, str) and name in data and name not in touched


def touched_fields(data: QueryDict, before: RunForm | None) -> list[str]:
    """Return the fields in which the user has typed, now or for an earlier method. Their value may equal a default."""
    fields = (
        {}
        if before is None
        else {n: _display_default(before, n) for n in before.fields if n.startswith("p_") and n in data}
    )
    changed = {n for n, default in fields.items() if isinstance(default, str) and data.get(n) != default}
    return sorted(changed | {n for n in data.getlist(TOUCHED) if n.startswith("p_") and n in data})


def hidden_values(data: QueryDict, form: RunForm) -> list[tuple[str, str]]:
    """Return the values typed for other methods, as hidden fields. Going back to those methods then loses nothing."""
    prefixes = [*form.fields, *(f"{name}-" for name in form.fields)]
    return [
        (name, value)
        for name in data
        if name.startswith("p_")
        and name not in form.fields
        and not any(name.startswith(s) for s in prefixes if s[-1] == "-")
        for value in data.getlist(name)
    ]


def _display_default(form: RunForm, name: str) -> Any:
    """Return the default of a field in the form in which the page shows it."""
    value = form.fields[name].prepare_value(form.fields[name].initial)
    if value is None:
        return ""
    return value if isinstance(value, list | bool) else str(value)


def _set_value(data: QueryDict, name: str, value: Any) -> None:
    if value is False or value is None:
        data.pop(name, None)
    else:
        data[name] = "on" if value is True else value


def _default(parameter: Parameter) -> Any:
    """Return the declared default, at most the server's limit. None if the training chooses."""
    if parameter.automatic:
        return None
    limit = server_limits().get(parameter.name)
    return parameter.default if limit is None or parameter.default is None else min(parameter.default, limit)


def _server_limit(parameter: Parameter) -> float | None:
    limit = server_limits().get(parameter.name)
    if limit is None:
        return parameter.maximum
    return limit if parameter.maximum is None else min(limit, parameter.maximum)


def _is_whole_number(value: float | None) -> int | None:
    return None if value is None else int(value)
