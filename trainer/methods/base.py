"""Declare methods and parameters.

Command line, form, API and documentation are made from the declarations. A method is one file of a family with a `METHOD`, a line in
`trainer.registry.METHODS`, a page in docs/methods and a test. Its `solve(problem, settings, monitor)` runs in a worker thread, reports
to the monitor, and returns a Solution.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from trainer.certificate import Guarantee, Status
from trainer.data.column_prices import read_column_prices
from trainer.data.cost_text import read_costs
from trainer.data.encoding import Encoding, Scheme
from trainer.data.problem import Problem, SettingNames, read_extra_thresholds
from trainer.dtypes import BitArray
from trainer.errors import ParameterError, TrainerError, list_names
from trainer.goal import GOAL_NAMES, Goal, count_goal
from trainer.methods.capabilities import (
    USUAL_EXAMPLE,
    Asks,
    Candidate,
    Example,
    Group,
    ProofKind,
    Role,
    WorkbenchSupport,
)
from trainer.methods.cost import UNKNOWN_COST, CostModel, ProblemSize
from trainer.methods.monitor import Monitor
from trainer.milo import BACKENDS
from trainer.tree.nodes import Draft
from trainer.tree.numbers import count_words, percent_text

Value = int | float | bool | str | None
AUTO = "auto"  # the training chooses a parameter with this value
NO_LIMIT = "none"  # text form of a limit that does not apply, whose value is None
MAX_TEXT = 10_000  # limit on the characters of a parameter
# limits on a number that is parsed exactly
MAX_DIGITS = 60
MAX_EXPONENT = 400
# added to the reason for a missing proof
CHECKER_SEARCHES = "The checker can still verify small search spaces by enumeration."
Type = Literal["integer", "number", "boolean", "choice", "text"]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One option of a method: name as in Python (`leaf_penalty`), type, range, default, and a sentence of help.

    Parameters
    ----------
    default : value
        None means "no limit" or "chosen by the method"; `help` says which.
    flag : bool
        Whether it has a command line flag of its own; others are set with `--set name=value`.
    check : callable, optional
        Checks the value against the other settings and the names in the data, before a run is queued. Raises ParameterError.
    restricts : callable, optional
        Returns a text for each restriction of the search space, for the scope.
    sentences : callable, optional
        Returns sentences for the summary of a new run, whose values may be incomplete.
    one_leaf : bool
        Whether a tree of one leaf always satisfies it.
    counts_rows : bool
        Whether it counts rows. A search with costs counts copies of rows, so it must then have its default.
    automatic : bool
        Whether it accepts 'auto', a value that the training chooses.
    unlimited : bool
        Whether it accepts 'none', no limit; its value is then None.
    as_text : callable, optional
        Writes a list, tuple or mapping as its text.
    """

    name: str
    type: Type
    default: Value
    label: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    flag: bool = False
    advanced: bool = False
    check: Check | None = None
    restricts: Restricts | None = None
    sentences: Sentences | None = None
    one_leaf: bool = False
    counts_rows: bool = False
    automatic: bool = False
    unlimited: bool = False
    as_text: Callable[[Any], str] | None = None

    def parse(self, raw: Any) -> Value:
        """Parse `raw` (text or JSON). Raises ValueError with the allowed values."""
        if self.automatic and (raw is None or str(raw).strip() in ("", AUTO)):
            return AUTO
        if self.unlimited and (raw is None or str(raw).strip().lower() == NO_LIMIT):
            return None
        if raw is None or (isinstance(raw, str) and raw.strip() == "" and self.type != "text"):
            if self.default is None:
                return None
            raise ValueError(f"a value is needed ({self.describe_allowed()})")
        if self.type == "boolean":
            return _boolean(raw)
        if self.type == "choice":
            if str(raw) not in self.choices:
                raise ValueError(f"'{raw}' is not one of {', '.join(self.choices)}")
            return str(raw)
        if self.type == "text":
            raw = self._text(raw)
            if len(raw) > MAX_TEXT:
                raise ValueError(f"the text has {len(raw):,} characters, but at most {MAX_TEXT:,} are possible")
            return raw
        number = self._number(raw)
        low = self.minimum
        high = self.maximum
        if (low is not None and number < low) or (high is not None and number > high):
            raise ValueError(f"{raw} is out of range ({self.describe_allowed()})")
        return number

    def _text(self, raw: Any) -> str:
        if self.as_text is not None and isinstance(raw, list | tuple | Mapping):
            return self.as_text(raw)
        return _json_text(raw) if isinstance(raw, Mapping) else str(raw)

    def _number(self, raw: Any) -> int | float:
        if isinstance(raw, bool):
            raise ValueError(f"{raw} is not a number")
        try:
            number = float(raw)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"'{raw}' is not a number ({self.describe_allowed()})") from None
        if not math.isfinite(number):
            raise ValueError(f"'{raw}' is not a finite number ({self.describe_allowed()})")
        if self.type == "number":
            return number
        if number != int(number):
            raise ValueError(f"{raw} is not a whole number ({self.describe_allowed()})")
        return int(number)

    def describe_allowed(self) -> str:
        """Return the allowed values in words."""
        words = [AUTO] * self.automatic + [NO_LIMIT] * self.unlimited
        return ", or ".join([self._describe_allowed(), *words])

    def _describe_allowed(self) -> str:
        if self.type == "choice":
            return "one of " + ", ".join(self.choices)
        if self.type == "boolean":
            return "true or false"
        kind = "a whole number" if self.type == "integer" else "a number"
        if self.type == "text":
            return "text"
        if self.minimum is not None and self.maximum is not None:
            return f"{kind} from {self.minimum:,.10g} to {self.maximum:,.10g}"
        if self.minimum is not None:
            return f"{kind} of at least {self.minimum:,.10g}"
        return kind

    def to_json(self) -> dict[str, Any]:
        """Return the declaration for the API and `methods --json`."""
        return {
            "name": self.name,
            "type": self.type,
            "default": self.default,
            "label": self.label,
            "help": self.help,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "choices": list(self.choices),
            "unit": self.unit,
            "advanced": self.advanced,
            "automatic": self.automatic,
            "unlimited": self.unlimited,
        }


