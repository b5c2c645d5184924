"""What the answers of a tree cost, counted again from the costs that the parameters name.

A search sees a copy of each row for each answer. It weighs what the answer saves against the dearest answer of its row.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter, read_fraction, split_items
from trainer.check.recount.findings import TOLERANCE, Finding, recounted
from trainer.check.recount.table.rows import TableRows, take_rows
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import penalty, route

CLAIM = "costs"
EACH_ROW = "rows"  # the text of the parameter where each row has costs of its own
MEASURES = ("cost", "cost_per_row", "constant_cost", "cost_confusion")  # of a set of rows
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
TERM = re.compile(rf"({NUMBER})(?:\s*\*\s*(.+))?", re.ASCII | re.DOTALL)
# what a search over copies would count in copies, with the values that ask for nothing
COUNTING = {
    "min_leaf": (1,), "min_node": (2,), "min_gain": (0,), "class_weight": (), "optimal_trees": (0,), "recall": (), "fairness": (),
    "paper_lambda": (), "coefficient_penalty": (0,), "pareto": (), "then_fewest": (), "sensitivity": (), "specificity": (), "frontier": (),
    "negative_weight": ("1", 1),
}  # fmt: skip
MOST_COPIES = 1 << 28
MOST_COST = 1 << 61
EXPONENTS = range(-18, 30)  # of the steps to which costs are rounded

Term = tuple[Fraction, str | None]  # a number, or a column times it


class AnswerCosts(NamedTuple):
    """What each answer costs in each row, `each` * `step`, in `unit`; `rows`: weights; `error`: of any total through rounding.

    `even`: the copies of every row weigh the same together, so that the weight of a leaf counts rows.
    """

    each: np.ndarray
    rows: np.ndarray
    step: Fraction
    error: float
    unit: str
    even: bool

    @property
    def values(self) -> np.ndarray:
        """The costs with the weights of the rows."""
        return np.asarray(self.each * self.rows[:, None])

    @property
    def savings(self) -> np.ndarray:
        """What each answer saves against the dearest one of its row, with what makes copies even."""
        saved = self.each.max(axis=1, keepdims=True) - self.each
        if self.even:
            saved = saved.shape[1] * saved + self._missing(saved)[:, None]
        return np.asarray(saved * self.rows[:, None])

    @staticmethod
    def _missing(saved: np.ndarray) -> np.ndarray:
        together = saved.sum(axis=1)
        return np.asarray(together.max(initial=0) - together)

    @property
    def scale(self) -> int:
        return self.each.shape[1] if self.even else 1

    @property
    def padding(self) -> int:
        """What the right copies of any tree weigh beyond its savings."""
        saved = self.each.max(axis=1, keepdims=True) - self.each
        return int((self._missing(saved) * self.rows).sum()) if self.even else 0

    def leaf_size(self, rows: int) -> int:
        """The least weight of the copies of so many rows."""
        saved = self.each.max(axis=1, keepdims=True) - self.each
        return math.ceil(Fraction(rows * self.scale * int(saved.sum(axis=1).max()), self.divisor))

    @property
    def divisor(self) -> int:
        return max(1, int(np.gcd.reduce(self.savings, axis=None)))

    @property
    def weight(self) -> int:
        """Of all copies, in steps."""
        return int(self.savings.sum())

    def of_answers(self, answers: np.ndarray) -> int:
        """The cost of an answer to each row, in steps."""
        return int(self.values[np.arange(len(answers)), answers].sum())


def answer_costs(model: dict[str, Any], rows: ModelTable) -> AnswerCosts | None:
    """The costs of some rows; None if the parameters name none. Raises ValueError for costs that no training takes."""
    terms, unit = _terms(model)
    if terms is None:
        return None
    blocks = list(_blocks(model, terms, rows) if terms else _own_blocks(rows))
    classes = len(model["classes"])
    even = int(active_parameter(model, "min_leaf") or 1) > 1 or bool(active_parameter(model, "column_price"))
    common = math.lcm(*(level.denominator for *_, levels, place in blocks if len(place) for level in levels))
    steps = [Fraction(1, common)] if common <= MOST_COST else []
    steps += [step for step in (Fraction(10) ** k for k in EXPONENTS) if step * common > 1]
    for step in steps:
        found = _rounded(rows, blocks, step, classes, unit, even)
        if found is not None:
            return found
    raise ValueError("the costs are too large")


Block = tuple[np.ndarray, int, list[Fraction], np.ndarray]  # rows, answer, and the cost of each row: levels[place]


def _blocks(model: dict[str, Any], terms: list[list[Term]], rows: ModelTable) -> Iterator[Block]:
    place = {c["name"]: j for j, c in enumerate(model["columns"])}
    for k, own in enumerate(terms):
        at = np.flatnonzero(rows.labels == k)
        for answer, (factor, column) in enumerate(own):
            cells = np.ones(len(at)) if column is None else rows.columns[place[column]][at]
            values, where = np.unique(cells + 0.0, return_inverse=True)
            if not (values >= 0).all():
                raise ValueError("a cost is negative, or its cell is empty")
            yield at, answer, [factor * Fraction(repr(float(value))) for value in values], where.reshape(-1)


def _own_blocks(rows: ModelTable) -> Iterator[Block]:
    """The costs of each answer where each row has its own."""
    if rows.costs is None:
        raise ValueError("the file does not list the costs of its rows")
    for answer, cells in enumerate(rows.costs.T):
        values, where = np.unique(cells + 0.0, return_inverse=True)
        yield np.arange(len(rows)), answer, [Fraction(repr(float(value))) for value in values], where.reshape(-1)


def _rounded(
    rows: ModelTable, blocks: Sequence[Block], step: Fraction, classes: int, unit: str, even: bool
) -> AnswerCosts | None:
    total = int(rows.plain.sum()) * classes ** (3 if even else 1)
    if any(max(levels) / step * total > MOST_COST for *_, levels, place in blocks if len(place)):
        return None
    values = np.zeros((len(rows), classes), np.int64)
    off = np.zeros((len(rows), classes))
    for at, answer, levels, place in blocks:
        whole = [round(level / step) for level in levels]
        values[at, answer] = np.array(whole, np.int64)[place]
        off[at, answer] = np.array([float(abs(a - b * step)) for a, b in zip(levels, whole, strict=True)])[place]
    found = AnswerCosts(values, rows.plain, step, float((off.max(axis=1) * rows.plain).sum()), unit, even)
    return found if found.weight // found.divisor <= MOST_COPIES else None


def _terms(model: dict[str, Any]) -> tuple[list[list[Term]] | None, str]:
    """The cost of each answer for each true class, and the unit.

    None if the parameters name no costs, nothing where each row has its own.
    """
    text = str(active_parameter(model, "costs") or "").strip()
    unit = str(active_parameter(model, "cost_unit") or "").strip()
    if text in ("", EACH_ROW):
        return (None if not text else []), unit
    classes = model["classes"]
    given: dict[tuple[str, str], str] = {}
    if text.startswith("{"):
        record = json.loads(text, parse_float=str, parse_int=str)
        own = record.get("costs", record)
        unit = unit or (str(record.get("unit") or "").strip() if "costs" in record else "")
        given = {(true, answer): str(value) for true, row in own.items() for answer, value in row.items()}
    else:
        for item in split_items(text):
            pair, value = _pair(item, classes)
            given[pair] = value
    if not all(true in classes and answer in classes for true, answer in given):
        raise ValueError("the costs name an unknown class")
    found = [[_term(given.get((true, answer), str(int(true != answer)))) for answer in classes] for true in classes]
    return found, unit


def _pair(item: str, classes: Sequence[str]) -> tuple[tuple[str, str], str]:
    """True class and answer of "bad>good=5", and the cost behind them."""
    for arrow in re.finditer(">", item):
        for equals in re.finditer("=", item[arrow.end() :]):
            at = arrow.end() + equals.start()
            pair = item[: arrow.start()].strip(), item[arrow.end() : at].strip()
            if set(pair) <= set(classes):
                return pair, item[at + 1 :]
    raise ValueError(f"there are no costs {item[:40]!r}")


def _term(text: str) -> Term:
    match = TERM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"there is no cost {text[:40]!r}")
    return read_fraction(match[1]), None if match[2] is None else match[2].strip()


def copies_of(rows: ModelTable, costs: AnswerCosts) -> ModelTable:
    """The rows as the search sees them, with copies of no weight; the first copy of each row counts in quantiles."""
    n, classes = costs.each.shape
    at = np.repeat(np.arange(n), classes)
    plain = np.where(np.arange(n * classes) % classes == 0, rows.plain[at], 0)
    return ModelTable(
        [own[at] for own in rows.columns],
        np.tile(np.arange(classes, dtype=np.int32), n),
        (costs.savings // costs.divisor).reshape(-1),
        plain,
    )


def answers_of(model: dict[str, Any], nodes: Sequence[dict[str, Any]], leaf: np.ndarray) -> np.ndarray:
    """The answer of the leaf of each row."""
    said = np.array([model["classes"].index(v["class"]) if "class" in v else -1 for v in nodes])
    return np.asarray(said[leaf])


def cost_objective(model: dict[str, Any], costs: AnswerCosts, leaf: np.ndarray) -> Fraction:
    """What the tree of the file reaches of what is maximised: the share of the copies' weight, less the price of its leaves."""
    cost = costs.of_answers(answers_of(model, model["nodes"], leaf))
    saved = int(costs.values.max(axis=1).sum()) - cost
    right = costs.scale * saved + costs.padding
    return Fraction(right, costs.weight) - penalty(model) * len(leaves(model["nodes"]))


