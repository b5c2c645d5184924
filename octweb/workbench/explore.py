"""Compute the page of all good trees, and read its form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from octweb.workbench.actions import current, last_tree, setting_names_of
from octweb.workbench.minis import legend, picture
from octweb.workbench.models import Step, Workbench
from octweb.workbench.models import StepKind as StepKind
from trainer.data.cost_text import read_costs
from trainer.errors import ParameterError
from trainer.families.exact.rashomon.chosen import RATES, amount
from trainer.goal import balances_classes
from trainer.methods.base import stated_penalty
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.describe import split_text
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree
from trainer.tree.numbers import number_text, percent_text
from trainer.tree.splits import split_from_json

LISTED = 24
DEFAULT_SLACK = "0.01"  # share of the least cost, if answers have costs
ROWS_SHARE = 100  # without costs, a good tree may be worse by 1 / ROWS_SHARE of the training rows
ROUNDING = 1e-9  # rows by which two equal objectives may differ after rounding
# The fields are in the order of the form.
FIELDS = (
    "slack_rows", "slack", "slack_cost", "max_leaves", "must", "without", "recalls", "agree_rows", "groups", "difference", "favoured", "rate",
)  # fmt: skip
RATE_WORDS = {"parity": "among all rows of a group", "opportunity": "among the rows of that class"}


def default_tolerance(bench: Workbench) -> dict[str, str]:
    """Return the tolerance of a form that states none: a number of rows or, if answers have costs, a share."""
    if bench.parameters.get("costs"):
        return {"slack": DEFAULT_SLACK}
    return {"slack_rows": str(max(1, _training_rows(bench) // ROWS_SHARE))}


def _training_rows(bench: Workbench) -> int:
    """Return the number of training rows, from the newest tree; all rows of the data set before the first tree."""
    step = last_tree(bench, current(bench))
    return int(step.result["n"]) if step is not None else int(bench.dataset.rows)


def best_rows(bench: Workbench) -> float | None:
    """Return the cost of the best tree in rows, leaves included, or None if answers have costs, rows have weights or nothing is counted."""
    step = good_step(bench)
    if step is None or step.result.get("optimum") is None or bench.parameters.get("costs"):
        return None
    if step.result.get("count_unit", "rows") != "rows":
        return None
    return (1 - float(step.result["optimum"])) * _training_rows(bench)


def request_of(form: Any, default: Mapping[str, str]) -> dict[str, Any]:
    """Return the request in a form; `default` is the tolerance of an empty form.

    Raises ParameterError with a sentence for each invalid field.
    """
    request: dict[str, Any] = {"listed": LISTED}
    stated = (name for name in ("slack_cost", "slack_rows", "slack") if form.get(name, "").strip())
    name = next(stated, "")
    request |= {name: form[name].strip()} if name else default
    request["must"] = [name for name in form.getlist("must") if name]
    request["without"] = [name for name in form.getlist("without") if name]
    for name in ("difference", "groups", "agree_rows"):
        if form.get(name, "").strip():
            request[name] = form[name].strip()[:4000]
    if "difference" in request:
        request |= {name: form[name].strip() for name in ("rate", "favoured") if form.get(name, "").strip()}
    refused: dict[str, str] = {}
    for check in (_slack, _leaves, _recalls, _groups):
        try:
            request |= check(form, request)
        except ParameterError as error:
            refused |= error.errors
    both = sorted(set(request["must"]) & set(request["without"]))
    if both:
        refused["without"] = f"'{both[0][:80]}' cannot be asked and left out at once. Clear one of the two."
    if refused:
        raise ParameterError(refused)
    return request


def _slack(form: Any, request: dict[str, Any]) -> dict[str, Any]:
    for name in ("slack_rows", "slack", "slack_cost"):
        if name in request:
            amount(request[name], name)
    return {}


def _leaves(form: Any, request: dict[str, Any]) -> dict[str, Any]:
    most = form.get("max_leaves", "").strip()
    if not most:
        return {}
    if not most[:10].isdecimal() or len(most) > 9 or int(most) < 1:
        raise ParameterError({"max_leaves": f"'{most[:40]}' is not a whole number of leaves, 1 or more."})
    return {"max_leaves": int(most)}


def _recalls(form: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Parse minimum recalls such as 'yes: 0.9; no: 0.8'. Raises ParameterError."""
    recalls = {}
    for item in filter(None, (part.strip() for part in form.get("recalls", "").split(";"))):
        name, colon, share = item.rpartition(":")
        if not colon:
            raise ParameterError(
                {
                    "recalls": f"'{item[:80]}' has no minimum recall. Write 'class: share', for example 'yes: 0.9; no: 0.8'."
                }
            )
        if amount(share.strip(), "recalls") > 1:
            raise ParameterError(
                {"recalls": f"{share.strip()[:40]} is more than 1. Write a share of the rows, such as 0.9 for 90 %."}
            )
        recalls[name.strip()] = share.strip()
    return {"recalls": recalls}