class Settings(Mapping[str, Any]):
    """Checked values of a method's parameters, by name."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_json(self) -> dict[str, Value]:
        """Return the values as a dictionary."""
        return dict(self._values)


Restricts = Callable[[Settings], Sequence[str]]
Sentences = Callable[[Mapping[str, Any]], Sequence[str]]
Check = Callable[[Settings, SettingNames], object]  # raises ParameterError; the return value is ignored


class NotProved(TrainerError):
    """No proof can be built; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class ProofSteps:
    """Steps that prove an integer cost `goal` of all trees, children before parents (docs/proof-format.md).

    An error costs `scale` * Q and a leaf `scale` * P + 1, or Q and P if `scale` is 1; P/Q is the penalty of a leaf in rows. With
    `goals` the steps count errors: goals[t - 1] is the least for trees with at most t leaves, and the last one holds for all others.
    """

    scale: int
    goal: int
    steps: list[dict[str, Any]]
    goals: list[int] | None = None
    priced: bool = False  # whether rows pay for the columns on their paths
    lines: list[dict[str, int]] | None = None  # for F1 and MCC, the bounds on both kinds of errors; steps name theirs


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Result of a method: a draft tree and its bound.

    Parameters
    ----------
    bound : float, optional
        Upper bound in the unit of the objective (accuracy minus penalties). None if nothing is proved about the whole tree.
    finished : bool
        False if the monitor stopped the search; the status then comes from the monitor.
    scope : str
        The search space of the claim, if only the search knows it.
    goal : Goal, optional
        The goal that replaces accuracy.
    unproved : str
        A part of the claim that stays open even if bound and objective agree.
    proof : callable, optional
        Takes a stop condition and returns the steps that prove the bound; None if they are too many or take too long.
    questions : callable, optional
        Returns binary features uint8 (n, m) of the training rows, over which the exact search has the same trees and proves the bound.
    """

    draft: Draft
    bound: float | None = None
    finished: bool = True
    scope: str = ""
    nodes: int = 0
    cuts: dict[str, int] = field(default_factory=dict)
    encoded_features: int | None = None
    solver: str = "octweb"
    solver_version: str = ""
    warm_start_objective: float | None = None
    evidence: tuple[dict[str, Any], ...] = ()
    goal: Goal | None = None
    unproved: str = ""
    note: str = ""  # sentence for readers of the claim
    wishes: tuple[str, ...] = ()  # constraints of the workbench, as listed in the scope
    proof: Callable[[Callable[[], bool]], ProofSteps | None] | None = field(default=None, repr=False, compare=False)
    questions: Callable[[], BitArray] | None = field(default=None, repr=False, compare=False)

    def status(self, guarantee: Guarantee, monitor: Monitor) -> Status:
        """Return the reason why the run ended, regardless of the gap."""
        if not self.finished:  # if the monitor has no reason, the solver failed or its tolerance was too coarse
            return monitor.reason or Status.HEURISTIC
        return Status.HEURISTIC if guarantee is not Guarantee.TREE else Status.OPTIMAL


Solve = Callable[[Problem, Settings, Monitor], Solution]


class SizedDraft(NamedTuple):
    """The tree with the fewest errors among those with at most `leaves` leaves; `errors` in weights of the searched rows."""

    leaves: int
    errors: int
    draft: Draft


@dataclass(frozen=True, kw_only=True)
class SizeSearch:
    """Search of the best tree of each number of leaves.

    Parameters
    ----------
    best : callable
        Returns a `SizedDraft` for 1, 2, … leaves. A larger number never has more errors.
    without : tuple of str
        Parameters that it ignores, so that they must have their default.
    deepest : int
        The largest depth with a choice of the size.
    most_seconds : float
        Limit on the expected time of all folds, and on that of the trees of all sizes on all rows.
    seconds : callable, optional
        Seconds of the trees of all sizes, by `ProblemSize`; by default estimated from the cost of one search.
    """

    best: Callable[[Problem, Settings, Monitor], list[SizedDraft]]
    without: tuple[str, ...] = ()
    deepest: int = 5  # a tree of this depth has 32 leaves
    most_seconds: float = 10.0
    seconds: Callable[[ProblemSize], float] | None = None


@dataclass(frozen=True, kw_only=True)
class Method:
    """A training method: every fact about it, declared once.

    Parameters
    ----------
    binary : bool
        Whether it searches over the binary encoding of the columns, so that `binarise` and `bins` apply.
    two_classes : bool
        Whether it refuses targets with more than two classes.
    warm_start : bool
        Whether it can start from a known tree.
    complete : bool
        Whether it restricts trees as a whole. Then a single leaf may be forbidden even if all rows have one class.
    size_hint : str
        One sentence on how large a problem may be.
    good_for : str
        The same in a few words, for the table of methods.
    estimator : str
        Name of the scikit-learn classifier, by default made from `id`.
    proof : ProofKind, optional
        Who writes its proofs. Required if `guarantee` is TREE.
    cost : CostModel
        Time and memory of a fit.
    first_features : callable, optional
        Returns the binary features that a first tree tests while kernels compile, or None if the settings allow no such
        tree. Each feature is a split of the method. By default: those of `binary`, or thresholds and single categories.
    precompile : sequence of mappings
        Settings of tiny trainings that compile its kernels. `classes` is the number of classes, 2 by default.
        Empty if it has no kernels of its own.
    workbench : WorkbenchSupport, optional
        How its trees are edited; None: they are not.
    leaf_frontier : bool
        Whether `max_leaves` gives the best tree for each number of leaves.
    sizes : SizeSearch, optional
        How it finds the best tree of each number of leaves. Required if its `leaf_penalty` takes 'auto'.
    chooses_bins : bool
        Whether the cost model chooses the number of thresholds for the data.
    group, asks, roles
        Its heading in the form, the columns that one split uses, and tasks for which the application chooses it.
    candidates : sequence of Candidate
        Settings that an experiment tries.
    example : Example
        The tree that its page shows.

    Raises
    ------
    TypeError
        If the guarantee covers whole trees and `proof` is missing.
    """

    id: str
    title: str
    summary: str
    paper: str
    guarantee: Guarantee
    splits: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    solve: Solve
    # describes the search space in the scope of a claim; returns "" if only the search knows it
    space: Callable[[Problem, Settings], str] | None = None
    binary: bool = False
    two_classes: bool = False
    warm_start: bool = False
    complete: bool = False
    size_hint: str = ""
    good_for: str = ""
    claim: str = ""
    estimator: str = ""
    proof: ProofKind | None = None
    cost: CostModel = UNKNOWN_COST
    first_features: Callable[[Problem, Settings], Encoding | None] | None = None
    precompile: tuple[Mapping[str, Any], ...] = ()
    workbench: WorkbenchSupport | None = None
    leaf_frontier: bool = False
    sizes: SizeSearch | None = None
    chooses_bins: bool = False
    group: Group = Group.OTHERS
    asks: Asks = Asks.ONE
    roles: tuple[Role, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    example: Example = USUAL_EXAMPLE

    def __post_init__(self) -> None:
        if self.guarantee is Guarantee.TREE and self.proof is None:
            kinds = ", ".join(f"ProofKind.{kind.name}" for kind in ProofKind)
            raise TypeError(f"The method '{self.id}' proves whole trees and has no `proof`. Declare one of {kinds}.")
        if not self.estimator:
            words = "".join(part.title() for part in self.id.split("-"))
            object.__setattr__(self, "estimator", f"{words}Classifier")

    @property
    def provable(self) -> bool:
        """True if there are proof steps for its trees."""
        return self.proof not in (None, ProofKind.NONE)

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter with this name, or None."""
        return next((p for p in self.parameters if p.name == name), None)

    def unsearched(self, problem: Problem, settings: Settings) -> bool:
        """Return whether the search space is known only after the search, so that no claim is possible before it."""
        return self.space is not None and not self.space(problem, settings)

    def settings(self, raw: Mapping[str, Any]) -> Settings:
        """Return checked values of all parameters, including defaults. Raises ParameterError with a message for each error."""
        values: dict[str, Value] = {}
        errors: dict[str, str] = {}
        for name in raw:
            if self.parameter(name) is None:
                known = ", ".join(p.name for p in self.parameters)
                errors[name] = f"the method '{self.id}' has no such parameter. It takes: {known}."
        for parameter in self.parameters:
            try:
                values[parameter.name] = (
                    parameter.parse(raw[parameter.name]) if parameter.name in raw else parameter.default
                )
            except ValueError as error:
                errors[parameter.name] = str(error)
        if values.get("goal") == "balanced" and "class_weight" in values:
            values["class_weight"] = "balanced"
        if errors:
            raise ParameterError(errors)
        return Settings(values)

    def check(self, settings: Settings, names: SettingNames) -> None:
        """Check settings against each other and the names in the data. Raises ParameterError with a message for each error."""
        errors: dict[str, str] = {}
        for parameter in self.parameters:
            try:
                if parameter.check is not None:
                    parameter.check(settings, names)
                beside = "costs" if settings.get("costs") else GOAL_NAMES.get(count_goal(settings), "")
                if beside and parameter.counts_rows and settings[parameter.name] != parameter.default:
                    off = "empty" if parameter.default in ("", None) else parameter.default
                    raise ParameterError(
                        {
                            parameter.name: f"must be {off} with {beside}: this setting counts rows, and the search uses weighted copies of rows."
                        }
                    )
            except ParameterError as error:
                errors |= error.errors
        if errors:
            raise ParameterError(errors)

    def to_json(self) -> dict[str, Any]:
        """Return the declaration for the API and `methods --json`."""
        return {
            "id": self.id,
            "title": self.title,
            "summary": self.summary,
            "paper": self.paper,
            "guarantee": str(self.guarantee),
            "claim": self.claim,
            "splits": list(self.splits),
            "binary": self.binary,
            "two_classes": self.two_classes,
            "warm_start": self.warm_start,
            "size_hint": self.size_hint,
            "parameters": [p.to_json() for p in self.parameters],
        }