def leaf_scale(costs: AnswerCosts | None) -> Fraction:
    """What the leaf penalty of the parameters is multiplied by: the cost of the best constant answer, as a share of the copies' weight."""
    return Fraction(1) if costs is None else Fraction(int(costs.values.sum(axis=0).min()) * costs.scale, costs.weight)


def searched_model(model: dict[str, Any], costs: AnswerCosts | None) -> dict[str, Any]:
    """The model as the search of the copies sees it: with the weight of the copies of a smallest leaf."""
    if costs is None:
        return model
    rows = int(active_parameter(model, "min_leaf") or 1)
    parameters = model["parameters"]
    if costs.even and rows > 1:
        parameters = parameters | {"min_leaf": costs.leaf_size(rows)}
    certificate = model["certificate"]
    parts = [_of_copies(part, costs.each.shape[1]) for part in certificate.get("evidence") or []]
    return model | {"parameters": parameters, "certificate": certificate | {"evidence": parts}}


def _of_copies(part: dict[str, Any], answers: int) -> dict[str, Any]:
    """A part of the evidence whose groups of rows name their copies, which stand one after the other."""
    if part.get("kind") != "planes":
        return part
    groups = [
        group | {"rows": [row * answers + a for row in group["rows"] for a in range(answers)]}
        for group in part["groups"]
    ]
    return part | {"groups": groups}