def _groups(form: Any, request: dict[str, Any]) -> dict[str, Any]:
    if "groups" in request and "difference" not in request:
        raise ParameterError({"difference": "Say how much the rates of the groups may differ, as in 0.1."})
    if "difference" in request:
        amount(request["difference"], "difference")
        if "groups" not in request:
            raise ParameterError({"groups": "Choose the column whose values are the groups."})
    return {}


def form_values(form: Any) -> dict[str, Any]:
    """Return the values as typed, which the form shows again after an error."""
    values = {name: form.get(name, "") for name in FIELDS}
    return {
        "request": values | {"must": form.getlist("must"), "without": form.getlist("without")},
        "slack": values["slack"],
        "slack_rows": values["slack_rows"],
        "recalls": values["recalls"],
    }


def field_errors(refused: Mapping[str, str]) -> dict[str, Any]:
    """Return the error sentence of each field, and the first such field, which gets the focus."""
    messages = {name: refused[name] for name in FIELDS if name in refused}
    return {
        "refused": {name: text[:1].upper() + text[1:] for name, text in messages.items()},
        "focus": next(iter(messages), ""),
    }


def refused_by(step: Step) -> dict[str, str]:
    """Return the field and the sentence of a failed step such as 'recalls: there is no class zzz', or {} for other errors."""
    name, colon, text = step.error.partition(": ")
    return {name: text} if colon and name in FIELDS else {}


def context(bench: Workbench) -> dict[str, Any]:
    """Return the context of the page from the newest request for good trees, which may still be running."""
    step = good_step(bench)
    kinds = {c["name"]: c["kind"] for c in bench.dataset.columns if c.get("role") == "feature"}
    columns = list(kinds)
    costs = _costs_of(bench)
    tolerance = default_tolerance(bench)
    training_rows = _training_rows(bench)
    leaf_rows = stated_penalty(bench.parameters) * training_rows
    line = "row" if bench.dataset.source_name.lower().endswith(".parquet") else "line"
    if step is None:
        return (
            {
                "step": None,
                "columns": columns,
                "request": {},
                "leaf_rows": leaf_rows,
                "rates": _rates(costs),
                "line": line,
                "costs": costs,
                "weighed": _is_weighed(bench),
            }
            | {"slack": "", "slack_rows": ""}
            | tolerance
            | field_errors({})
        )
    result = step.result
    classes = setting_names_of(bench).classes
    listed = [
        _outline(tree, kinds, classes)
        | {"number": k, "picture": picture(tree["nodes"]), "title": _title(k, tree, result, costs)}
        for k, tree in enumerate(result.get("trees") or (), start=1)
    ]
    first = list((result.get("first_questions") or {}).items())
    total = max([n for _, n in first], default=1)
    return {
        "step": step,
        "columns": columns,
        "slack": step.request.get("slack", "" if "slack_cost" in step.request else DEFAULT_SLACK),
        "slack_rows": _rows_field(step, training_rows),
        "leaf_rows": leaf_rows,
        "best": _best(listed, training_rows),
        "request": step.request,
        "rates": _rates(costs),
        "line": line,
        "costs": costs,
        "tolerance_words": _tolerance_words(step.request, costs, weighed=_is_weighed(bench)),
        "weighed": _is_weighed(bench),
        "recalls": "; ".join(f"{name}: {share}" for name, share in (step.request.get("recalls") or {}).items()),
        "found": result,
        "unit": result.get("count_unit", "rows"),
        "working": not step.is_finished,
        "first": [(text, n, 100 * n / total) for text, n in first[:30]],
        "first_more": max(0, len(first) - 30),
        "need": [
            {"name": name, "trees": v["trees"], "lost": _importance_range(v, costs)} | _asked_shares(v)
            for name, v in sorted((result.get("columns") or {}).items(), key=lambda item: -item[1]["trees"])
            if v["trees"]
        ],
        "rows": _disputed_rows(result),
        "chips": _chips(step.request),
        "funnel": _funnel(result),
        "cards": _cards(listed, result.get("differ") or []),
        "listed": listed,
        "legend": legend(result.get("trees") or []),
        "within_cost": _excess(result.get("limit_cost"), result),
    } | field_errors(refused_by(step))


