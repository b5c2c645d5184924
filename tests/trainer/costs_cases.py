"""Cases and oracles of `test_costs.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from trainer.errors import ParameterError
from trainer.registry import METHODS, get
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, train

WITH_COSTS = [m.id for m in METHODS if m.parameter("costs")]
OVER_QUESTIONS = [m for m in WITH_COSTS if get(m).binary]
CLASSES = "abcd"


def random_costs(rng, classes):
    """Return costs by true class and answer as texts. Ties, zeros, columns and a positive diagonal occur."""
    diagonal = rng.random() < 0.5
    found = {}
    for true in classes:
        for answer in classes:
            kinds = ["0", "1", "2.5", f"{rng.integers(0, 40) / 10:g}", f"{rng.integers(1, 9) / 10:g}*amount"]
            found[true, answer] = str(rng.choice(kinds)) if diagonal or true != answer else "0"
    return found


def random_case(seed, *, rows=24, two=False):
    """Return table, labels, weights or None, costs as texts, and parameters."""
    rng = np.random.default_rng(seed)
    classes = CLASSES[: 2 if two else int(rng.integers(2, 5))]
    schema = [ColumnSchema(name=f"x{j}", kind=ColumnKind.BINARY) for j in range(3)]
    cells = [rng.integers(0, 2, rows).astype(float) for _ in schema]
    schema.append(ColumnSchema(name="amount", kind=ColumnKind.NUMERIC))
    cells.append(rng.integers(0, 6, rows) / 4)
    columns = tuple(Column(schema=s, cells=v) for s, v in zip(schema, cells, strict=True))
    labels = Labels(name="y", classes=tuple(classes), codes=rng.integers(0, len(classes), rows).astype(np.int32))
    weights = rng.integers(1, 4, rows) if rng.random() < 0.4 else None
    parameters = {"depth": int(rng.integers(1, 4)), "leaf_penalty": float(rng.choice([0.0, 0.0, 0.02, 0.15]))}
    return Table(columns=columns, row_numbers=np.arange(rows)), labels, weights, random_costs(rng, classes), parameters


def text_of(costs):
    return "; ".join(f"{true}>{answer}={value}" for (true, answer), value in costs.items())


def weighted_costs(table, labels, weights, costs):
    """Return the weighted cost of each answer in each row, exact fractions (rows, classes)."""
    amounts = table.columns[-1].values.tolist()
    found = np.empty((len(labels.codes), len(labels.classes)), object)
    for i, code in enumerate(labels.codes):
        for k, answer in enumerate(labels.classes):
            factor, star, _ = costs[labels.classes[code], answer].partition("*")
            amount = Fraction(str(amounts[i])) if star else 1
            found[i, k] = Fraction(factor) * amount * (1 if weights is None else int(weights[i]))
    return found


def least_cost(answers, costs, depth, price, counts=None, least=1):
    """Return the least cost of all trees over binary features.

    A leaf has a price and at least `least` of `counts`.
    """
    known = {}
    counts = np.ones(len(costs), int) if counts is None else counts

    def best(rows, height):
        key = rows.tobytes(), height
        if key not in known:
            found = min(costs[rows].sum(axis=0)) + price
            if height:
                for q in range(answers.shape[1]):
                    yes = answers[rows, q]
                    if min(counts[rows[yes]].sum(), counts[rows[~yes]].sum()) >= least:
                        found = min(found, best(rows[yes], height - 1) + best(rows[~yes], height - 1))
            known[key] = found
        return known[key]

    return best(np.arange(len(costs)), depth)


def questions_of(method, table, labels, weights, settings):
    """Return the answers to the questions that a method may ask."""
    if method != "exact-numeric":
        problem = pose(table, labels, settings, weights=weights)
        return problem.binary.bits(table).astype(bool)
    matrix = table.matrix()
    return np.column_stack([matrix[:, [j]] <= np.unique(matrix[:, j])[:-1] for j in range(matrix.shape[1])])


def trained(method, table, labels, weights, costs, **parameters):
    request = TrainRequest(
        table=table, labels=labels, method=method, weights=weights, parameters={"costs": text_of(costs), **parameters}
    )
    return train(request)


def has_choice(costs):
    return any(len(set(row)) > 1 for row in costs)


def checked_case(method, seed, **changes):
    """Train on a random case, and return the result with its exact costs, the price of a leaf and the oracle's least cost."""
    table, labels, weights, costs, parameters = random_case(seed, **changes)
    weighted = weighted_costs(table, labels, weights, costs)
    if not has_choice(weighted):
        return None
    if get(method).parameter("leaf_penalty") is None:
        del parameters["leaf_penalty"]
    if method not in ("exact", "exact-numeric"):
        parameters["depth"] = min(2, parameters["depth"])
    price = Fraction(str(parameters.get("leaf_penalty", 0))) * min(weighted.sum(axis=0))
    savings = weighted.max(axis=1).sum() * len(labels.classes) - weighted.sum()
    if price >= savings:  # a leaf costs more than any tree can save
        with pytest.raises(ParameterError, match="leaf_penalty"):
            trained(method, table, labels, weights, costs, **parameters)
        return None
    result = trained(method, table, labels, weights, costs, **parameters)
    answers = questions_of(method, table, labels, weights, get(method).settings({"depth": 1}))
    return result, weighted, price, least_cost(answers, weighted, parameters["depth"], price)
