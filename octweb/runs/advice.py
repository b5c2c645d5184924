"""Recommend a method for the user's answers in the form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octweb.datasets.models import Dataset
from trainer.certificate import Guarantee
from trainer.constraints import CONSTRAINTS
from trainer.constraints import NAMES as SIDE
from trainer.data.profile import OTHER
from trainer.methods.base import Method
from trainer.methods.capabilities import Asks, Group, Role
from trainer.registry import METHODS, method_for
from trainer.tree.describe import number_text
from trainer.tree.render.names import short_names

ALL_THRESHOLDS_DEPTH = 2
ALL_THRESHOLDS_CELLS = 250_000  # rows × numeric columns; up to here, a search over all thresholds takes minutes
MIN_MERGEABLE_CATEGORIES = 3  # with fewer categories, a group never has more than one
SLOPE = 0.4  # slope of the line in the example with two columns
# only some methods have these parameters; if the user sets one, those methods precede the recommendation
LIMITS = ("forbidden", "min_leaf", *SIDE)

QUESTION_WORDS = {
    Asks.ONE: "one column",
    Asks.TWO: "two columns",
    Asks.MANY: "many columns",
    Asks.GROUPS: "groups of categories",
}


@dataclass(frozen=True, kw_only=True)
class SplitKind:
    """A split type, as the form offers it. `refusal` says why it does not fit these data."""

    id: str
    title: str
    words: str
    refusal: str = ""


@dataclass(frozen=True, kw_only=True)
class AdviceAnswers:
    """The user's answers to the first questions of the form."""

    ask: str = "one"  # one, two, many or groups
    sure: str = "proved"  # quick or proved


def feature_columns(dataset: Dataset, kind: str = "") -> list[dict[str, Any]]:
    """Return the records of the feature columns, optionally of only one kind."""
    return [c for c in dataset.columns if c.get("role") == "feature" and (not kind or c["kind"] == kind)]


def kinds(dataset: Dataset) -> list[SplitKind]:
    """Return the four split types in order, each with an example from the data if there is one."""
    numbers = _by_cut(dataset, feature_columns(dataset, "numeric"))
    groups = _by_cut(dataset, feature_columns(dataset, "categorical"), least=MIN_MERGEABLE_CATEGORIES)
    few = "" if len(numbers) > 1 else "This needs two columns of numbers."
    group_columns = groups or [c for c in _by_cut(dataset, feature_columns(dataset)) if c.get("cut_category")]
    one = "age ≤ 40"
    if numbers:
        one = _cut_words(numbers[0])
    elif group_columns:
        one = _group_words(group_columns[0], 1)
    return [
        SplitKind(id="one", title="One column", words=f"“{one}?” Easiest to read and to defend."),
        SplitKind(
            id="two", title="Two columns", refusal=few,
            words=f"“{_line_words(*numbers[:2])}?” One line in a picture. Each line is proved the best." if not few else "",
        ),
        SplitKind(
            id="many", title="Many columns", refusal=few,
            words="A weighted sum, like a scorecard in each question. Few questions, hard to read.",
        ),
        SplitKind(
            id="groups", title="Groups of categories",
            refusal="" if groups else "This table has no column with three or more categories.",
            words=f"“{_group_words(groups[0], 2)}?” Several categories on one side." if groups else "",
        ),
    ]  # fmt: skip


def _by_cut(dataset: Dataset, columns: list[dict[str, Any]], *, least: int = 0) -> list[dict[str, Any]]:
    """Return the profiles of these columns with short names, by descending accuracy of their best split.

    Columns with fewer than `least` values in the training rows are left out. Empty counts as a value if it is a
    category.
    """
    names = {c["name"] for c in columns}
    found = [
        c for c in dataset.profile.get("columns") or () if c["name"] in names and int(c.get("distinct") or 0) >= least
    ]
    found.sort(key=lambda c: -c["cut_accuracy"])
    short = short_names([c["name"] for c in found[:2]])
    return [{**c, "short": name} for c, name in zip(found, [*short, *(c["name"] for c in found[2:])], strict=True)]


def _cut_words(column: Mapping[str, Any]) -> str:
    """Describe the best split on a numeric column."""
    return f"{column['short']} ≤ {number_text(column['cut'] or 0.0)}"


def _line_words(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Describe an example line in two columns, through the first one's threshold and the second one's median."""
    at = (first["cut"] or 0.0) + SLOPE * (second["median"] or 0.0)
    return f"{first['short']} + {SLOPE} × {second['short']} ≤ {number_text(at)}"


def _group_words(column: Mapping[str, Any], count: int) -> str:
    """Describe an example split on categories: the best one and, if `count` > 1, further ones."""
    best = column["cut_category"]
    others = [name for name in column["bars"] if name not in (best, OTHER)]
    return f"{column['short']} is {' or '.join(name for name in [best, *others][:count] if name)}"


def recommend(answers: AdviceAnswers, dataset: Dataset, values: Mapping[str, Any]) -> Method:
    """Return the method for the answers. `values` are the known parameters, including constraints."""
    role = Role(f"{answers.ask} {answers.sure}")
    return _one_column(dataset, values) if role is Role.ONE_PROVED else method_for(role)


def answers_of(method: Method) -> AdviceAnswers:
    """Return the answers that lead to a method."""
    return AdviceAnswers(ask=str(method.asks), sure="proved" if method.guarantee is Guarantee.TREE else "quick")


def wishes(answers: AdviceAnswers) -> tuple[str, ...]:
    """Return further parameters that the form offers, although only some methods have them.

    Setting one of them selects such a method.
    """
    if answers == AdviceAnswers(ask="one", sure="proved"):
        return ("forbidden", "min_leaf", *(p.name for p in CONSTRAINTS))
    return ()


def groups_of_methods() -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the methods by group, in the order of the table of methods."""
    rows: dict[str, list[dict[str, Any]]] = {str(group): [] for group in Group}
    for method in METHODS:
        rows[method.group].append(
            {"method": method, "asks": split_phrase(method), "good_for": method.good_for or method.size_hint}
        )
    return list(rows.items())


def split_phrase(method: Method) -> str:
    """Describe the split type of the method."""
    return QUESTION_WORDS[method.asks]


def _one_column(dataset: Dataset, values: Mapping[str, Any]) -> Method:
    """Return the method for a proved univariate tree, depending on the constraints and the size of the data."""
    usual = method_for(Role.ONE_PROVED)
    numbers = len(feature_columns(dataset, "numeric"))
    depth = values.get("depth")
    small = dataset.rows * numbers <= ALL_THRESHOLDS_CELLS
    if (
        numbers
        and small
        and depth is not None
        and int(depth) <= ALL_THRESHOLDS_DEPTH
        and not any(is_constraint_set(values, name) for name in LIMITS)
    ):
        return method_for(Role.ALL_THRESHOLDS)
    return usual


def is_constraint_set(values: Mapping[str, Any], name: str) -> bool:
    """Return whether `values` set the constraint of this name."""
    value = values.get(name)
    return value not in (None, "", "none", False) and not (name == "min_leaf" and int(value) <= 1)
