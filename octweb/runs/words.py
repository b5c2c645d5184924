"""Describe runs in words: names, settings, and the problem to solve."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from octweb.core.templatetags.octweb import NARROW, seconds, whole
from octweb.datasets.models import Dataset
from octweb.runs.advice import split_phrase
from trainer.certificate import Guarantee
from trainer.constraints import CONSTRAINTS as SIDE_CONSTRAINTS
from trainer.data.costs import EACH_ROW
from trainer.goal import GOAL_NAMES, balances_classes, count_goal
from trainer.methods.base import AUTO, Method, Parameter, stated_penalty
from trainer.registry import METHODS
from trainer.solver_common.thresholds import LADDER
from trainer.tree.numbers import count_words, decimal_text

SINGULAR = {"questions": "question", "rows": "row", "leaves": "leaf", "trees": "tree"}
# names leave out these settings, or state them differently
UNNAMED = {"time_limit", "memory_limit", "threads", "solver", "depth", "leaf_penalty", "seed", "cost_unit"}
FIRST = ("recall", "sensitivity", "specificity", "positive", "forbidden", "forbidden_pairs", "monotone")
CONSTRAINTS = (*FIRST, *(p.name for p in SIDE_CONSTRAINTS if p.name not in FIRST))  # in the order of the page
SIZE = ("leaf_penalty", "pruning", "min_leaf", "max_leaves")
# parameters of all methods, because a constraint may belong to another method than the chosen one
DECLARED = {p.name: p for m in METHODS for p in m.parameters}
MOST_NAMED = 3
MAX_NAMED_CLASSES = 4  # up to this many classes, each is named with its rows


def run_name(dataset: str, method: Method, parameters: Mapping[str, Any]) -> str:
    """Return a name from data set, method, depth, penalty and other non-default settings."""
    parts = [dataset, method.title]
    if "depth" in parameters and not parameters.get("topology"):
        parts.append("any depth" if parameters["depth"] is None else f"depth {parameters['depth']}")
    if penalty := stated_penalty(parameters):
        parts.append(f"penalty {100 * penalty:.4g}{NARROW}%")
    # the name of the goal implies it
    implied = {"class_weight"} if parameters.get("goal") == "balanced" else set()
    differing = [
        _differing(p, parameters[p.name], str(parameters.get("binarise") or ""))
        for p in method.parameters
        if p.name in parameters and p.name not in UNNAMED | implied and parameters[p.name] not in (p.default, None, "")
    ]
    parts += differing[:MOST_NAMED]
    if len(differing) > MOST_NAMED:
        parts.append(f"{len(differing) - MOST_NAMED} more settings")
    return ", ".join(parts)[:200]


def class_words(dataset: Dataset) -> str:
    """Describe the rows of each class, largest first.

    If there are many classes, state only their number. "" without classes.
    """
    counts = zip(dataset.profile.get("class_counts") or (), dataset.profile.get("classes") or (), strict=False)
    by_size = sorted(counts, key=lambda pair: -pair[0])
    if len(by_size) > MAX_NAMED_CLASSES:
        return f"{len(by_size):,} classes"
    if not by_size:
        return ""
    (rows, label), *others = by_size
    return ", ".join(
        [f"{count_words(rows, 'row')} {'is' if rows == 1 else 'are'} {label}", *(f"{n:,} {name}" for n, name in others)]
    )


def family_name(dataset: str, method: Method) -> str:
    """Return the name that the models of a data set and a method share as versions."""
    return f"{dataset}, {method.title}"


def _differing(parameter: Parameter, value: Any, binarise: str) -> str:
    if parameter.name == "binarise":
        return str(value).replace("-", " ")
    if parameter.name == "bins":
        return f"{value} buckets" if binarise == "quantile-buckets" else f"{value - 1} thresholds per column"
    if parameter.name == "class_weight":
        return f"class weights {value}"
    if parameter.name == "costs":
        return "costs of answers"
    if parameter.name == "min_leaf":
        return f"leaves of at least {setting_words(parameter, value)}"
    label = parameter.label[0].lower() + parameter.label[1:]
    if value is True:
        return label
    if value is False:
        return f"without {label}"
    return f"{label} {setting_words(parameter, value)}"


def setting_words(parameter: Parameter, value: Any) -> str:
    """Format a setting for the page: '600 s', '1 row', 'yes'."""
    if value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if parameter.name == "costs":
        return "each row has its own" if value == EACH_ROW else _cost_words(str(value))
    if parameter.name == "recall":
        return "; ".join(f"{name} {share}" for name, share in recalls(str(value)))
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    unit = SINGULAR.get(parameter.unit, parameter.unit) if text == "1" else parameter.unit
    return f"{text} {unit}" if unit else text


def _cost_words(text: str) -> str:
    """Return costs in their short form, 'bad>good=5', and rewards as 'rewards yes=5'. The text may be JSON."""
    if not text.startswith("{"):
        return text
    record = json.loads(text)
    if isinstance(record.get("rewards"), dict) and not any(isinstance(v, dict) for v in record["rewards"].values()):
        return "rewards " + "; ".join(f"{answer}={value}" for answer, value in record["rewards"].items())
    rows = record.get("costs", record)
    return "; ".join(f"{true}>{answer}={value}" for true, row in rows.items() for answer, value in row.items())


def recalls(text: str) -> list[tuple[str, str]]:
    """Parse 'yes: 0.9; no: 0.8' into classes and minimum recalls in percent, with full precision."""
    items = (item.rpartition(":") for item in text.split(";") if item.strip())
    return [(name.strip(), f"{(100 * Decimal(share.strip())).normalize():f}{NARROW}%") for name, _, share in items]


def objective_words(parameters: Mapping[str, Any], method: Method) -> str:
    """Describe the quantity that incumbent and bound measure."""
    sensitivity, specificity = (parameters.get(name) for name in ("sensitivity", "specificity"))
    if sensitivity is not None and specificity is None:
        return f"specificity on training rows, with a sensitivity of at least {decimal_text(sensitivity)}"
    if specificity is not None and sensitivity is None:
        return f"sensitivity on training rows, with a specificity of at least {decimal_text(specificity)}"
    if parameters.get("costs"):
        penalty = ", less the leaf penalty" if stated_penalty(parameters) else ""
        return f"costs saved against the dearest answers, as a share{penalty}"
    if goal := count_goal(parameters):
        penalty = ", less the leaf penalty" if stated_penalty(parameters) else ""
        return f"{GOAL_NAMES[goal]} on training rows{penalty}"
    correct = "share of training rows correct"
    if parameters.get("class_weight") == "balanced":
        correct = "mean recall of the classes on training rows"
    if method.parameter("negative_weight") and str(parameters.get("negative_weight") or "1") != "1":
        correct = "weighted share of training rows correct"
    if sensitivity is not None and specificity is not None:
        return (
            f"{correct}, with a sensitivity of at least {decimal_text(sensitivity)} and a specificity of at least "
            f"{decimal_text(specificity)}"
        )
    if float(parameters.get("coefficient_penalty") or 0):
        return correct + ", less the penalties for leaves and coefficients"
    return correct + (", less the leaf penalty" if method.parameter("leaf_penalty") else "")


def in_words(
    method: Method, values: Mapping[str, Any], *, columns: int, questions: int, numbers: bool = True
) -> tuple[str, list[str]]:
    """Return a headline, and sentences on splits, penalty, limits and proof.

    `numbers` says whether a column is numeric.
    """
    return _headline(method, values), [
        f"{_questions(method, values, columns, questions, numbers)}.",
        *_limits(method, values),
        *_constraints(method, values),
        _proof(method, values),
    ]


def _headline(method: Method, values: Mapping[str, Any]) -> str:
    depth = values.get("depth")
    size = f"with at most {_count(depth, 'question')} on a path{_leaves(values)}"
    if values.get("topology"):
        size = "of the topology"
    elif is_unlimited(method, values):
        size = "with any number of questions on a path"
    if method.guarantee is Guarantee.TREE:
        return f"Finds the best tree {size}"
    if method.guarantee is Guarantee.SPLITS:
        return f"Builds a tree {size}, each question the best one for its rows"
    if method.guarantee is Guarantee.SUBTREES:
        return f"Builds a tree {size}, and replaces its small subtrees by the best ones until none improves"
    return f"Builds a tree {size}, step by step"


def is_unlimited(method: Method, values: Mapping[str, Any]) -> bool:
    """Return whether the values set no limit on depth."""
    parameter = method.parameter("depth")
    return parameter is not None and parameter.unlimited and values.get("depth", 0) is None


def _leaves(values: Mapping[str, Any]) -> str:
    """State how many leaves the tree can have. "" without a valid depth, or if another limit is lower."""
    depth = values.get("depth")
    most = values.get("max_leaves")
    leaves = 0 if depth is None or not 0 <= int(depth) <= 20 else 2 ** int(depth)
    return "" if not leaves or (most and int(most) < leaves) else f", so at most {_count(leaves, 'leaf', 'leaves')}"


def _questions(method: Method, values: Mapping[str, Any], columns: int, questions: int, numbers: bool) -> str:
    among = f"{_count(columns, 'column')}"
    kind = split_phrase(method)
    if kind != "one column":
        return f"A question looks at {kind}, among {among}"
    if not method.binary:
        return f"A question compares one column, at any threshold, among {among}"
    if not numbers:
        return f"A question looks at one of {among}: about {whole(questions)} yes/no questions in all"
    if values.get("bins") == AUTO:
        return f"A question looks at one of {among}, at thresholds that are chosen for the data"
    bins = int(values.get("bins") or LADDER[-1])
    how = {
        "quantile-thresholds": f"with at most {_count(bins - 1, 'threshold')} for a column of numbers",
        "quantile-buckets": f"with at most {_count(bins, 'interval')} for a column of numbers",
        "all-thresholds": "at every threshold",
        "none": "as yes or no",
    }.get(str(values.get("binarise")), "")
    return f"A question looks at one of {among}, {how}: about {whole(questions)} yes/no questions in all"


def _limits(method: Method, values: Mapping[str, Any]) -> list[str]:
    sentences = _declared_sentences(method, ("goal", "column_price", *SIZE), values)
    if values.get("costs"):
        sentences.append("Counts what answers cost, not how many rows are wrong.")
    if balances_classes(values):
        sentences.append("Every class counts the same, no matter how many rows it has.")
    if values.get("time_limit"):
        sentences.append(f"After {_time(values['time_limit'])} it stops and keeps the best tree so far.")
    return sentences


def _constraints(method: Method, values: Mapping[str, Any]) -> list[str]:
    """Return the sentences of all constraints, including those that the method does not support."""
    return _declared_sentences(method, [name for name in CONSTRAINTS if name not in SIZE], values)


def _declared_sentences(method: Method, names: Iterable[str], values: Mapping[str, Any]) -> list[str]:
    """Return the sentences that the declarations of these parameters give for the values."""
    parameters = [method.parameter(name) or DECLARED.get(name) for name in names]
    return [
        sentence for p in parameters if p is not None and p.sentences is not None for sentence in p.sentences(values)
    ]


def _proof(method: Method, values: Mapping[str, Any]) -> str:
    if method.guarantee is Guarantee.TREE:
        gap = float(values.get("mip_gap") or 0)
        near = f" by more than {100 * gap:.4g}{NARROW}%" if gap else ""
        better = _better_words(method, values)
        size = "any depth" if is_unlimited(method, values) else "this size"
        return f"Proves that no tree of {size} {better}{near}, or says how much better one could still be."
    if method.guarantee is Guarantee.SPLITS:
        return "Proves each question; nothing is claimed about the tree as a whole."
    if method.guarantee is Guarantee.SUBTREES:
        return "Proves small subtrees, each for its rows; nothing is claimed about the tree as a whole."
    return "Nothing is claimed about how close it is to the best tree."


def _better_words(method: Method, values: Mapping[str, Any]) -> str:
    """Describe a better tree in terms of the training objective."""
    if values.get("costs"):
        return "costs less"
    goal = count_goal(values)
    if goal or balances_classes(values) or str(values.get("negative_weight") or "1") != "1":
        return "does better at what this training counts"
    paid = method.parameter("leaf_penalty") and stated_penalty(values)
    return f"gets more rows right{', less the price of its leaves' if paid else ''}"


def _time(value: Any) -> str:
    minutes, rest = divmod(float(value), 60)
    return f"{minutes:.0f}{NARROW}min" if minutes and not rest and minutes < 60 else seconds(value)


def _count(number: Any, one: str, many: str = "") -> str:
    return f"some {many or one + 's'}" if number is None else count_words(number, one, many)
