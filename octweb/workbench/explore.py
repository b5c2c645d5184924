"""Compute the page of all good trees, and read its form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from octweb.workbench.actions import current, last_tree, setting_names_of
from octweb.workbench.minis import legend, picture
from octweb.workbench.models import Step, Workbench
from octweb.workbench.models import StepKind as StepKind
from trainer.data.cost_text import read_costs
from trainer.errors import ParameterError
from trainer.families.exact.rashomon.chosen import RATES, amount
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.describe import split_text
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree
from trainer.tree.numbers import number_text
from trainer.tree.splits import split_from_json

LISTED = 24
DEFAULT_SLACK = "0.01"
ROUNDING = 1e-9  # rows by which two equal objectives may differ after rounding
# The fields are in the order of the form.
FIELDS = (
    "slack", "slack_cost", "max_leaves", "must", "without", "recalls", "agree_rows", "groups", "difference", "favoured", "rate",
)  # fmt: skip
RATE_WORDS = {"parity": "among all rows of a group", "opportunity": "among the rows of that class"}


def request_of(form: Any) -> dict[str, Any]:
    """Return the request in a form. Raises ParameterError with a sentence for each invalid field."""
    request: dict[str, Any] = {"listed": LISTED}
    if form.get("slack_cost", "").strip():
        request["slack_cost"] = form["slack_cost"].strip()
    else:
        request["slack"] = form.get("slack", "").strip() or DEFAULT_SLACK
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
    for name in ("slack", "slack_cost"):
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
    line = "row" if bench.dataset.source_name.lower().endswith(".parquet") else "line"
    if step is None:
        return {
            "step": None,
            "columns": columns,
            "slack": DEFAULT_SLACK,
            "request": {},
            "rates": _rates(costs),
            "line": line,
            "costs": costs,
        } | field_errors({})
    result = step.result
    first = list((result.get("first_questions") or {}).items())
    total = max([n for _, n in first], default=1)
    return {
        "step": step,
        "columns": columns,
        "slack": step.request.get("slack", "" if "slack_cost" in step.request else DEFAULT_SLACK),
        "request": step.request,
        "rates": _rates(costs),
        "line": line,
        "costs": costs,
        "tolerance_words": _tolerance_words(step.request, costs),
        "recalls": "; ".join(f"{name}: {share}" for name, share in (step.request.get("recalls") or {}).items()),
        "found": result,
        "working": not step.is_finished,
        "first": [(text, n, 100 * n / total) for text, n in first[:30]],
        "first_more": max(0, len(first) - 30),
        "need": [
            {
                "name": name, "trees": v["trees"], "least": 100 * v["asked_least"], "most": 100 * v["asked_most"],
                "width": 100 * (v["asked_most"] - v["asked_least"]), "lost": _importance_range(v, costs),
            }
            for name, v in sorted((result.get("columns") or {}).items(), key=lambda item: -item[1]["trees"])
            if v["trees"]
        ],
        "rows": _disputed_rows(result),
        "chips": _chips(step.request),
        "funnel": _funnel(result),
        "trees": [
            _outline(tree, kinds) | {"number": k, "picture": picture(tree["nodes"]), "title": _title(k, tree, result, costs)}
            for k, tree in enumerate(result.get("trees") or (), start=1)
        ],
        "legend": legend(result.get("trees") or []),
        "within": _slack_rows(result),
        "within_cost": _excess(result.get("limit_cost"), result),
    } | field_errors(refused_by(step))  # fmt: skip


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
        for n in ("slack", "slack_cost", "max_leaves", "agree_rows", *groups)
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


def pair(result: Mapping[str, Any], query: Mapping[str, str]) -> dict[str, Any] | None:
    """Return two listed trees to compare side by side, or None if fewer than two can be compared.

    The query may select them as `a` and `b`. By default they are the first tree and the next one with different
    answers.
    """
    trees = result.get("trees") or []
    differ = result.get("differ") or []
    if len(differ) < 2:
        return None
    second = next((k for k, rows in enumerate(differ[0], start=1) if rows), 2)
    a, b = (_number(query.get(name, ""), len(differ)) or k for name, k in (("a", 1), ("b", second)))
    of = (result.get("rows") or {}).get("of")
    return {
        "choices": [
            {"number": k, "objective": tree["objective"], "leaves": tree["leaves"]} for k, tree in enumerate(trees[: len(differ)], start=1)
        ],
        "sides": [("A", a, trees[a - 1]), ("B", b, trees[b - 1])],
        "differ": differ[a - 1][b - 1],
        "of": of,
    }  # fmt: skip


def _number(text: str, most: int) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 and 1 <= int(text) <= most else None


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


def _tolerance_words(request: Mapping[str, Any], costs: dict[str, str] | None) -> str:
    if costs is not None and "slack_cost" in request:
        return f"{request['slack_cost']} {costs['unit']}".strip()
    return str(request.get("slack") or request.get("slack_rows") or "")


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
            "row": line["row"], "actual": line["actual"], "disagree": 100 * line["disagree"],
            "answers": [(name, 100 * number / count) for name, number in line["answers"].items()],
        }
        for line in rows["listed"]
    ]  # fmt: skip
    return {"depends": rows["depends"], "of": rows["of"], "lines": lines}


def _title(number: int, tree: dict[str, Any], result: dict[str, Any], costs: dict[str, str] | None) -> str:
    """Return the heading of a listed tree: its cost, or the number of rows by which it is worse than the best tree."""
    if costs is not None and "cost" in tree:
        return f"{number}. {number_text(tree['cost'], 5)} {costs['unit']}".rstrip()
    more = _extra_errors(tree, result)
    if more is None:
        return f"{number}."
    if not more:
        return "Optimal"
    return "under +0.1 rows" if more < 0.05 else f"+{more:.1f} rows"


def _extra_errors(tree: dict[str, Any], result: dict[str, Any]) -> float | None:
    """Return the number of rows by which a tree is worse than the best tree, or None if the number of rows is unknown."""
    if not result.get("rows"):
        return None
    more = (result["optimum"] - tree["objective"]) * result["rows"]["of"]
    return more if more > ROUNDING else 0.0


def _slack_rows(result: dict[str, Any]) -> float | None:
    """Return the tolerance of good trees in rows, or None if the number of rows is unknown."""
    if result.get("limit") is None or not result.get("rows"):
        return None
    return (result["optimum"] - result["limit"]) * result["rows"]["of"]


def _outline(tree: dict[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the splits and leaves of a listed tree as indented lines, with its objective and number of leaves."""
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
    return {"objective": tree["objective"], "leaves": tree["leaves"], "lines": lines, "first": lines[0][1]}


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
