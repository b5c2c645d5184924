"""What the page of all good trees shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octweb.workbench.models import Kind as StepKind
from octweb.workbench.models import Workbench
from trainer.errors import ParameterError
from trainer.table import ColumnSchema, Kind
from trainer.tree.describe import split_text
from trainer.tree.splits import split_from_json

LISTED = 24
DEFAULT_SLACK = "0.01"
RATE_WORDS = {"parity": "among all rows of a group", "opportunity": "among the rows of that class"}


def request_of(form: Any) -> dict[str, Any]:
    """The question of a form; raises ParameterError."""
    request: dict[str, Any] = {"slack": form.get("slack", "").strip() or DEFAULT_SLACK, "listed": LISTED}
    request["must"] = [name for name in form.getlist("must") if name]
    request["without"] = [name for name in form.getlist("without") if name]
    most = form.get("max_leaves", "").strip()
    if most:
        if not most[:10].isdecimal() or len(most) > 9 or int(most) < 1:
            raise ParameterError({"max_leaves": f"'{most[:40]}' is not a whole number of leaves."})
        request["max_leaves"] = int(most)
    request["recalls"] = _recalls(form.get("recalls", ""))
    if form.get("difference", "").strip():
        request["difference"] = form["difference"].strip()[:40]
        for name in ("groups", "rate", "favoured"):
            if form.get(name, "").strip():
                request[name] = form[name].strip()
    if form.get("agree_rows", "").strip():
        request["agree_rows"] = form["agree_rows"].strip()
    return request


def _recalls(text: str) -> dict[str, str]:
    """Least recalls as in 'yes: 0.9; no: 0.8'; raises ParameterError."""
    found = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, colon, share = item.rpartition(":")
        if not colon:
            raise ParameterError({"recalls": f"'{item[:80]}' has no share; write as in 'yes: 0.9; no: 0.8'."})
        found[name.strip()] = share.strip()
    return found


def context(bench: Workbench) -> dict[str, Any]:
    """The newest question about good trees with its answer."""
    step = bench.steps.filter(kind=StepKind.GOOD).last()
    kinds = {c["name"]: c["kind"] for c in bench.dataset.columns if c.get("role") == "feature"}
    columns = list(kinds)
    line = "row" if bench.dataset.source_name.lower().endswith(".parquet") else "line"
    if step is None:
        return {
            "step": None,
            "columns": columns,
            "slack": DEFAULT_SLACK,
            "request": {},
            "rates": RATE_WORDS,
            "line": line,
        }
    found = step.result
    first = list((found.get("first_questions") or {}).items())
    total = max([n for _, n in first], default=1)
    return {
        "step": step,
        "columns": columns,
        "slack": step.request.get("slack", DEFAULT_SLACK),
        "request": step.request,
        "rates": RATE_WORDS,
        "line": line,
        "recalls": "; ".join(f"{name}: {share}" for name, share in (step.request.get("recalls") or {}).items()),
        "found": found,
        "working": not step.is_finished,
        "first": [(text, n, 100 * n / total) for text, n in first[:30]],
        "first_more": max(0, len(first) - 30),
        "need": [
            {
                "name": name, "trees": v["trees"], "least": 100 * v["asked_least"], "most": 100 * v["asked_most"],
                "width": 100 * (v["asked_most"] - v["asked_least"]), "lost": _lost(v),
            }
            for name, v in sorted((found.get("columns") or {}).items(), key=lambda item: -item[1]["trees"])
            if v["trees"]
        ],
        "rows": _disputed(found),
        "trees": [_outline(tree, kinds) | {"number": k} for k, tree in enumerate(found.get("trees") or (), start=1)],
        "slack_rows": _rows(found),
    }  # fmt: skip


def _lost(column: dict[str, Any]) -> tuple[float, float] | None:
    """Least and largest importance of a column in percent of the rows, where it was computed."""
    least, most = column.get("importance_least"), column.get("importance_most")
    return None if least is None or most is None else (100 * least, 100 * most)


def _disputed(found: dict[str, Any]) -> dict[str, Any] | None:
    """The rows whose answer depends on which good tree was chosen, with shares in percent."""
    rows, count = found.get("rows"), found.get("count")
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


def _rows(found: dict[str, Any]) -> float | None:
    return None if found.get("limit") is None else found["optimum"] - found["limit"]


def _outline(tree: dict[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Questions and answers of a listed tree as indented lines."""
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
    return {"objective": tree["objective"], "leaves": tree["leaves"], "lines": lines}


def _question(split: dict[str, Any], kinds: Mapping[str, str]) -> str:
    """A test that is listed by names, in the words of its kind."""
    schema = (
        ColumnSchema(
            name=split["feature"],
            # the data set's column may have another kind by now
            kind=Kind.CATEGORICAL if "categories" in split else Kind(kinds.get(split["feature"], Kind.NUMERIC)),
            categories=tuple(split.get("categories", ())),
        ),
    )
    return split_text(split_from_json(split, schema), schema)
