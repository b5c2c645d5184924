"""Prices of columns beside minimum recalls and forbidden pairs equal enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.column_prices_cases import cost_of, priced_text, questions_of, random_prices
from tests.trainer.goal_cases import ALL_THRESHOLDS, random_case
from trainer import make_classifier
from trainer.errors import InfeasibleError, SolverError
from trainer.methods.monitor import StoppedMonitor
from trainer.registry import get
from trainer.training.run import TrainRequest, train

METHODS = ("exact", "exact-numeric")


class Trees:
    """All trees over questions: each has a cost with prices and leaves, and the errors of each class."""

    def __init__(self, case, answers, columns, prices, depth, limits):
        _, labels, weights, _ = case
        self.y = labels.codes
        self.weights = np.ones(len(self.y), int) if weights is None else weights
        self.classes = len(labels.classes)
        self.answers = answers
        self.columns = columns
        self.prices = prices
        self.least = limits.get("min_leaf", 1)
        self.apart = limits.get("apart", ())
        self.known = {}
        self.all = self._trees(np.arange(len(self.y)), depth, frozenset())

    def _trees(self, rows, height, asked):
        """Return the set of (price, columns, leaves, errors of each class, questions' columns)."""
        key = rows.tobytes(), height, asked
        if key in self.known:
            return self.known[key]
        counts = np.bincount(self.y[rows], self.weights[rows], self.classes).astype(int).tolist()
        found = set()
        for label in range(self.classes):
            errors = tuple(0 if k == label else n for k, n in enumerate(counts))
            found.add((Fraction(0), frozenset(), 1, errors))
        for q in range(self.answers.shape[1]) if height else ():
            column = int(self.columns[q])
            if any({column, other} == set(pair) for other in asked for pair in self.apart):
                continue
            yes = self.answers[rows, q]
            sides = rows[yes], rows[~yes]
            if min(self.weights[side].sum() for side in sides) < self.least:
                continue
            charge = Fraction(0) if column in asked else self.prices.get(column, Fraction(0)) * sum(counts)
            inner = asked | {column}
            for a, b in itertools.product(*(self._trees(side, height - 1, inner) for side in sides)):
                errors = tuple(x + y for x, y in zip(a[3], b[3], strict=True))
                found.add((charge + a[0] + b[0], a[1] | b[1] | {column}, a[2] + b[2], errors))
        self.known[key] = self._undominated(found)
        return self.known[key]

    def _undominated(self, found):
        """Drop trees that another tree with the same columns and leaves beats in every class."""
        best = {}
        for price, columns, leaves, errors in found:
            key = columns, leaves, errors
            best[key] = min(best.get(key, price), price)
        return {(price, *key) for key, price in best.items()}

    def cheapest(self, penalty, limits):
        """Return the least cost within the limits; None without such a tree."""
        sizes = [int(self.weights[self.y == k].sum()) for k in range(self.classes)]
        costs = []
        for price, columns, leaves, errors in self.all:
            recalls = limits.get("recalls", {})
            if any(sizes[k] - errors[k] < share * sizes[k] for k, share in recalls.items()):
                continue
            if leaves > limits.get("max_leaves", 64) or len(columns) > limits.get("max_columns", 64):
                continue
            costs.append(sum(errors) + price + penalty * leaves)
        return min(costs, default=None)


def restrictions(rng, case, method):
    """Return random limits, and the parameters that state them."""
    table, labels, _, _ = case
    limits = {}
    parameters = {}
    if rng.random() < 0.8:
        codes = [k for k in range(len(labels.classes)) if (labels.codes == k).any() and rng.random() < 0.7]
        shares = {k: Fraction(int(rng.integers(3, 11)), 10) for k in codes}
        limits["recalls"] = shares
        parameters["recall"] = "; ".join(f"{labels.classes[k]}: {float(share)}" for k, share in shares.items())
    if rng.random() < 0.5 or not limits.get("recalls"):
        pair = rng.choice(len(table.names), 2, replace=False).tolist()
        limits["apart"] = [tuple(pair)]
        parameters["forbidden_pairs"] = " + ".join(table.names[j] for j in pair)
    for name, chance, high in (("max_leaves", 0.3, 5), ("max_columns", 0.2, 3), ("min_leaf", 0.2, 4)):
        if rng.random() < chance and (name != "min_leaf" or method == "exact"):
            limits[name] = parameters[name] = int(rng.integers(1, high))
    return limits, parameters


def check_case(method, seed):
    """Compare one random case with the enumeration; return whether no tree is within its limits."""
    rng = np.random.default_rng(seed)
    case = random_case(seed)
    table, labels, weights, parameters = case
    depth = 3 if seed % 10 == 0 else 1 + seed % 2
    limits, stated = restrictions(rng, case, method)
    texts = random_prices(rng, table.names)
    prices = {j: Fraction(text) for j, text in texts.items()}
    answers, columns = questions_of(table, labels, weights)
    parameters = parameters | stated | {"depth": depth, "column_price": priced_text(texts, table.names)}
    parameters |= ALL_THRESHOLDS if method == "exact" else {}
    trees = Trees(case, answers, columns, prices, depth, limits)
    penalty = Fraction(str(parameters["leaf_penalty"])) * int(trees.weights.sum())
    wanted = trees.cheapest(penalty, limits)
    request = TrainRequest(table=table, labels=labels, method=method, weights=weights, parameters=parameters)
    if wanted is None:
        with pytest.raises(InfeasibleError):
            train(request)
        return True
    result = train(request)
    wrong = np.where(labels.codes[:, None] == np.arange(len(labels.classes)), 0, trees.weights[:, None])
    costs = np.array([[Fraction(int(cell)) for cell in row] for row in wrong])
    assert cost_of(result.tree, table, prices, costs, trees.weights, penalty) == wanted, (seed, parameters)
    assert result.certificate.proved_optimal
    assert result.certificate.objective == pytest.approx(1 - float(wanted / int(trees.weights.sum())), abs=1e-12)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_cheapest_restricted_tree_is_found(method):
    impossible = sum(check_case(method, seed) for seed in range(300))
    assert 5 < impossible < 200


@pytest.mark.parametrize("method", METHODS)
def test_cheapest_restricted_tree_of_few_tables_is_found(method):
    for seed in range(1, 10):
        check_case(method, seed)


@pytest.mark.parametrize("method", METHODS)
def test_stopped_restricted_search_has_a_valid_bound(method):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (120, 6))
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(120) < 0.25)
    asked = {"depth": 3, "column_price": "x0=0.05; x1=0.1", "recall": "1: 0.9"}
    model = make_classifier(method, leaf_penalty=0.001, **asked)
    best = model.fit(X, y).certificate_.objective
    problem, settings = model._problem(X, y, None)
    stopped = 0
    for most in (0, 1, 2, 4, 8, 16, 40, 100, 250, 600):
        asks = itertools.count()
        monitor = StoppedMonitor(lambda asks=asks, most=most: next(asks) >= most)
        try:
            solution = get(method).solve(problem, settings, monitor)
        except SolverError:
            continue
        assert problem.objective(problem.tree(solution.draft)) <= best <= solution.bound + 1e-12
        stopped += solution.bound > best + 1e-12
    assert stopped > 0


def test_missing_proof_of_recalls_beside_prices_has_a_reason(tmp_path):
    table, labels, weights, _ = random_case(1)
    asked = {"depth": 1, "leaf_penalty": 0, "recall": f"{labels.classes[0]}: 0.1"}
    asked["column_price"] = f"{table.names[0]}=0.1"
    proof = tmp_path / "model.proof.jsonl.gz"
    request = TrainRequest(table=table, labels=labels, method="exact", weights=weights, parameters=asked, proof=proof)
    record = next(part for part in train(request).model.certificate["evidence"] if part["kind"] == "proof")
    assert not record["made"]
    assert "do not support minimum recalls and forbidden pairs" in record["reason"]
    assert not proof.exists()
