"""Provide form fields for constraints: pickers and numbers instead of text.

Each field cleans to the text that the trainer parses, such as 'yes: 0.9; no: 0.8', and takes that text as its initial
value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from trainer.data.cost_text import NUMBER, stated_costs
from trainer.data.rewards import SIGNED, stated_rewards
from trainer.methods.base import AUTO

SPARE_ROWS = 1
MOST_ROWS = 50
MAX_LISTED_CLASSES = 40  # maximum number of classes with their own field


class PercentField(forms.FloatField):
    """Field for a share between 0 and 1, typed and shown in percent."""

    def prepare_value(self, value: Any) -> Any:
        if value == AUTO:  # the training chooses the value
            return ""
        if value is None or value == "" or isinstance(value, str):
            return value
        return f"{float(Decimal(repr(float(value))) * 100):.12g}"

    def to_python(self, value: Any) -> float | None:
        return None if value in (*self.empty_values, AUTO) else _hundredth(value)

    def validate(self, value: Any) -> None:
        super().validate(value)
        if value is not None and not 0 <= value < 1:
            raise forms.ValidationError("must be a share from 0 to below 100 %.")

    def run_validators(self, value: Any) -> None:
        """Do nothing: `validate` has checked the limits of the share."""


class MinutesField(forms.FloatField):
    """Field for seconds, typed and shown in minutes."""

    def prepare_value(self, value: Any) -> Any:
        if value is None or value == "" or isinstance(value, str):
            return value
        return f"{float(value) / 60:.6g}"

    def to_python(self, value: Any) -> float | None:
        number = super().to_python(value)
        return None if number is None else round(number * 60, 6)

    def run_validators(self, value: Any) -> None:
        """Do nothing: the declaration of the parameter checks its limits, in seconds."""


class ProjectTemplate:
    """Mixin for widgets whose template is among the page templates."""

    def _render(self, template_name: str, context: dict[str, Any], renderer: Any = None) -> str:
        return mark_safe(render_to_string(template_name, context))  # noqa: S308  (a template, which escapes its context)


class RecallWidget(ProjectTemplate, forms.Widget):
    """Widget with a percentage for each class."""

    template_name = "runs/widgets/recall.html"

    def __init__(self, classes: Sequence[str]) -> None:
        super().__init__()
        self.classes = list(classes)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        typed = value if isinstance(value, list) else _recalls(value, self.classes)
        context["widget"]["rows"] = [
            {"name": f"{name}-{k}", "label": label, "value": text}
            for k, (label, text) in enumerate(zip(self.classes, typed, strict=True))
        ]
        return context

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str] | str:
        if name in data:
            return data[name]
        return [data.get(f"{name}-{k}", "").strip() for k in range(len(self.classes))]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-0" not in data


class RecallField(forms.Field):
    """Field for minimum recalls by class. Cleans to a text such as 'yes: 0.9; no: 0.8'."""

    def __init__(self, *, classes: Sequence[str], **kwargs: Any) -> None:
        super().__init__(widget=RecallWidget(classes), **kwargs)
        self.classes = list(classes)

    def clean(self, value: Any) -> str:
        if not isinstance(value, list):
            return str(value or "")
        parts = []
        for label, text in zip(self.classes, value, strict=True):
            if not text:
                continue
            share = _hundredth(text)
            if not 0 <= share <= 1:
                raise forms.ValidationError(f"“{label}”: {text} is not between 0 and 100 %. Write for example 90.")
            _refuse(label, ";", "a minimum recall")
            parts.append(f"{label}: {share:.12g}")
        return "; ".join(parts)


def _mark_refused(cells: Sequence[tuple[dict[str, Any], re.Pattern[str]]]) -> None:
    """Mark the cells whose number has not its form; all filled cells if each number has, since then a column is refused."""
    filled = [(cell, form) for cell, form in cells if cell["value"]]
    refused = [cell for cell, form in filled if not form.fullmatch(cell["value"])]
    for cell in refused or [cell for cell, _ in filled]:
        cell["refused"] = True


class CostsWidget(ProjectTemplate, forms.Widget):
    """Widget with a table of costs by true class and answer, and a reward for each answer.

    Each cell is a number, optionally times a column.
    """

    template_name = "runs/widgets/costs.html"

    def __init__(self, classes: Sequence[str], columns: Sequence[str] = ()) -> None:
        super().__init__()
        self.classes = list(classes)
        self.columns = list(columns)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        *typed, unit = value if isinstance(value, list) else self._stated(str(value or ""))
        texts = iter(typed)
        context["widget"] |= {"classes": self.classes, "columns": self.columns, "unit": unit}
        context["widget"]["rows"] = [
            {
                "label": true,
                "cells": [
                    self._cell(f"{name}-{i}-{j}", next(texts), f"Cost where {true} is answered {answer}")
                    | {"usual": int(i != j)}
                    for j, answer in enumerate(self.classes)
                ],
            }
            for i, true in enumerate(self.classes)
        ]
        rewards = [
            self._cell(f"{name}-reward-{j}", next(texts), f"Reward of the answer {answer}")
            for j, answer in enumerate(self.classes)
        ]
        context["widget"] |= {"rewards": rewards, "earns": any(cell["value"] for cell in rewards)}
        if (attrs or {}).get("aria-invalid"):
            cells = [cell for row in context["widget"]["rows"] for cell in row["cells"]]
            _mark_refused([(cell, NUMBER) for cell in cells] + [(cell, SIGNED) for cell in rewards])
        return context

    def _cell(self, name: str, text: str, label: str) -> dict[str, Any]:
        number, _, column = (part.strip() for part in text.partition("*"))
        if text in self.columns:
            number = "1"
            column = text
        if column not in self.columns:
            number = text
            column = ""
        return {"name": name, "label": label, "value": number, "column": column}

    def _stated(self, text: str) -> list[str]:
        """Return the costs by true class and answer, the rewards by answer, and the unit, in one list of texts."""
        earned = stated_rewards(text)
        if earned is not None:
            values, unit = earned
            return [""] * len(self.classes) ** 2 + [values.get(answer, "") for answer in self.classes] + [unit]
        costs, unit = stated_costs(text, tuple(self.classes))
        typed = [costs.get((true, answer), "") for true in self.classes for answer in self.classes]
        return [*typed, *[""] * len(self.classes), unit]

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str] | str:
        if name in data:
            return data[name]
        places = range(len(self.classes))
        cells = [f"{name}-{i}-{j}" for i in places for j in places] + [f"{name}-reward-{j}" for j in places]
        return [*(self._text(data, cell) for cell in cells), data.get(f"{name}-unit", "")]

    @staticmethod
    def _text(data: Any, cell: str) -> str:
        number = data.get(cell, "").strip()
        column = data.get(f"{cell}-column", "")
        return f"{number or 1}*{column}" if column else number

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-0-0" not in data


class CostsField(forms.Field):
    """Field for costs by true class and answer, or rewards by answer.

    Cleans to JSON. Empty cells keep the usual cost.
    """

    def __init__(self, *, classes: Sequence[str], columns: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(widget=CostsWidget(classes, columns), **kwargs)
        self.classes = list(classes)

    def clean(self, value: Any) -> str:
        if not isinstance(value, list):
            return str(value or "")
        *typed, unit = value
        texts = iter(typed)
        table = {true: {answer: text for answer in self.classes if (text := next(texts))} for true in self.classes}
        costs: dict[str, Any] = {true: row for true, row in table.items() if row}
        rewards = {answer: text for answer in self.classes if (text := next(texts))}
        if costs and rewards:
            raise forms.ValidationError("Give costs or rewards, not both: empty one of the two tables.")
        if rewards:
            return json.dumps({"unit": unit, "rewards": rewards} if unit else {"rewards": rewards})
        if not costs:
            return ""
        return json.dumps({"unit": unit, "costs": costs} if unit else costs)


class ColumnsWidget(ProjectTemplate, forms.CheckboxSelectMultiple):
    """Widget with checkboxes for columns."""

    template_name = "runs/widgets/columns.html"

    def format_value(self, value: Any) -> list[str]:
        return super().format_value(value.split("; ") if isinstance(value, str) else value)


class ColumnsField(forms.MultipleChoiceField):
    """Field for columns. Cleans to the text 'a; b'."""

    def __init__(self, *, columns: Sequence[str], **kwargs: Any) -> None:
        kwargs.pop("max_length", None)
        super().__init__(choices=[(c, c) for c in columns], widget=ColumnsWidget(), **kwargs)

    def to_python(self, value: Any) -> list[str]:
        return super().to_python(value)

    def clean(self, value: Any) -> str:
        if isinstance(value, str):
            value = [v.strip() for v in value.split(";") if v.strip()]
        columns = super().clean(value)
        for name in columns:
            _refuse(name, ";", "this list")
        return "; ".join(columns)


class PairsWidget(ProjectTemplate, forms.Widget):
    """Widget with rows of two pickers: two columns, or a column and a direction."""

    template_name = "runs/widgets/pairs.html"

    def __init__(self, first: Sequence[str], second: Sequence[str], *, join: str, words: tuple[str, str]) -> None:
        super().__init__()
        self.first = list(first)
        self.second = list(second)
        self.join = join
        self.words = words

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        pairs = value if isinstance(value, list) else self.pairs(value)
        pairs = [p for p in pairs if any(p)] + [("", "")] * SPARE_ROWS
        context["widget"] |= {
            "first": self.first,
            "second": self.second,
            "words": self.words,
            "rows": [
                {"name": f"{name}-{i}", "number": i + 1, "first": a, "second": b} for i, (a, b) in enumerate(pairs)
            ],
        }
        return context

    def pairs(self, text: str | None) -> list[tuple[str, str]]:
        """Parse a text such as 'age + income; sex + region' into pairs."""
        pairs = []
        for item in (text or "").split(";"):
            a, _, b = item.strip().rpartition(self.join) if self.join == " " else item.strip().partition(self.join)
            if a.strip() or b.strip():
                pairs.append((a.strip(), b.strip()))
        return pairs

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[tuple[str, str]] | str:
        if name in data:
            return data[name]
        pairs = []
        for i in range(MOST_ROWS):
            if f"{name}-{i}-a" not in data:
                break
            pairs.append((data.get(f"{name}-{i}-a", ""), data.get(f"{name}-{i}-b", "")))
        return pairs

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-0-a" not in data


class PairsField(forms.Field):
    """Field for pairs. Cleans to the text that the trainer parses, such as 'age + income; sex + region'."""

    def __init__(
        self, *, first: Sequence[str], second: Sequence[str], join: str, words: tuple[str, str], **kwargs: Any
    ):
        super().__init__(widget=PairsWidget(first, second, join=join, words=words), **kwargs)
        self.join = join
        self.words = words
        self.known = (set(first), set(second))

    def clean(self, value: Any) -> str:
        if not isinstance(value, list):
            return str(value or "")
        parts = []
        for number, (a, b) in enumerate(value, 1):
            if not a and not b:
                continue
            if not a or not b:
                missing = self.words[1] if a else self.words[0]
                raise forms.ValidationError(f"Line {number}: choose the {missing}, too, or clear the line.")
            if a not in self.known[0] or b not in self.known[1]:
                raise forms.ValidationError(
                    f"Line {number}: '{a}' with '{b}' cannot be chosen. Choose from the two lists."
                )
            if a == b:
                raise forms.ValidationError(f"Line {number} names the column “{a}” twice. Choose two columns.")
            for name in (a, b):
                _refuse(name, ";" if self.join == " " else ";+", "this list")
            parts.append(f"{a}{self.join if self.join == ' ' else f' {self.join} '}{b}")
        return "; ".join(parts)


class PickField(forms.ChoiceField):
    """Field for one column or class, or none."""

    def __init__(self, *, names: Sequence[str], none: str, **kwargs: Any) -> None:
        kwargs.pop("max_length", None)
        super().__init__(choices=[("", none), *((n, n) for n in names)], **kwargs)


def _recalls(text: Any, classes: Sequence[str]) -> list[str]:
    """Return the percentage of each class in a text such as 'yes: 0.9', or "" for classes that it does not name."""
    shares = {}
    for item in str(text or "").split(";"):
        name, _, share = item.rpartition(":")
        shares[name.strip()] = share.strip()
    out = []
    for label in classes:
        try:
            out.append(f"{float(Decimal(shares[label]) * 100):.12g}" if shares.get(label) else "")
        except InvalidOperation:
            out.append("")
    return out


def _hundredth(value: Any) -> float:
    """Convert a typed percentage to a share, computed in decimals. Raises ValidationError."""
    text = str(value).strip().rstrip("%").strip().replace(",", ".")
    try:
        share = Decimal(text) / 100
    except InvalidOperation as error:
        raise forms.ValidationError(f"'{str(value)[:40]}' is not a number. Write for example 90.") from error
    if not share.is_finite():
        raise forms.ValidationError(f"'{str(value)[:40]}' is not a number. Write for example 90.")
    return float(share)


def _refuse(name: str, signs: str, where: str) -> None:
    if sign := next((s for s in signs if s in name), ""):
        raise forms.ValidationError(
            f"“{name}” has the sign {sign} in its name and cannot stand in {where}. Rename it in the file and upload it again."
        )
