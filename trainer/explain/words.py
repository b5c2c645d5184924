"""Write an explained row in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.errors import list_names
from trainer.table import ColumnSchema
from trainer.tree.describe import empty_text
from trainer.tree.numbers import column_number, in_list, label, number_text, schema_number, unit

MAX_RANGES = 6  # limit on the ranges of a column that a sentence lists


def words_of(record: Mapping[str, Any]) -> list[str]:
    """Write a record of `trainer.explain.record.explain_row` as lines of text."""
    lines = [f"Row {record['row']}: {record['label'] if record['label'] is not None else 'no answer'}"]
    lines += [f"  {step_text(step)}" for step in record["path"]]
    if outside := record.get("out_of_range"):
        lines.append(f"  outside the training range: {list_names(outside)}")
    if record["flip"] is None:
        return [*lines, f"  {record['no_flip']}"]
    lines.append(f"  The smallest change: {flip_text(record['flip'])}")
    return [*lines, *(f"  Or: {flip_text(flip)}" for flip in record["alternatives"])]


def step_text(step: Mapping[str, Any]) -> str:
    """Write a step of the path: "age is 31 (<= 40; 9 away)", or "age was empty; empty cells go to no here"."""
    if step.get("empty"):
        unseen = "" if step["empty_seen"] else ", as most training rows do: none of them had an empty cell here"
        return empty_text([label(name) for name in step["empty"]], step["answer"]) + unseen
    name = "the weighted sum of " + ", ".join(step["terms"]) if step.get("terms") else label(step["column"])
    if step["op"] in ("is missing", "is not missing"):
        value = value_text(step["value"], step["column"])
        return f"{name} is {value}" + ("" if step["value"] is None else ", so it is not empty")
    away = "" if step["distance"] is None else f"; {number_text(step['distance'])} away"
    filled = "".join(
        f"; {label(column)} was empty and counts as {number_text(value, full=True)}"
        for column, value in step.get("filled", {}).items()
    )
    return f"{name} is {value_text(step['value'], step['column'] or '')} ({_limit_text(step)}{away}{filled})"


def _limit_text(step: Mapping[str, Any]) -> str:
    """Write the condition of a step: "<= 40", "not between 18 and 40", "in red, blue"; an open range is one comparison."""
    op = step["op"]
    limit = step["threshold"]
    name = step["column"] or ""
    if not isinstance(limit, list):
        return f"{op} {value_text(limit, name)}"
    if op in ("in", "not in"):
        return f"{op} {', '.join(in_list(str(category)) for category in limit)}"
    low, high = limit
    if low is not None and high is not None:
        return f"{op} {value_text(low, name)} and {value_text(high, name)}"
    sign = ">" if (low is not None) == (op == "between") else "<="
    end = high if low is None else low
    return f"{sign} {value_text(end, name)}"


def flip_text(flip: Mapping[str, Any]) -> str:
    """Write a flip in one sentence."""
    changes = " and ".join(
        f"{label(name)} were {value_text(to, name)} instead of {value_text(at, name)}"
        for name, (at, to) in flip["changes"].items()
    )
    sure = "proved: no smaller permitted change gives it" if flip["proved"] else "not proved to be the smallest"
    words = f"the answer would be {flip['label']} if {changes} (size {number_text(flip['distance'])}; {sure})."
    return f"{words} {unasked_text(flip)}".rstrip()


def unasked_text(flip: Mapping[str, Any]) -> str:
    """Write why a questionnaire may show a larger change: this one depends on columns that it does not ask."""
    if not flip["unasked"]:
        return ""
    names = " and ".join(f"{label(name)} ({value_text(value, name)})" for name, value in flip["unasked"].items())
    return (
        f"The change depends on {names}, which the path of this row does not ask. "
        "A questionnaire ends before that question and may show a larger change."
    )


def enough_texts(column: ColumnSchema, enough: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the values of a column that are enough for another answer, as `reasons_record` has them: one sentence per answer."""
    name = label(column.name)
    if not enough:
        return [f"No change of {name} alone leads to another answer."]
    ranges: dict[str, list[str]] = {}
    for item in enough:
        ranges.setdefault(item["label"], []).append(_range_text(column, item))
    return [
        f"{name} {' or '.join(words[:MAX_RANGES])}{_more(words)} is enough for the answer {answer}."
        for answer, words in ranges.items()
    ]


def _more(words: Sequence[str]) -> str:
    return f" or in one of {len(words) - MAX_RANGES} more ranges" if len(words) > MAX_RANGES else ""


def _range_text(column: ColumnSchema, item: Mapping[str, Any]) -> str:
    if "categories" in item:
        return list_names([in_list(name) for name in item["categories"]], MAX_RANGES)
    if "values" in item:
        return " or ".join(map(str, item["values"]))
    ends = [
        f"{word} {schema_number(column, item[name])}{unit(column)}"
        for word, name in (("above", "above"), ("up to", "at_most"))
        if item[name] is not None
    ]
    return " and ".join(ends) or "with any value"


def short_flip_text(flip: Mapping[str, Any]) -> str:
    """Write only the changes of a flip: "income 3000 -> 3200; age 30 -> 31"."""
    return "; ".join(
        f"{label(name)} {value_text(at, name)} -> {value_text(to, name)}" for name, (at, to) in flip["changes"].items()
    )


def value_text(value: Any, name: str = "") -> str:
    """Write a value of the column `name`: a number in full, or text."""
    if value is None:
        return "empty"
    return column_number(name, float(value)) if isinstance(value, int | float) else str(value)