def rows_per_weight(rows: ModelTable, costs: AnswerCosts | None) -> float:
    """As how many rows a unit of weight counts in impurities, which are stated in rows."""
    return 1.0 if costs is None else int(rows.plain.sum()) / (costs.weight // costs.divisor)


def check_costs(model: dict[str, Any], rows: ModelTable, costs: AnswerCosts | None, leaf: np.ndarray) -> list[Finding]:
    """The line on what the certificate says about costs."""
    said = model["certificate"].get("costs")
    if costs is None:
        stated = said is not None or "objective_cost" in (model["certificate"].get("optimum") or {})
        return [recounted(CLAIM, False, "The parameters name no costs.")] if stated else []
    if said is None:
        return [recounted(CLAIM, False, "The parameters name costs, and the certificate does not.")]
    given = model.get("parameters") or {}
    if model["method"] == "exact":  # its copies are even
        given = given | {"min_leaf": 1}
    odd = [name for name, off in COUNTING.items() if given.get(name) not in (None, False, "", "none", *off)]
    odd += ["goal"] if model["certificate"].get("goal") else []
    if odd:
        return [recounted(CLAIM, False, f"No training with costs takes '{odd[0]}'.")]
    own = _counted(model, rows, costs, leaf)
    wrong = [name for name, value in own.items() if not _same(said.get(name), value)]
    if wrong:
        words = f"'{wrong[0]}' is {str(own[wrong[0]])[:80]}; the file says {str(said.get(wrong[0]))[:80]}."
        return [recounted(CLAIM, False, words)]
    worth = float(costs.weight * costs.step / costs.scale)
    if not _same((model["certificate"].get("optimum") or {"objective_cost": worth}).get("objective_cost"), worth):
        return [recounted(CLAIM, False, f"An objective of 1 is worth {worth:.12g}, not what the file says.")]
    unit = f" {costs.unit}" if costs.unit else ""
    return [recounted(CLAIM, True, f"The answers cost {own['cost']:.12g}{unit} on {int(rows.plain.sum())} rows.")]


def _counted(model: dict[str, Any], rows: ModelTable, costs: AnswerCosts, leaf: np.ndarray) -> dict[str, Any]:
    """What a certificate states about costs."""
    step = costs.step
    cost = costs.of_answers(answers_of(model, model["nodes"], leaf))
    constants = costs.values.sum(axis=0)
    bound = model["certificate"].get("bound")
    most = int(costs.values.max(axis=1).sum())
    terms = [[_term_text(term) for term in row] for row in _terms(model)[0] or ()]
    classes = model["classes"]
    return {
        "unit": costs.unit,
        "costs": {true: dict(zip(classes, row, strict=True)) for true, row in zip(classes, terms, strict=bool(terms))},
        "step": str(step),
        "rounding_error": costs.error,
        "cost": float(cost * step),
        "cost_per_row": float(cost * step / int(rows.plain.sum())),
        "floor": float(int(costs.values.min(axis=1).sum()) * step),
        "leaf_price": float(penalty(model) * costs.weight * step / costs.scale),
        "best_constant": {"answer": classes[int(constants.argmin())], "cost": float(int(constants.min()) * step)},
        "least": None
        if bound is None
        else float((most - (read_fraction(bound) * costs.weight - costs.padding) / costs.scale) * step),
    }


def _term_text(term: Term) -> str:
    number = f"{float(term[0]):.15g}"
    number = number if Fraction(number) == term[0] else str(term[0])
    return number if term[1] is None else f"{number}*{term[1]}"


def _same(said: Any, own: Any) -> bool:
    """Whether the file says what was counted, numbers up to their rounding."""
    if isinstance(own, dict):
        return isinstance(said, dict) and said.keys() == own.keys() and all(_same(said[k], v) for k, v in own.items())
    if isinstance(own, list):
        return isinstance(said, list) and len(said) == len(own) and all(map(_same, said, own))
    if isinstance(own, float):
        return isinstance(said, int | float) and math.isclose(
            said, own, rel_tol=float(TOLERANCE), abs_tol=float(TOLERANCE)
        )
    return bool(said == own)


def cost_metrics(model: dict[str, Any], data: TableRows) -> list[Finding]:
    """One line for the costs on training rows, and one for those on held-out rows, where the file states any."""
    given = model.get("metrics") or {}
    parts = {"train": data.trains, "test": data.held_out}
    found = []
    for name, own in parts.items():
        stated = {key: value for key, value in (given.get(name) or {}).items() if key in MEASURES}
        if stated:
            counted = _cost_of_rows(model, take_rows(data.rows, own))
            words = f"The answers cost {counted.get('cost')} on these rows."
            found.append(recounted(f"metrics {name} cost", _same(stated, counted), words))
    return found


def _cost_of_rows(model: dict[str, Any], rows: ModelTable) -> dict[str, Any]:
    """What the tree's answers to some rows cost; nothing without costs."""
    costs = answer_costs(model, rows)
    if costs is None:
        return {}
    answers = answers_of(model, model["nodes"], route(model["nodes"], model["columns"], rows))
    cost = costs.of_answers(answers) * costs.step
    by_class = np.zeros((len(model["classes"]),) * 2, np.int64)
    np.add.at(by_class, (rows.labels, answers), costs.values[np.arange(len(rows)), answers])
    constant = model["classes"].index(model["certificate"]["costs"]["best_constant"]["answer"])
    return {
        "cost": float(cost),
        "cost_per_row": float(cost / int(rows.plain.sum())),
        "constant_cost": float(int(costs.values[:, constant].sum()) * costs.step),
        "cost_confusion": [[float(int(cell) * costs.step) for cell in row] for row in by_class],
    }
