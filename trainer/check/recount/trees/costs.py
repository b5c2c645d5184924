"""Recount the costs of a tree's answers from the parameters.

A search has a copy of each row for each answer, weighted by the savings against the most expensive answer of its row.
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
from trainer.check.recount.findings import TOLERANCE, Finding, recount_finding
from trainer.check.recount.table.rows import TableRows, take_rows
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import penalty, route

CLAIM = "costs"
EACH_ROW = "rows"  # value of the parameter `costs` if each row has its own costs
# measures of cost that the file states for a set of rows
MEASURES = ("cost", "cost_per_row", "constant_cost", "cost_confusion")
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
TERM = re.compile(rf"({NUMBER})(?:\s*\*\s*(.+))?", re.ASCII | re.DOTALL)
# parameters that count copies of rows instead of rows if costs are given, with the values that leave them inactive
COUNTING = {
    "min_leaf": (1,), "min_node": (2,), "min_gain": (0,), "class_weight": (), "optimal_trees": (0,), "recall": (), "fairness": (),
    "paper_lambda": (), "coefficient_penalty": (0,), "pareto": (), "then_fewest": (), "sensitivity": (), "specificity": (), "frontier": (),
    "negative_weight": ("1", 1),
}  # fmt: skip
MOST_COPIES = 1 << 28
MOST_COST = 1 << 61
EXPONENTS = range(-18, 30)  # decimal exponents of the steps to which costs are rounded

Term = tuple[Fraction, str | None]  # a number, and the column that it multiplies, if any


class AnswerCosts(NamedTuple):
    """The costs of each answer in each row, `each` * `step` in `unit`.

    `rows` are the weights in multiples of `unit_weight`. If that is not 1, `each` includes the weights. Rounding changes any total by at most `error`. If `even`, the copies of each row have the same total weight,
    so that the weight of a leaf counts rows. If `neutral`, rows whose answers cost the same have copies of the least weight.
    """

    each: np.ndarray
    rows: np.ndarray
    step: Fraction
    error: float
    unit: str
    even: bool
    neutral: bool
    unit_weight: Fraction

    @property
    def values(self) -> np.ndarray:
        """Return the costs times the weights of the rows."""
        return np.asarray(self.each * self.outside[:, None])

    @property
    def outside(self) -> np.ndarray:
        """Return the weights of the rows that `each` does not include."""
        return self.rows if self.unit_weight == 1 else np.ones_like(self.rows)

    @property
    def inside(self) -> np.ndarray:
        """Return the weights of the rows that `each` includes."""
        return np.ones_like(self.rows) if self.unit_weight == 1 else self.rows

    @property
    def total_weight(self) -> Fraction:
        return self.unit_weight * int(self.rows.sum())

    @property
    def dearest(self) -> int:
        """Return the largest sum of the savings of a row for one unit of weight, rounded up."""
        return int((-(-self._saved.sum(axis=1) // self.inside)).max(initial=0))

    @property
    def savings(self) -> np.ndarray:
        """Return the savings of each answer against the most expensive one of its row, padded if copies are even."""
        saved = self.scale * self._saved + self._missing[:, None]
        return np.asarray(saved * self.outside[:, None])

    @property
    def _saved(self) -> np.ndarray:
        return np.asarray(self.each.max(axis=1, keepdims=True) - self.each)

    @property
    def _missing(self) -> np.ndarray:
        """Return the extra weight of each copy of a row, without the weight that `each` does not include."""
        together = self._saved.sum(axis=1)
        if self.even:
            return np.asarray(self.dearest * self.inside - together)
        least = np.gcd.reduce(self._saved, axis=None) if self.neutral else 0
        return np.where(together == 0, least, 0)

    @property
    def scale(self) -> int:
        return self.each.shape[1] if self.even else 1

    @property
    def padding(self) -> int:
        """Return the weight of the correct copies of any tree beyond its savings."""
        return int((self._missing * self.outside).sum())

    def leaf_size(self, rows: int) -> int:
        """Return the least weight that the copies of `rows` rows can have."""
        return math.ceil(Fraction(rows * self.scale * self.dearest, self.divisor))

    @property
    def divisor(self) -> int:
        return max(1, int(np.gcd.reduce(self.savings, axis=None)))

    @property
    def weight(self) -> int:
        """Return the weight of all copies, in steps."""
        return int(self.savings.sum())

    def cost_of_answers(self, answers: np.ndarray) -> int:
        """Return the cost of one answer per row, in steps."""
        return int(self.values[np.arange(len(answers)), answers].sum())


def answer_costs(model: dict[str, Any], rows: ModelTable) -> AnswerCosts | None:
    """Return the costs of rows; None if the parameters name none. Raise ValueError for costs that training refuses."""
    terms, unit = _read_terms(model)
    if terms is None:
        return None
    blocks = list(_class_cost_blocks(model, terms, rows) if terms else _row_cost_blocks(rows))
    classes = len(model["classes"])
    even = int(active_parameter(model, "min_leaf") or 1) > 1 or bool(active_parameter(model, "column_price"))
    # a wish may ask for a question that separates only rows whose answers all cost the same, so these rows need a
    # weight
    neutral = "wishes" in model["certificate"]
    none = np.zeros((len(rows), classes), np.int64)
    largest = max((max(levels) for *_, levels, place in blocks if len(place)), default=Fraction(0))
    most = largest * rows.step * int(rows.plain.sum()) * classes ** (3 if even else 1)
    lost = 0.0
    if rows.step != 1:
        lost = _lost_by_weights(rows, blocks)
        blocks = [_weigh(rows, block) for block in blocks]
    common = math.lcm(*(level.denominator for *_, levels, place in blocks if len(place) for level in levels))
    steps = [Fraction(1, common)] if common <= MOST_COST else []
    steps += [step for step in (Fraction(10) ** k for k in EXPONENTS) if step * common > 1]
    for step in steps:
        if most / step > MOST_COST:
            continue
        empty = AnswerCosts(none, rows.plain, step, 0.0, unit, even, neutral, rows.step)
        rounded = _round_costs(rows, blocks, step, empty)
        if rounded is not None:
            return rounded._replace(error=rounded.error + lost)
    raise ValueError("the costs are too large")


# rows, answer, distinct costs, and for each row the index of its cost: levels[place]
Block = tuple[np.ndarray, int, list[Fraction], np.ndarray]


def costs_of_counts(model: dict[str, Any], class_rows: np.ndarray) -> AnswerCosts | None:
    """Return the costs of classes with these numbers of rows, as one row each; None if the parameters name none.

    Raises ValueError for costs that counts do not determine.
    """
    terms, unit = _read_terms(model)
    if terms is None:
        return None
    if not terms or any(column is not None for row in terms for _, column in row):
        raise ValueError("counts do not know the costs of each row")
    step = Fraction(1, math.lcm(*(factor.denominator for row in terms for factor, _ in row)))
    each = [[int(factor / step) for factor, _ in row] for row in terms]
    if max(map(max, each)) * int(class_rows.sum()) * len(each) > MOST_COST:
        raise ValueError("the costs are too large")
    return AnswerCosts(
        np.array(each, np.int64), class_rows, step, 0.0, unit, even=False, neutral=False, unit_weight=Fraction(1)
    )


def _class_cost_blocks(model: dict[str, Any], terms: list[list[Term]], rows: ModelTable) -> Iterator[Block]:
    place = {c["name"]: j for j, c in enumerate(model["columns"])}
    for k, class_terms in enumerate(terms):
        at = np.flatnonzero(rows.labels == k)
        for answer, (factor, column) in enumerate(class_terms):
            cells = np.ones(len(at)) if column is None else rows.columns[place[column]][at]
            values, where = np.unique(cells + 0.0, return_inverse=True)
            if not (values >= 0).all():
                raise ValueError("a cost is negative, or its cell is empty")
            yield at, answer, [factor * Fraction(repr(float(value))) for value in values], where.reshape(-1)


def _row_cost_blocks(rows: ModelTable) -> Iterator[Block]:
    """Yield the costs of each answer if each row has its own."""
    if rows.costs is None:
        raise ValueError("the file does not list the costs of its rows")
    for answer, cells in enumerate(rows.costs.T):
        values, where = np.unique(cells + 0.0, return_inverse=True)
        yield np.arange(len(rows)), answer, [Fraction(repr(float(value))) for value in values], where.reshape(-1)


def _weigh(rows: ModelTable, block: Block) -> Block:
    """Return the costs of a block times the weights of its rows."""
    at, answer, levels, place = block
    pairs = list(zip(place.tolist(), rows.plain[at].tolist(), strict=True))
    index = {pair: i for i, pair in enumerate(sorted(set(pairs)))}
    products = [levels[level] * weight * rows.step for level, weight in index]
    return at, answer, products, np.array([index[pair] for pair in pairs], np.int64)


def _lost_by_weights(rows: ModelTable, blocks: Sequence[Block]) -> float:
    """Return how much the rounding of the weights can change the cost of any tree."""
    highest = np.zeros(len(rows))
    for at, _, levels, place in blocks:
        highest[at] = np.maximum(highest[at], np.array([float(level) for level in levels])[place])
    weights = [int(weight) * rows.step for weight in rows.plain]
    given = [] if rows.given is None else rows.given.tolist()
    off = [0.0 if float(w) == g else abs(float(w - Fraction(repr(g)))) for w, g in zip(weights, given, strict=True)]
    return float(highest @ np.array(off))


def _round_costs(rows: ModelTable, blocks: Sequence[Block], step: Fraction, costs: AnswerCosts) -> AnswerCosts | None:
    """Return `costs` with values that are rounded to multiples of a step; None if they are too large."""
    values = costs.each.copy()
    off = np.zeros(values.shape)
    for at, answer, levels, place in blocks:
        steps = [round(level / step) for level in levels]
        values[at, answer] = np.array(steps, np.int64)[place]
        off[at, answer] = np.array([float(abs(a - b * step)) for a, b in zip(levels, steps, strict=True)])[place]
    costs = costs._replace(each=values)
    costs = costs._replace(error=float((off.max(axis=1) * costs.outside).sum()))
    return costs if costs.weight // costs.divisor <= MOST_COPIES else None


def _read_terms(model: dict[str, Any]) -> tuple[list[list[Term]] | None, str]:
    """Read the cost of each answer for each true class, and the unit.

    The costs are None if the parameters name none, and empty if each row has its own.
    """
    text = str(active_parameter(model, "costs") or "").strip()
    unit = str(active_parameter(model, "cost_unit") or "").strip()
    if text in ("", EACH_ROW):
        return (None if not text else []), unit
    classes = model["classes"]
    stated: dict[tuple[str, str], str] = {}
    if text.startswith("{"):
        record = json.loads(text, parse_float=str, parse_int=str)
        by_class = record.get("costs", record)
        unit = unit or (str(record.get("unit") or "").strip() if "costs" in record else "")
        stated = {(true, answer): str(value) for true, row in by_class.items() for answer, value in row.items()}
    else:
        for item in split_items(text):
            pair, value = _read_pair(item, classes)
            stated[pair] = value
    if not all(true in classes and answer in classes for true, answer in stated):
        raise ValueError("the costs name an unknown class")
    terms = [
        [_read_term(stated.get((true, answer), str(int(true != answer)))) for answer in classes] for true in classes
    ]
    return terms, unit


def _read_pair(item: str, classes: Sequence[str]) -> tuple[tuple[str, str], str]:
    """Split "bad>good=5" into true class and answer, and the text of the cost."""
    for arrow in re.finditer(">", item):
        for equals in re.finditer("=", item[arrow.end() :]):
            at = arrow.end() + equals.start()
            pair = item[: arrow.start()].strip(), item[arrow.end() : at].strip()
            if set(pair) <= set(classes):
                return pair, item[at + 1 :]
    raise ValueError(f"{item[:40]!r} names no known pair of classes: expected TRUE>ANSWER=COST")


def _read_term(text: str) -> Term:
    match = TERM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a cost: expected NUMBER or NUMBER*COLUMN")
    return read_fraction(match[1]), None if match[2] is None else match[2].strip()


def copies_of(rows: ModelTable, costs: AnswerCosts) -> ModelTable:
    """Return the copies of the rows that a search uses, also those of weight 0; quantiles count the first of each row."""
    n, classes = costs.each.shape
    at = np.repeat(np.arange(n), classes)
    plain = np.where(np.arange(n * classes) % classes == 0, rows.plain[at], 0)
    return ModelTable(
        [column[at] for column in rows.columns],
        np.tile(np.arange(classes, dtype=np.int32), n),
        (costs.savings // costs.divisor).reshape(-1),
        plain,
    )


def answers_of(model: dict[str, Any], nodes: Sequence[dict[str, Any]], leaf: np.ndarray) -> np.ndarray:
    """Return the class of the leaf of each row, as a position in the list of classes."""
    answers = np.array([model["classes"].index(v["class"]) if "class" in v else -1 for v in nodes])
    return np.asarray(answers[leaf])


def cost_objective(model: dict[str, Any], costs: AnswerCosts, leaf: np.ndarray) -> Fraction:
    """Return the objective of the tree: its share of the weight of all copies minus the price of its leaves."""
    cost = costs.cost_of_answers(answers_of(model, model["nodes"], leaf))
    saved = int(costs.values.max(axis=1).sum()) - cost
    right = costs.scale * saved + costs.padding
    return Fraction(right, costs.weight) - penalty(model) * len(leaves(model["nodes"]))


def leaf_scale(costs: AnswerCosts | None) -> Fraction:
    """Return the factor of the leaf penalty: the cost of the best constant answer as a share of the copies' weight."""
    return Fraction(1) if costs is None else Fraction(int(costs.values.sum(axis=0).min()) * costs.scale, costs.weight)


