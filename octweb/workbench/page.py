"""Compute the content of a workbench page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from octweb.workbench.models import Step, StepKind, StepState, Workbench
from trainer.editing.words import in_words, price_scale, price_words
from trainer.editing.words import wish_lines as lines_of_wishes
from trainer.training.claims import price_of_wishes
from trainer.tree.describe import number_text, split_text
from trainer.tree.file import ModelFile, from_json
from trainer.tree.numbers import decimal_text
from trainer.tree.render.outline import class_bar
from trainer.tree.render.palette import swatch

MOST_SHOWN = 40  # columns that a price list shows


@dataclass
class PageNode:
    """Node of the tree by its place, as the page draws it."""

    place: str
    rows: int
    text: str
    bar: list[dict[str, Any]]  # segments of its class bar
    classes: tuple[str, ...]
    column: str = ""
    wish: str = ""
    threshold: str = ""
    ranks: tuple[str, ...] = ()  # words of the ranks 1, 2, 3 of a column with a threshold
    # For a split on categories: all categories of the column, each with True if it goes to yes.
    categories: list[tuple[str, bool]] = field(default_factory=list)
    label: str = ""
    share: float = 0.0
    tags: list[str] = field(default_factory=list)
    yes: PageNode | None = None
    no: PageNode | None = None
    chosen: bool = False

    @property
    def name(self) -> str:
        return self.place or "root"

    @property
    def is_leaf(self) -> bool:
        return self.yes is None


def model_of(step: Step) -> ModelFile:
    """Return the model file of a step with a tree."""
    return from_json(json.loads(step.document))


def step_tree(step: Step, wishes: list[str], chosen: str | None) -> PageNode:
    """Return the tree of a step with the constraints at their places, numbered as in `wishes`.

    `chosen` is the selected place.
    """
    tree = model_of(step).tree
    tags: dict[str, list[str]] = {}
    for number, wish in enumerate(wishes, start=1):
        if wish not in step.wishes:  # the constraint was added after this tree
            continue
        words = wish.split(None, 2)
        tags.setdefault("" if words[1] == "root" else words[1], []).append(f"{number} {_short(words)}")

    def visit(node: int, place: str) -> PageNode:
        v = tree.nodes[node]
        total = max(1, v.rows)
        page_node = PageNode(
            place=place, rows=v.rows, text="", bar=class_bar(tree, v), classes=tree.classes, tags=tags.get(place, [])
        )
        page_node.chosen = chosen == page_node.name
        if v.split is None:
            page_node.label = tree.classes[v.label]
            page_node.text = tree.class_words[v.label]
            page_node.share = 100 * v.counts[v.label] / total
            return page_node
        page_node.text = split_text(v.split, tree.schema)
        page_node.column = tree.schema[v.split.used[0]].name
        page_node.wish = question_wish(page_node.name, v.split, tree.schema)
        if v.split.cut is not None:
            page_node.threshold = decimal_text(v.split.cut[1])
            page_node.ranks = tree.schema[v.split.cut[0]].ranks
        if v.split.among:
            levels = tree.schema[v.split.used[0]].categories
            page_node.categories = [(name, code in v.split.among) for code, name in enumerate(levels)]
        page_node.yes = visit(v.left, place + "y")
        page_node.no = visit(v.right, place + "n")
        return page_node

    return visit(0, "")


def spread(step: Step | None, place: PageNode | None) -> dict[str, Any] | None:
    """Return the context of a threshold slider: its stops, the rows by class between them, and the current stop.

    Return None if the node has no slider.
    """
    record = (step.result.get("spreads") or {}).get(place.name) if step is not None and place is not None else None
    if not record or place is None or not place.threshold:
        return None
    threshold = float(place.threshold)
    below = [i for i, value in enumerate(record["values"]) if float(value) <= threshold]
    values = list(record["values"])
    if place.ranks and below and int(threshold) == int(float(values[below[-1]])):
        values[below[-1]] = place.threshold  # the value of this rank in the menu
    return record | {
        "values": values,
        "classes": place.classes,
        "colours": [swatch(k, len(place.classes)) for k in range(len(place.classes))],
        "now": below[-1] if below else 0,
        "last": len(record["values"]) - 1,
    }


def rank_choices(place: PageNode | None) -> list[dict[str, Any]]:
    """Return the thresholds of a column of ranks with their words; the tree's own keeps its number. [] for numbers."""
    if place is None or not place.ranks:
        return []
    own = int(float(place.threshold))
    return [
        {"value": place.threshold if rank == own else str(rank), "word": word, "is_own": rank == own}
        for rank, word in enumerate(place.ranks[:-1], start=1)
    ]


def legend(place: PageNode | None) -> list[tuple[str, str]]:
    """Return the colour and the name of each class."""
    classes = place.classes if place else ()
    return [(swatch(k, len(classes)), name) for k, name in enumerate(classes)]


def question_wish(place: str, split: Any, schema: Any) -> str:
    """Return the constraint that fixes a split exactly as it is."""
    return f"ask {place} {split.wish(schema)}"