def exact_fraction(value: float | str) -> Fraction:
    """Return a decimal number as a fraction, to twelve decimals: 0.01 becomes 1/100, not its binary approximation.

    Raises ValueError if the text is not a number, or has too many digits.
    """
    text = str(value).strip()
    exponent = text.lower().partition("e")[2] or "0"
    if len(text) > MAX_DIGITS or abs(int(exponent)) > MAX_EXPONENT:
        raise ValueError(f"'{text[:MAX_DIGITS]}' has too many digits")
    try:
        return Fraction(text).limit_denominator(10**12)
    except ZeroDivisionError:
        raise ValueError(f"'{text}' divides by zero") from None


def stated_values(method: Method, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without those that are None, unless None means 'none', no limit, for their parameter."""
    unlimited = {p.name for p in method.parameters if p.unlimited}
    return {name: value for name, value in values.items() if value is not None or name in unlimited}


def stated_penalty(values: Mapping[str, Any]) -> float:
    """Return the leaf penalty of parameter values; 0 if there is none, or if the training chooses it."""
    penalty = values.get("leaf_penalty")
    return 0.0 if penalty in (None, "", AUTO) else float(penalty)


def leaf_penalty(settings: Mapping[str, Any], n: int) -> Fraction:
    """Return the leaf penalty of the settings on `n` rows; `paper_lambda` takes precedence over
    `leaf_penalty`.

    It is 0 for 'auto', until the training chooses it. Aghaei, Gomez & Vayanos and Alston, Validi & Hicks
    maximise (1 - lambda) correct - lambda branchings. That orders trees like a penalty of lambda / (1 -
    lambda) rows per leaf.
    """
    weight = settings.get("paper_lambda")
    if weight is None:
        return exact_fraction(stated_penalty(settings))
    paper = exact_fraction(weight)
    return paper / (1 - paper) / n


def coefficient_penalty(settings: Mapping[str, Any]) -> Fraction:
    """Return the penalty of a non-zero coefficient, as a share of the rows."""
    return exact_fraction(settings.get("coefficient_penalty") or 0)


DEPTH = Parameter(
    name="depth",
    type="integer",
    default=3,
    minimum=0,
    maximum=20,
    flag=True,
    label="Depth",
    help="The largest number of questions between the root and a leaf.",
    unit="questions",
    restricts=lambda s: [] if s["depth"] is None else [f"depth ≤ {s['depth']}"],
)


def _leaf_sentences(values: Mapping[str, Any]) -> list[str]:
    """Return the sentence about the minimum gain of a leaf."""
    if values.get("leaf_penalty") == AUTO:
        return ["The training chooses the number of leaves by their answers to rows that it sets aside."]
    if not values.get("leaf_penalty"):
        return []
    share = percent_text(float(values["leaf_penalty"]))
    if values.get("costs"):
        return [f"A leaf must save {share} of what the best single answer costs."]
    return [f"A leaf must gain {share} of the rows."]


LEAF_PENALTY = Parameter(
    name="leaf_penalty",
    type="number",
    default=0.0,
    minimum=0,
    maximum=0.999,
    flag=True,
    label="Leaf penalty",
    help="Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.",
    sentences=_leaf_sentences,
)
AUTO_LEAF_PENALTY = replace(
    LEAF_PENALTY,
    default=AUTO,
    automatic=True,
    help="Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows. 'auto' "
    "chooses it by folds inside the training rows, so that the tree has as many leaves as help on unseen rows. 0 "
    "allows every leaf, so the tree may learn noise.",
)
COEFFICIENT_PENALTY = Parameter(
    name="coefficient_penalty",
    counts_rows=True,
    type="number",
    default=0.0,
    minimum=0,
    maximum=0.999,
    label="Coefficient penalty",
    help="Subtracted from the training accuracy for every column that a question weighs: 0.01 means 1 % of the rows.",
)
PAPER_LAMBDA = Parameter(
    name="paper_lambda",
    counts_rows=True,
    type="number",
    default=None,
    minimum=0,
    maximum=0.999,
    label="The paper's λ",
    help="Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the "
    "leaf penalty; empty means that the leaf penalty is used.",
    advanced=True,
)
TIME_LIMIT = Parameter(
    name="time_limit",
    type="number",
    default=600.0,
    minimum=0,
    maximum=604_800,
    flag=True,
    label="Time limit",
    help="The training stops after this time and keeps the best tree found, with its gap.",
    unit="s",
)
MEMORY_LIMIT = Parameter(
    name="memory_limit",
    type="integer",
    default=None,
    minimum=64,
    maximum=1_000_000,
    flag=True,
    label="Memory limit",
    help="Memory the training may use; empty means only the server's limit.",
    unit="MB",
    advanced=True,
)
THREADS = Parameter(
    name="threads",
    type="integer",
    default=1,
    minimum=1,
    maximum=256,
    flag=True,
    label="Threads",
    help="Number of processor threads. The tree does not depend on it.",
    advanced=True,
)
SEED = Parameter(
    name="seed",
    type="integer",
    default=0,
    minimum=0,
    maximum=2**31 - 1,
    flag=True,
    label="Seed",
    help="Fixes every random choice, so that the same run gives the same tree again.",
    advanced=True,
)
MIN_LEAF = Parameter(
    name="min_leaf",
    counts_rows=True,
    type="integer",
    default=1,
    minimum=1,
    maximum=10**9,
    label="Rows per leaf",
    help="The smallest number of training rows that a leaf may have.",
    unit="rows",
    restricts=lambda s: [f"at least {s['min_leaf']} rows in a leaf"] if s["min_leaf"] > 1 else [],
    sentences=lambda v: (
        [f"A leaf has at least {count_words(v['min_leaf'], 'row')}."] if int(v.get("min_leaf") or 1) > 1 else []
    ),
)


NOT_COUNTED = ("max_leaves", "recall", "forbidden_pairs", "max_columns")  # limits without a count of optimal trees


def _check_optimal_trees(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for a count of optimal trees beside limits that the count does not support."""
    values = ((name, settings.get(name)) for name in NOT_COUNTED)
    limits = [name for name, value in values if value is not None and str(value).strip("; ")]
    if settings["optimal_trees"] and limits:
        names_of_limits = list_names(limits)
        words = (
            f"optimal trees can be counted only without {names_of_limits}. Set it to 0, or remove {names_of_limits}."
        )
        raise ParameterError({"optimal_trees": words})


OPTIMAL_TREES = Parameter(
    name="optimal_trees",
    counts_rows=True,
    type="integer",
    default=0,
    minimum=0,
    maximum=1000,
    label="Optimal trees to list",
    help="Count all trees with the best objective and the fewest leaves, and list up to this many; 0 means neither.",
    unit="trees",
    advanced=True,
    check=_check_optimal_trees,
)


def _check_class_weight(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for class weights with costs, since costs can be multiplied by the weights."""
    if settings.get("costs") and settings["class_weight"] != "none":
        words = "must be 'none' with costs. Multiply the costs of a class by its weight instead."
        raise ParameterError({"class_weight": words})


CLASS_WEIGHT = Parameter(
    name="class_weight",
    counts_rows=True,
    type="choice",
    default="none",
    choices=("none", "balanced"),
    label="Class weights",
    help="'balanced' gives every class the same total weight, in exact integers: the objective is then mean recall.",
    advanced=True,
    check=_check_class_weight,
)


def _check_costs(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for invalid costs, and for a pruning whose folds would separate the copies of a row."""
    if read_costs(settings, names) is None:
        return
    if settings.get("pruning") == "cross-validation" and len(names.classes) > 2:
        raise ParameterError(
            {
                "pruning": f"'cross-validation' with costs needs two classes, but the target has {len(names.classes)}. Give a number instead."
            }
        )


COSTS = Parameter(
    name="costs",
    type="text",
    default="",
    label="Costs of answers",
    advanced=True,
    check=_check_costs,
    help="Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not named are 0 for "
    "the true class and 1 for other answers. The search minimises the cost. The leaf penalty is then a share of the cost of the "
    "best single answer.",
)
COST_UNIT = Parameter(
    name="cost_unit",
    type="text",
    default="",
    flag=True,
    label="Unit of the costs",
    advanced=True,
    help="The unit in which costs are given and reported, for example EUR.",
)
ANSWER_COSTS = (COSTS, COST_UNIT)


NOT_PRICED = ("optimal_trees",)  # parameters that cannot be combined with prices of columns


def _check_prices(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for invalid prices, and for settings that do not support them."""
    if not read_column_prices(settings["column_price"], names.columns):
        return
    off = {name: settings.get(name) for name in NOT_PRICED if settings.get(name)}
    goal = count_goal(settings)
    if settings.get("goal") == "balanced":  # it sets `class_weight`, too
        off["goal"] = "balanced"
    elif settings.get("class_weight") == "balanced":
        off["class_weight"] = "balanced"
    elif goal:
        words = (
            f"'{goal}' is a ratio of counts without a unit, so a price per row has no value in it. Leave the prices "
            "(column_price) out, or state costs of answers instead of this goal."
        )
        raise ParameterError({"goal": words})
    if off:
        name, value = next(iter(off.items()))
        raise ParameterError(
            {
                name: f"'{str(value)[:40]}' is not possible with prices of columns (column_price). Leave one of the two out."
            }
        )


def _price_sentences(values: Mapping[str, Any]) -> list[str]:
    """Return the sentence about prices of columns, if there are any."""
    return (
        ["A row pays for a priced column once, if a question on its path asks it."]
        if values.get("column_price")
        else []
    )


COLUMN_PRICE = Parameter(
    name="column_price",
    type="text",
    default="",
    label="Prices of columns",
    advanced=True,
    check=_check_prices,
    sentences=_price_sentences,
    help="Price of testing a column in one row, for example 'lab_test=12.5; scan=40'. A row pays once if its path tests "
    "the column. The unit is that of the costs, or one error without costs.",
)


def _check_goal(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for a goal that contradicts other settings, or that the classes do not allow."""
    goal = settings["goal"]
    costs = str(settings.get("costs") or "").strip()
    if goal == "costs" and not costs:
        raise ParameterError({"goal": "'costs' needs costs of answers. Give costs, or choose another goal."})
    if goal not in (AUTO, "costs") and costs:
        raise ParameterError(
            {"goal": f"'{goal}' ignores the costs of answers. Leave the costs out, or choose 'costs'."}
        )
    if goal not in (AUTO, "balanced") and settings.get("class_weight") == "balanced":
        raise ParameterError({"class_weight": f"must be 'none' with the goal '{goal}', which sets the weights itself."})
    if not count_goal(settings):
        return
    name = GOAL_NAMES[goal]
    if len(names.classes) != 2:
        raise ParameterError(
            {"goal": f"{name} needs two classes, but the target has {len(names.classes)}. Choose another goal."}
        )
    if float(settings.get("mip_gap") or 0):
        raise ParameterError({"mip_gap": f"must be 0 with {name}, whose search needs full proofs."})
    if "max_leaves" not in settings and float(settings["leaf_penalty"] or 0):
        raise ParameterError({"leaf_penalty": f"must be 0 with {name}. Set it to 0, or choose the method 'exact'."})


def _check_positive(settings: Settings, names: SettingNames) -> None:
    """Raise ParameterError for an unknown positive class, or one that the goal does not use."""
    name = str(settings["positive"]).strip()
    if name and not count_goal(settings):
        raise ParameterError({"positive": f"'{name[:80]}' is not used. Leave it empty, or choose the goal 'f1'."})
    if name:
        names.label(name, "positive")


def _goal_sentences(values: Mapping[str, Any]) -> list[str]:
    """Return the sentence about the goals F1 and MCC."""
    goal = count_goal(values)
    if not goal:
        return []
    positive = str(values.get("positive") or "").strip()
    looked_for = f"'{positive}'" if positive else "the rarer class"
    about = f"F1 of {looked_for}" if goal == "f1" else "Matthews' coefficient (MCC)"
    return [f"It looks for the best {about} on the training rows, not for the most correct rows."]


GOAL = Parameter(
    name="goal",
    type="choice",
    default=AUTO,
    flag=True,
    label="Goal",
    advanced=True,
    check=_check_goal,
    sentences=_goal_sentences,
    choices=(AUTO, "accuracy", "costs", "balanced", "f1", "mcc"),
    help="What is optimised: 'accuracy' the share of correct rows, 'costs' the costs of answers, 'balanced' mean recall, 'f1' F1 of the "
    "positive class, 'mcc' Matthews' coefficient. 'auto' is costs if there are any, else accuracy.",
)
POSITIVE = Parameter(
    name="positive",
    type="text",
    default="",
    label="Positive class",
    advanced=True,
    check=_check_positive,
    help="The class whose F1 is optimised. Empty means the class with fewer training rows.",
)
GOALS = (GOAL, POSITIVE)
BINARISE = Parameter(
    name="binarise",
    type="choice",
    default="quantile-thresholds",
    flag=True,
    label="Numeric columns become",
    choices=("quantile-thresholds", "quantile-buckets", "all-thresholds", "none"),
    help="Yes/no questions: x > quantile (thresholds), x within two quantiles (buckets), or x > every value (all).",
    advanced=True,
)
BINS = Parameter(
    name="bins",
    type="integer",
    default=5,
    minimum=2,
    maximum=1000,
    flag=True,
    label="Quantiles",
    help="k quantiles give each numeric column k − 1 thresholds, or k buckets.",
    advanced=True,
)
AUTO_BINS = replace(
    BINS,
    default=AUTO,
    automatic=True,
    help="k quantiles give each numeric column k − 1 thresholds, or k buckets. 'auto': all thresholds, or 32, 16, 8 or 4 "
    "per column with those of a CART tree of the same depth, as many as a search of 10 s should prove.",
)


def _check_extra_thresholds(settings: Settings, names: SettingNames) -> None:
    if (
        read_extra_thresholds(settings["extra_thresholds"], names)
        and settings["binarise"] != Scheme.QUANTILE_THRESHOLDS
    ):
        raise ParameterError(
            {
                "extra_thresholds": "must be empty unless 'binarise' is quantile-thresholds. Leave it empty, or change 'binarise'."
            }
        )


EXTRA_THRESHOLDS = Parameter(
    name="extra_thresholds",
    type="text",
    default="",
    label="Further thresholds",
    advanced=True,
    check=_check_extra_thresholds,
    help='Thresholds beside the quantiles, as JSON lists by column, for example {"age": [31.5, 40]}.',
)
SOLVER = Parameter(
    name="solver",
    type="choice",
    default="auto",
    choices=("auto", *BACKENDS),
    flag=True,
    label="Solver",
    help="'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.",
    advanced=True,
)
MIP_GAP = Parameter(
    name="mip_gap",
    type="number",
    default=0.0,
    minimum=0,
    maximum=1,
    flag=True,
    label="Gap to stop at",
    help="The search may stop at this relative gap; 0 asks for a full proof.",
    advanced=True,
)

UNSEEN_MISSING = Parameter(
    name="unseen_missing",
    type="choice",
    default="follow",
    choices=("follow", "refuse"),
    label="Empty cells that training never saw",
    help="An empty cell in a column that had none in training goes to the side with more training rows, and the answer is "
    "marked (follow); or the row gets no answer (refuse).",
    advanced=True,
)

# parameters of every method, in the order of the forms
COMMON = (TIME_LIMIT, MEMORY_LIMIT, THREADS, SEED, UNSEEN_MISSING)


def at_most(name: str, singular: str, plural: str) -> Restricts:
    """Return a `restricts` function for a limit on a number of things; None: no limit."""

    def restricts(settings: Settings) -> list[str]:
        most = settings[name]
        if most is None:
            return []
        return [f"at most {most} {singular if most == 1 else plural}"]

    return restricts


def having(parameter: Parameter, **changes: Any) -> Parameter:
    """Return the parameter with another default, range or help for one method."""
    return replace(parameter, **changes)


def _json_text(raw: Mapping[Any, Any]) -> str:
    """Return a mapping as JSON; its names and values may be numpy scalars. Raises ValueError for other objects."""
    try:
        return json.dumps(_plain(raw))
    except TypeError as error:
        words = f"the mapping cannot be written as JSON ({error}). Use texts and numbers in nested mappings"
        raise ValueError(words) from error


def _plain(value: Any) -> Any:
    """Return a value without numpy scalars."""
    if isinstance(value, Mapping):
        return {_plain(name): _plain(inner) for name, inner in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _boolean(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    text = str(raw).strip().lower()
    if text in {"true", "yes", "on", "1"}:
        return True
    if text in {"false", "no", "off", "0"}:
        return False
    raise ValueError(f"'{raw}' is neither true nor false")


def unsettled(correct: Sequence[int], bounds: Sequence[int], listed: set[int]) -> list[dict[str, int]]:
    """Return the numbers of leaves without a point on a frontier for which a better tree is not excluded.

    correct[t], bounds[t]: correct rows with at most t + 1 leaves and their upper bound. `listed` are the numbers of leaves with a point.
    """
    return [
        {"leaves": t, "bound": bound}
        for t, (best, bound) in enumerate(zip(correct, bounds, strict=True), start=1)
        if bound > best and t not in listed
    ]