def searched_model(model: dict[str, Any], costs: AnswerCosts | None) -> dict[str, Any]:
    """Return the model for a search over copies: its smallest leaf is a weight of copies."""
    if costs is None:
        return model
    rows = int(active_parameter(model, "min_leaf") or 1)
    parameters = model["parameters"]
    if costs.even and rows > 1:
        parameters = parameters | {"min_leaf": costs.leaf_size(rows)}
    certificate = model["certificate"]
    parts = [_evidence_of_copies(part, costs.each.shape[1]) for part in certificate.get("evidence") or []]
    return model | {"parameters": parameters, "certificate": certificate | {"evidence": parts}}


def _evidence_of_copies(part: dict[str, Any], answers: int) -> dict[str, Any]:
    """Return a part of the evidence whose groups of rows list the copies of these rows."""
    if part.get("kind") != "planes":
        return part
    groups = [
        group | {"rows": [row * answers + a for row in group["rows"] for a in range(answers)]}
        for group in part["groups"]
    ]
    return part | {"groups": groups}


def rows_per_weight(rows: ModelTable, costs: AnswerCosts | None) -> float:
    """Return the rows per unit of weight, since impurities are stated in rows."""
    return 1.0 if costs is None else int(rows.plain.sum()) / (costs.weight // costs.divisor)


def check_costs(model: dict[str, Any], costs: AnswerCosts | None, leaf: np.ndarray) -> list[Finding]:
    """Check the costs of the certificate; `leaf` is the leaf of each row."""
    cost = 0 if costs is None else costs.cost_of_answers(answers_of(model, model["nodes"], leaf))
    return check_cost_record(model, costs, cost)


def check_cost_record(model: dict[str, Any], costs: AnswerCosts | None, cost: int) -> list[Finding]:
    """Check the costs of the certificate; `cost` is that of the tree's answers, in steps."""
    stated = model["certificate"].get("costs")
    if costs is None:
        mentions_costs = stated is not None or "objective_cost" in (model["certificate"].get("optimum") or {})
        return [recount_finding(CLAIM, False, "The parameters name no costs.")] if mentions_costs else []
    if stated is None:
        return [recount_finding(CLAIM, False, "The parameters name costs, and the certificate does not.")]
    parameters = model.get("parameters") or {}
    if model["method"] in ("exact", "exact-numeric"):  # they copy all rows equally often, so min_leaf keeps its meaning
        parameters = parameters | {"min_leaf": 1}
    odd = [name for name, off in COUNTING.items() if parameters.get(name) not in (None, False, "", "none", *off)]
    odd += ["goal"] if model["certificate"].get("goal") else []
    if odd:
        return [recount_finding(CLAIM, False, f"No training with costs takes '{odd[0]}'.")]
    counted = _count_costs(model, costs, cost)
    wrong = [name for name, value in counted.items() if not _agrees(stated.get(name), value)]
    if wrong:
        words = f"'{wrong[0]}' is {str(counted[wrong[0]])[:80]}; the file says {str(stated.get(wrong[0]))[:80]}."
        return [recount_finding(CLAIM, False, words)]
    worth = float(costs.weight * costs.step / costs.scale)
    if not _agrees((model["certificate"].get("optimum") or {"objective_cost": worth}).get("objective_cost"), worth):
        return [recount_finding(CLAIM, False, f"An objective of 1 is worth {worth:.12g}, not what the file says.")]
    unit = f" {costs.unit}" if costs.unit else ""
    return [
        recount_finding(
            CLAIM,
            True,
            f"The answers cost {counted['cost']:.12g}{unit} on rows of weight {float(costs.total_weight):.12g}.",
        )
    ]


def _count_costs(model: dict[str, Any], costs: AnswerCosts, cost: int) -> dict[str, Any]:
    """Count the members of the certificate about costs."""
    step = costs.step
    constants = costs.values.sum(axis=0)
    bound = model["certificate"].get("bound")
    most = int(costs.values.max(axis=1).sum())
    terms = [[_term_text(term) for term in row] for row in _read_terms(model)[0] or ()]
    classes = model["classes"]
    return {
        "unit": costs.unit,
        "costs": {true: dict(zip(classes, row, strict=True)) for true, row in zip(classes, terms, strict=bool(terms))},
        "step": str(step),
        "rounding_error": costs.error,
        "cost": float(cost * step),
        "cost_per_row": float(cost * step / costs.total_weight),
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


def _agrees(stated: Any, counted: Any) -> bool:
    """Return True if the file states what was counted, numbers up to their rounding."""
    if isinstance(counted, dict):
        return (
            isinstance(stated, dict)
            and stated.keys() == counted.keys()
            and all(_agrees(stated[k], v) for k, v in counted.items())
        )
    if isinstance(counted, list):
        return isinstance(stated, list) and len(stated) == len(counted) and all(map(_agrees, stated, counted))
    if isinstance(counted, float):
        return isinstance(stated, int | float) and math.isclose(
            stated, counted, rel_tol=float(TOLERANCE), abs_tol=float(TOLERANCE)
        )
    return bool(stated == counted)


def check_cost_metrics(model: dict[str, Any], data: TableRows) -> list[Finding]:
    """Check the costs on training rows and on held-out rows, if the file states them."""
    stated = model.get("metrics") or {}
    parts = {"train": data.trains, "test": data.held_out}
    findings = []
    for name, part_rows in parts.items():
        claimed = {key: value for key, value in (stated.get(name) or {}).items() if key in MEASURES}
        if claimed:
            findings.append(check_stated_cost(name, claimed, _cost_of_rows(model, take_rows(data.rows, part_rows))))
    return findings


def check_stated_cost(name: str, claimed: dict[str, Any], counted: dict[str, Any]) -> Finding:
    """Compare the measures of cost that the file states for the rows of a part with the counted ones."""
    words = f"The answers cost {counted.get('cost')} on these rows."
    return recount_finding(f"metrics {name} cost", _agrees(claimed, counted), words)


def _cost_of_rows(model: dict[str, Any], rows: ModelTable) -> dict[str, Any]:
    """Count the costs of the tree's answers to some rows; empty without costs."""
    costs = answer_costs(model, rows)
    if costs is None:
        return {}
    answers = answers_of(model, model["nodes"], route(model["nodes"], model["columns"], rows))
    by_class = np.zeros((len(model["classes"]),) * 2, np.int64)
    np.add.at(by_class, (rows.labels, answers), costs.values[np.arange(len(rows)), answers])
    return measures_of_cost(model, costs, by_class)


def measures_of_cost(model: dict[str, Any], costs: AnswerCosts, by_class: np.ndarray) -> dict[str, Any]:
    """Return the measures of cost of answers whose cost in steps is `by_class`, int64 (classes, answers)."""
    cost = int(by_class.sum()) * costs.step
    constant = model["classes"].index(model["certificate"]["costs"]["best_constant"]["answer"])
    return {
        "cost": float(cost),
        "cost_per_row": float(cost / costs.total_weight),
        "constant_cost": float(int(costs.values[:, constant].sum()) * costs.step),
        "cost_confusion": [[float(int(cell) * costs.step) for cell in row] for row in by_class],
    }