def places_in_words(tree: PageNode | None) -> dict[str, str]:
    """Return each place below the root by the answers that lead to it: "If “age ≤ 70” is no"."""
    words: dict[str, str] = {}

    def visit(node: PageNode, path: tuple[str, ...]) -> None:
        if path:
            words[node.name] = f"If {' and '.join(path)}"
        for below, answer in ((node.yes, "yes"), (node.no, "no")):
            if below is not None:
                visit(below, (*path, f"“{node.text}” is {answer}"))

    if tree is not None:
        visit(tree, ())
    return words


def _short(words: list[str]) -> str:
    tail = words[2].replace("<=", "≤") if len(words) == 3 else ""
    return {
        "ask": f"asks {tail}",
        "forbid": f"no {tail} below",
        "avoid": f"no {tail} here",
        "together": f"together: {tail}",
        "leaf": f"a leaf {tail}".strip(),
        "depth": f"at most {tail} more",
    }.get(words[0], words[0])


def find(place: PageNode | None, name: str) -> PageNode | None:
    """Return the node at the place with this name, or None if there is none."""
    if place is None or place.name == name:
        return place
    return find(place.yes, name) or find(place.no, name)


def wish_lines(
    step: Step | None, refused: Mapping[str, str], where: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the constraints of a step in words, with their prices, reasons, and errors from `refused`.

    `where` names the places of the tree. A price that is not known yet is None.
    """
    if step is None:
        return []
    records = step.result.get("wishes") or ()
    prices = {line["wish"]: line["price_words"] for line in lines_of_wishes(step.result)}
    price_of = {record["wish"]: prices[record["wish"]] for record in records if record["price"] is not None}
    conflict = set(step.result.get("conflict") or ())
    reasons = step.request.get("reasons") or {}
    lines = []
    for number, wish in enumerate(step.wishes, start=1):
        lines.append(
            {
                "number": number,
                "wish": wish,
                "words": in_words(wish, where),
                "conflict": wish in conflict,
                "price": price_of.get(wish),
                "reason": reasons.get(wish.strip(), ""),
                "refused": refused.get(wish, ""),
            }
        )
    return lines


def price_of(result: dict[str, Any]) -> str | None:
    """Describe the total price of all constraints of a result, or return None if it is unknown."""
    price = price_of_wishes(result)
    return None if price.least is None else price_words(price.least, price.unit)


def gap_words(result: dict[str, Any]) -> str:
    """Describe how much better a tree with the same constraints might still be, or return "" without a bound."""
    if not result or result.get("bound") is None:
        return ""
    if "cost_unit" in result:
        return f"no tree with these wishes costs less than {number_text(result['least'], 4)} {result['cost_unit']}".rstrip()
    scale, unit = price_scale(result)
    worse = (result["bound"] - result["objective"]) * scale
    return f"at most {price_words(worse, unit)} above the best possible with these wishes"


def history(bench: Workbench, limit: int = 30) -> list[dict[str, Any]]:
    """Return the newest requests for a tree with their changes in words, newest first."""
    steps = bench.steps.filter(kind=StepKind.COMPLETE).defer("document").order_by("-number")[:limit]
    lines = []
    before = {s.number: set(s.wishes) for s in steps}
    for step in steps:
        parent = before.get(step.parent, set())
        more = [in_words(w) for w in step.wishes if w not in parent] if step.parent else []
        less = [in_words(w) for w in parent if w not in step.wishes]
        words = "; ".join([*more, *(f"taken back: {w}" for w in less)]) or (
            "first tree" if not step.parent else "same wishes"
        )
        lines.append(
            {"step": step, "words": words, "price": price_of(step.result), "here": step.number == bench.position}
        )
    return lines


def price_lines(bench: Workbench, step: Step | None, place: str) -> dict[str, Any] | None:
    """Return the newest price list of a place for a step, or None without one.

    The lengths of its bars are relative to the highest price.
    """
    if step is None:
        return None
    price_steps = bench.steps.filter(kind=StepKind.PRICES, request__place=place).order_by("-number")[:20]
    price_step = next((s for s in price_steps if s.wishes == step.wishes and s.number > step.number), None)
    if price_step is None:
        return None
    lines = list(price_step.result.get("prices") or ())
    best: dict[str, dict[str, Any]] = {}
    for line in lines:  # the cheapest split of each column comes first
        best.setdefault(line["column"], line)
    dearest = max([line["price"] for line in best.values()], default=0.0) or 1.0
    visible = [
        line | {"percent": 100 * line["price"] / dearest, "amount": line.get("cost", line.get("rows"))}
        for line in list(best.values())[:MOST_SHOWN]
    ]
    return {
        "step": price_step, "unit": price_step.result.get("unit", "rows"), "lines": visible, "of": len(lines), "proved": sum(line["proved"] for line in lines),
        "working": not price_step.is_finished, "failed": price_step.error if price_step.state == StepState.FAILED else "",
    }  # fmt: skip