def filter_words(name: str, value: Any) -> str:
    """Describe a filter in a few words."""
    if name == "recalls":
        return f"at least {_percent(value[1])} of {value[0]} right"
    return {
        "without": f"not asking {value}",
        "must": f"asking {value}",
        "max_leaves": f"at most {value} leaves",
        "difference": f"rates of groups at most {value} apart",
        "agree_rows": f"answering alike on {value}",
    }[name]


def _percent(share: str) -> str:
    try:
        return f"{100 * float(share):g} %"
    except ValueError:
        return share


def _chips(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each filter of a request in words, with the fields of a form that requests the same without it."""
    filters: list[tuple[str, Any]] = [("without", name) for name in request.get("without") or ()]
    filters += [("must", name) for name in request.get("must") or ()]
    filters += [("max_leaves", request["max_leaves"])] if request.get("max_leaves") else []
    filters += [("recalls", item) for item in (request.get("recalls") or {}).items()]
    filters += [(name, request[name]) for name in ("difference", "agree_rows") if request.get(name)]
    return [{"words": filter_words(name, value), "fields": _fields(request, (name, value))} for name, value in filters]


def _fields(request: Mapping[str, Any], left: tuple[str, Any]) -> list[tuple[str, str]]:
    """Return the form fields of a request without one filter."""
    name, value = left
    groups = () if name == "difference" else ("difference", "groups", "rate", "favoured")
    fields = [
        (n, str(request[n]))
        for n in ("slack_rows", "slack", "slack_cost", "max_leaves", "agree_rows", *groups)
        if request.get(n) and n != name
    ]
    fields += [(n, c) for n in ("without", "must") for c in request.get(n) or () if (n, c) != left]
    recalls = [
        f"{c}: {share}"
        for c, share in (request.get("recalls") or {}).items()
        if (name, value) != ("recalls", (c, share))
    ]
    return fields + ([("recalls", "; ".join(recalls))] if recalls else [])


def _funnel(result: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the number of trees that remain after each filter, with the filter in words."""
    return [
        (
            f"… and {filter_words(line['filter'], line['value'])}" if line["filter"] else "all within the tolerance",
            line["count"],
        )
        for line in result.get("filters") or ()
    ]


def listed_tree(bench: Workbench, number: int) -> Tree | None:
    """Return a tree of the newest list of good trees by its number, which begins at 1.

    Return None if there is no such tree, or if the workbench has no tree.
    """
    step = good_step(bench)
    shown_step = last_tree(bench, current(bench))
    trees = (step.result.get("trees") or ()) if step is not None else ()
    if shown_step is None or not 1 <= number <= len(trees):
        return None
    document = json.loads(shown_step.document) | {"nodes": trees[number - 1]["nodes"], "certificate": {}}
    return from_json(document).tree


def good_step(bench: Workbench) -> Step | None:
    """Return the newest request for good trees, or None if there is none."""
    return bench.steps.filter(kind=StepKind.GOOD).last()


def pair(result: Mapping[str, Any], listed: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any] | None:
    """Return two listed trees to compare side by side, or None if fewer than two can be compared.

    The query may select them as `a` and `b`. By default they are the first tree and the next one with different
    answers.
    """
    differ = result.get("differ") or []
    if len(differ) < 2:
        return None
    second = next((k for k, rows in enumerate(differ[0], start=1) if rows), 2)
    a, b = (_number(query.get(name, ""), len(differ)) or k for name, k in (("a", 1), ("b", second)))
    of = (result.get("rows") or {}).get("of")
    return {
        "choices": [
            {"number": tree["number"], "title": tree["title"], "leaves": tree["leaves"]} for tree in listed[: len(differ)]
        ],
        "sides": [("A", a, listed[a - 1]), ("B", b, listed[b - 1])],
        "differ": differ[a - 1][b - 1],
        "of": of,
    }  # fmt: skip


def _number(text: str, most: int) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 and 1 <= int(text) <= most else None


def _asked_shares(column: dict[str, Any]) -> dict[str, float]:
    """Return the least and largest share of rows that a tree asks about a column, in percent; {} from counts."""
    least = column["asked_least"]
    most = column["asked_most"]
    return {} if least is None else {"least": 100 * least, "most": 100 * most, "width": 100 * (most - least)}


def _importance_range(column: dict[str, Any], costs: dict[str, str] | None) -> str:
    """Return the least and largest importance of a column in words, in percent of the rows or in costs.

    Return "" if the importance was not computed.
    """
    least = column.get("importance_least")
    most = column.get("importance_most")
    if least is None or most is None:
        return ""
    if costs is not None:
        return f"{number_text(least)} to {number_text(most)} {costs['unit']}"
    return f"{100 * least:.1f} to {100 * most:.1f} %"


def _costs_of(bench: Workbench) -> dict[str, str] | None:
    """Return the unit of the costs of the answers, which may be "". Return None if answers have no costs."""
    if not bench.parameters.get("costs"):
        return None
    try:
        costs = read_costs(bench.parameters, setting_names_of(bench))
    except ParameterError:  # `read_costs` refuses rewards; only their unit is needed here
        return {"unit": str(bench.parameters.get("cost_unit") or "")}
    return None if costs is None else {"unit": costs.unit}


def _rates(costs: dict[str, str] | None) -> dict[str, str]:
    """Return the rates that may be compared between groups.

    With costs, only one is possible, because costs count no rows of a class.
    """
    return RATE_WORDS if costs is None else {RATES[0]: RATE_WORDS[RATES[0]]}


def _is_weighed(bench: Workbench) -> bool:
    """Return True if the good trees of a workbench count weights, of rows or of classes."""
    return bool(bench.weight) or balances_classes(bench.parameters)


def _tolerance_words(request: Mapping[str, Any], costs: dict[str, str] | None, *, weighed: bool) -> str:
    if costs is not None and "slack_cost" in request:
        return f"{request['slack_cost']} {costs['unit']}".strip()
    if "slack_rows" in request:
        rows = float(amount(request["slack_rows"], "slack_rows"))
        return f"{number_text(rows)} of weight" if weighed else rows_text(rows)
    return percent_text(float(amount(request.get("slack") or DEFAULT_SLACK, "slack")))


def _excess(cost: float | None, result: Mapping[str, Any]) -> float | None:
    """Return by how much a cost exceeds the least cost, leaves included, or None if one of them is unknown."""
    least = result.get("optimum_cost")
    return None if cost is None or least is None else max(0.0, cost - least)


def _disputed_rows(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the rows on which good trees disagree, with shares in percent, or None if they were not computed."""
    rows = result.get("rows")
    count = result.get("count")
    if not rows or not count:
        return None
    lines = [
        {
            "row": line["row"],
            "actual": line["actual"],
            "disagree": 100 * line["disagree"],
            "answers": [(name, 100 * number / count) for name, number in line["answers"].items()],
        }
        for line in rows["listed"]
    ]
    return {"depends": rows["depends"], "of": rows["of"], "lines": lines}


def _title(number: int, tree: dict[str, Any], result: dict[str, Any], costs: dict[str, str] | None) -> str:
    """Return the heading of a listed tree: its cost, or the number of rows by which it is worse than the best tree."""
    if costs is not None and "cost" in tree:
        return f"{number}. {number_text(tree['cost'], 5)} {costs['unit']}".rstrip()
    more = _extra_errors(tree, result)
    if more is None:
        return f"{number}."
    if not more:
        return "Best"
    unit = result.get("count_unit", "rows")
    if unit != "rows":
        return f"{number_text(more, 4)} {unit} worse"
    return "under 0.1 rows worse" if more < 0.05 else f"{rows_text(more)} worse"


def _extra_errors(tree: dict[str, Any], result: dict[str, Any]) -> float | None:
    """Return the number of rows by which a tree is worse than the best tree, or None if the number of rows is unknown."""
    rows = (result.get("rows") or {}).get("of") or result.get("counted_rows")
    if not rows:
        return None
    more = (result["optimum"] - tree["objective"]) * rows
    return more if more > ROUNDING else 0.0


def rows_text(rows: float) -> str:
    """Return a number of rows with at most one decimal."""
    text = f"{rows:,.1f}".removesuffix(".0")
    return f"{text} {'row' if text == '1' else 'rows'}"


def _rows_field(step: Step, training_rows: int) -> str:
    """Return the tolerance of a request in rows, also of one that states a share; "" if it is unknown."""
    if "slack_rows" in step.request or step.result.get("limit") is None:
        return str(step.request.get("slack_rows") or "")
    return number_text((step.result["optimum"] - step.result["limit"]) * training_rows, 6)


def _best(listed: list[dict[str, Any]], training_rows: int) -> dict[str, Any] | None:
    """Return the listed tree that comes first, with the number of training rows, or None without a list."""
    return listed[0] | {"of": training_rows} if listed else None


def _wrong_rows(tree: Mapping[str, Any], classes: Sequence[str]) -> int:
    """Return the number of training rows to which a listed tree gives a wrong answer."""
    leaves = [node for node in tree["nodes"] if "split" not in node]
    return sum(sum(leaf["counts"]) - leaf["counts"][classes.index(leaf["class"])] for leaf in leaves)


def _cards(listed: list[dict[str, Any]], differ: list[list[int]]) -> list[dict[str, Any]]:
    """Return one card for each set of answers: its first tree, with the other listed trees of equal answers in `alike`."""
    cards: list[dict[str, Any]] = []
    for k, tree in enumerate(listed):
        card = next((c for c in cards if k < len(differ) and differ[c["number"] - 1][k] == 0), None)
        if card is None:
            cards.append(tree | {"alike": []})
        else:
            card["alike"].append(tree)
    return cards


def _outline(tree: dict[str, Any], kinds: Mapping[str, str], classes: Sequence[str]) -> dict[str, Any]:
    """Return the splits and leaves of a listed tree as indented lines, with its wrong rows, objective and leaves."""
    lines: list[tuple[int, str]] = []

    def visit(node: int, level: int, word: str) -> None:
        v = tree["nodes"][node]
        if "split" not in v:
            lines.append((level, f"{word}{v['class']} ({sum(v['counts']):,})"))
            return
        lines.append((level, f"{word}{_question(v['split'], kinds)}?"))
        visit(v["left"], level + 1, "yes: ")
        visit(v["right"], level + 1, "no: ")

    visit(0, 0, "")
    return {
        "objective": tree["objective"],
        "leaves": tree["leaves"],
        "wrong": _wrong_rows(tree, classes),
        "lines": lines,
        "first": lines[0][1],
    }


def _question(split: dict[str, Any], kinds: Mapping[str, str]) -> str:
    """Describe a split whose column and categories are given by name."""
    schema = (
        ColumnSchema(
            name=split["feature"],
            # the data set's column may have another kind by now
            kind=ColumnKind.CATEGORICAL
            if "categories" in split
            else ColumnKind(kinds.get(split["feature"], ColumnKind.NUMERIC)),
            categories=tuple(split.get("categories", ())),
        ),
    )
    return split_text(split_from_json(split, schema), schema)
