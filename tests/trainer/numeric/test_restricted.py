"""`exact-numeric` with forbidden pairs, minimum recalls and counts of optimal trees equals enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.column_prices_cases import questions_of
from tests.trainer.costs_cases import has_choice, text_of, weighted_costs
from tests.trainer.costs_cases import random_case as costs_case
from tests.trainer.goal_cases import random_case
from tests.trainer.numeric.exact_numeric_cases import all_thresholds, random_numeric
from trainer import make_classifier
from trainer.certificate import Evidence, Status
from trainer.data.problem import Problem
from trainer.errors import InfeasibleError, ParameterError, SolverError
from trainer.families.numeric import restricted
from trainer.families.numeric.limits import WholeTreeLimits
from trainer.families.numeric.paths import PathRules
from trainer.families.numeric.search import NumericProblem, solve_numeric
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.table import Labels
from trainer.training.run import TrainRequest, train


class AllTrees:
    """All trees over answers (rows, questions) of columns. No path tests both columns of a pair."""

    def __init__(self, answers, columns, costs, pairs=(), prices=None, sizes=None):
        self.answers = answers
        self.columns = columns
        self.costs = costs  # shape (rows, labels)
        self.pairs = set(pairs) | {(b, a) for a, b in pairs}
        self.prices = prices or {}
        self.weights, self.min_leaf = sizes or (np.ones(len(answers), int), 1)
        self.known = {}

    def splits(self, rows, tested):
        """Yield both sides of each allowed split with its column."""
        for q in range(self.answers.shape[1]):
            yes = self.answers[rows, q]
            column = int(self.columns[q])
            fits = min(self.weights[rows[yes]].sum(), self.weights[rows[~yes]].sum()) >= self.min_leaf
            if yes.any() and not yes.all() and fits and not any((a, column) in self.pairs for a in tested):
                yield rows[yes], rows[~yes], column

    def least(self, rows, height, price, weights, tested=frozenset()):
        """Return the least cost of a tree, with a price of each leaf and of each tested column."""
        key = rows.tobytes(), height, tested
        if key not in self.known:
            best = min(self.costs[rows].sum(axis=0)) + price
            for yes, no, column in self.splits(rows, tested) if height else ():
                toll = 0 if column in tested else self.prices.get(column, 0) * int(weights[rows].sum())
                sides = [self.least(side, height - 1, price, weights, tested | {column}) for side in (yes, no)]
                best = min(best, toll + sum(sides))
            self.known[key] = best
        return self.known[key]

    def vectors(self, rows, height, wrong, tested=frozenset()):
        """Return the errors by class and the leaves of each tree.

        `wrong` (rows, classes, labels) is the weight for which a label is wrong.
        """
        key = rows.tobytes(), height, tested
        if key not in self.known:
            leaf = wrong[rows].sum(axis=0)
            found = {(*leaf[:, k].tolist(), 1) for k in range(leaf.shape[1])}
            for yes, no, column in self.splits(rows, tested) if height else ():
                sides = [self.vectors(side, height - 1, wrong, tested | {column}) for side in (yes, no)]
                found |= {tuple(map(sum, zip(a, b, strict=True))) for a in sides[0] for b in sides[1]}
            self.known[key] = found
        return self.known[key]

    def counts(self, rows, height, price):
        """Return the number of trees with majority leaves for each (cost, leaves)."""
        key = rows.tobytes(), height
        if key not in self.known:
            found = Counter({(min(self.costs[rows].sum(axis=0)) + price, 1): 1})
            for yes, no, _ in self.splits(rows, ()) if height else ():
                for (a, m), x in self.counts(yes, height - 1, price).items():
                    for (b, n), y in self.counts(no, height - 1, price).items():
                        found[a + b, m + n] += x * y
            self.known[key] = found
        return self.known[key]


def errors_of(y, weights, classes):
    """Return the weight for which each label is wrong in each row, as fractions."""
    return np.array(
        [[Fraction(int(w) * (k != label)) for k in range(classes)] for w, label in zip(weights, y, strict=True)]
    )


def random_pairs(rng, columns):
    return {(a, b) for a in columns for b in columns if a <= b and rng.random() < 0.5}


def paths_keep(nodes, pairs):
    """Return whether no path of a tree tests both columns of a pair."""
    tested = {0: set()}
    for v, node in enumerate(nodes):
        if node.split is None:
            continue
        used = set(node.split.used)
        if any((a, b) in pairs or (b, a) in pairs for a in tested[v] for b in used):
            return False
        tested[node.left] = tested[node.right] = tested[v] | used
    return True


def check_rules(seed):
    """Check the search with pairs and prices over shared columns, ties, equal rows, one class and weights of 0."""
    X, y, w, classes, leaf_cost = random_numeric(seed, rows=12 if seed % 3 < 2 else 9)
    used = w > 0
    X = X[used]
    y = y[used]
    w = w[used]
    rng = np.random.default_rng(seed)
    F = X.shape[1]
    columns = np.arange(F) if seed % 4 else np.arange(F) // 2
    pairs = random_pairs(rng, sorted(set(columns.tolist())))
    partners = {a: frozenset({b for b in range(F) if (a, b) in pairs or (b, a) in pairs}) for a in range(F)}
    prices = {j: Fraction(str(rng.choice(["0.03", "0.1", "0.25"]))) for j in range(F)} if seed % 2 else {}
    features = [columns[f] for f in range(F) for _ in np.unique(X[:, f])[:-1]]
    trees = AllTrees(all_thresholds(X).astype(bool), features, errors_of(y, w, classes), pairs, prices)
    depth = 1 + seed % 3
    wanted = trees.least(np.arange(len(y)), depth, leaf_cost, w)
    rules = PathRules(columns=columns, prices=prices, partners=partners)
    result = solve_numeric(
        NumericProblem(X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost, rules=rules)
    )
    assert result.cost == result.bound == wanted


@pytest.mark.slow
@seeds(300)
def test_search_with_pairs_and_prices_finds_the_least_cost(seed):
    check_rules(seed)


def test_search_with_pairs_and_prices_on_few_tables():
    for seed in range(30):
        check_rules(seed)


def binary_case(seed):
    """Return a random table with empty cells, for two or three classes."""
    table, labels, weights, parameters = random_case(seed)
    if seed % 4 == 3:
        codes = np.random.default_rng(seed).integers(0, 3, len(table)).astype(np.int32)
        codes[:3] = (0, 1, 2)
        labels = Labels(name="y", classes=("no", "yes", "maybe"), codes=codes)
    return table, labels, weights, parameters


def check_method(seed):
    """Check limits of leaves, columns and recalls, pairs and forbidden columns, each alone and together."""
    table, labels, weights, parameters = binary_case(seed)
    rng = np.random.default_rng(seed)
    counted = np.ones(len(table), int) if weights is None else weights
    pairs = random_pairs(rng, range(len(table.names))) if seed % 3 else set()
    shares = {k: str(rng.choice(["0.5", "0.7", "0.9", "1"])) for k in range(len(labels.classes)) if rng.random() < 0.6}
    shares = shares if seed % 3 < 2 else {}
    most = seed // 3 % 3 if seed % 4 == 1 else None
    banned = rng.random(len(table.names)) < (0.3 if seed % 5 < 2 else 0)
    min_leaf = int(rng.integers(2, 6)) if seed % 5 > 2 else 1
    max_leaves = int(rng.integers(1, 6)) if seed % 7 < 3 else None
    asked = {
        "forbidden": "; ".join(name for name, out in zip(table.names, banned, strict=True) if out),
        "min_leaf": min_leaf,
        "max_leaves": max_leaves,
        "forbidden_pairs": "; ".join(f"{table.names[a]} + {table.names[b]}" for a, b in pairs),
        "recall": "; ".join(f"{labels.classes[k]}: {share}" for k, share in shares.items()),
        "max_columns": most,
    }
    request = TrainRequest(
        table=table, labels=labels, weights=weights, method="exact-numeric", parameters=parameters | asked
    )
    classes = len(labels.classes)
    own = labels.codes[:, None] == np.arange(classes)
    wrong = counted[:, None, None] * own[:, :, None] * (np.arange(classes)[:, None] != np.arange(classes))
    answers, columns = questions_of(table, labels, weights)
    answers = answers[:, ~banned[columns]]
    columns = columns[~banned[columns]]
    few = len(table.names) if most is None else most
    trees = set()
    for among in (np.isin(columns, chosen) for chosen in itertools.combinations(range(len(table.names)), few)):
        within = AllTrees(answers[:, among], columns[among], None, pairs, sizes=(counted, min_leaf))
        trees |= within.vectors(np.arange(len(table)), parameters["depth"], wrong)
    sizes = [int(counted[labels.codes == k].sum()) for k in range(classes)]
    small = [v for v in trees if max_leaves is None or v[-1] <= max_leaves]
    fitting = [v for v in small if all(sizes[k] - v[k] >= Fraction(share) * sizes[k] for k, share in shares.items())]
    if not fitting:
        with pytest.raises(InfeasibleError):
            train(request)
        return
    n = int(counted.sum())
    penalty = Fraction(str(parameters["leaf_penalty"]))
    wanted = max(1 - Fraction(sum(v[:-1]), n) - penalty * v[-1] for v in fitting)
    result = train(request)
    assert result.certificate.objective == pytest.approx(float(wanted), abs=1e-12), (seed, asked)
    assert result.certificate.bound == result.certificate.objective
    assert result.certificate.status is Status.OPTIMAL
    assert paths_keep(result.tree.nodes, pairs)
    used = {j for node in result.tree.nodes if node.split for j in node.split.used}
    assert len(used) <= few
    assert not used & set(np.flatnonzero(banned).tolist())
    assert max_leaves is None or result.tree.n_leaves <= max_leaves
    assert result.tree.n_leaves == 1 or min(node.rows for node in result.tree.nodes if node.is_leaf) >= min_leaf
    predicted = result.tree.predict(table.matrix())
    for k, share in shares.items():
        assert int(counted[(predicted == k) & (labels.codes == k)].sum()) >= Fraction(share) * sizes[k]


def check_least_weight(seed):
    """Check leaves of a least weight, over ties, equal rows, constant columns, one class and rows of several weights."""
    X, y, w, classes, leaf_cost = random_numeric(seed, rows=16 if seed % 3 < 2 else 11)
    X = X[w > 0]
    y = y[w > 0]
    w = w[w > 0]
    least = int(np.random.default_rng(seed).integers(2, max(3, w.sum() // 2 + 2)))
    features = [f for f in range(X.shape[1]) for _ in np.unique(X[:, f])[:-1]]
    answers = all_thresholds(X).astype(bool)
    trees = AllTrees(answers, features, errors_of(y, w, classes), sizes=(w, least))
    depth = 1 + seed % 4
    wanted = trees.least(np.arange(len(y)), depth, leaf_cost, w)
    result = solve_numeric(
        NumericProblem(X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost, min_leaf=least)
    )
    assert result.cost == result.bound == wanted, seed


@pytest.mark.slow
@seeds(400)
def test_search_with_least_weight_finds_the_least_cost(seed):
    check_least_weight(seed)


def test_search_with_least_weight_on_few_tables():
    for seed in range(40):
        check_least_weight(seed)


@pytest.mark.slow
@seeds(240)
def test_best_tree_under_restrictions_is_found_and_proved(seed):
    check_method(seed)


def test_best_tree_under_restrictions_on_few_tables():
    for seed in range(12):
        check_method(seed)


@pytest.mark.slow
@seeds(90)
def test_pairs_beside_costs_give_the_least_cost(seed):
    table, labels, weights, costs, parameters = costs_case(seed, rows=14)
    weighted = weighted_costs(table, labels, weights, costs)
    if not has_choice(weighted):
        return
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, range(len(table.names)))
    parameters |= {
        "costs": text_of(costs),
        "forbidden_pairs": "; ".join(f"{table.names[a]} + {table.names[b]}" for a, b in pairs),
        "depth": min(2, parameters["depth"]),
    }
    price = Fraction(str(parameters["leaf_penalty"])) * min(weighted.sum(axis=0))
    try:
        result = train(
            TrainRequest(table=table, labels=labels, weights=weights, method="exact-numeric", parameters=parameters)
        )
    except ParameterError as error:
        assert "leaf_penalty" in error.errors  # noqa: PT017
        return
    answers, columns = questions_of(table, labels, weights)
    trees = AllTrees(answers, columns, weighted, pairs)
    wanted = trees.least(np.arange(len(table)), parameters["depth"], price, np.ones(len(table), int))
    assert result.certificate.costs["least"] == pytest.approx(float(wanted), abs=1e-9)
    assert paths_keep(result.tree.nodes, pairs)


def check_count(seed):
    table, labels, weights, parameters = binary_case(seed)
    request = TrainRequest(
        table=table,
        labels=labels,
        weights=weights,
        method="exact-numeric",
        parameters=parameters | {"optimal_trees": 1000},
    )
    counted = np.ones(len(table), int) if weights is None else weights
    answers, columns = questions_of(table, labels, weights)
    trees = AllTrees(answers, columns, errors_of(labels.codes, counted, len(labels.classes)))
    price = Fraction(str(parameters["leaf_penalty"])) * int(counted.sum())
    found = trees.counts(np.arange(len(table)), parameters["depth"], price)
    certificate = train(request).certificate
    part = next(e for e in certificate.evidence if e["kind"] == Evidence.OPTIMAL_TREES)
    assert int(part["count"]) == found[min(found)], seed
    assert len(part["listed"]) == min(1000, found[min(found)])
    assert certificate.objective == pytest.approx(float(1 - min(found)[0] / int(counted.sum())), abs=1e-12)


@pytest.mark.slow
@seeds(120)
def test_optimal_trees_are_counted(seed):
    check_count(seed)


def test_optimal_trees_of_few_tables_are_counted():
    for seed in range(6):
        check_count(seed)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)).round(1)
    return X, ((X[:, 0] > 0.2) & (X[:, 1] < 0.5)) | (rng.random(60) < 0.1)


def test_recall_that_the_best_tree_has_changes_nothing(rows):
    plain = make_classifier("exact-numeric").fit(*rows)
    same = make_classifier("exact-numeric", recall="False: 0.1").fit(*rows)
    assert same.tree_.to_json() == plain.tree_.to_json()
    assert same.certificate_.evidence == plain.certificate_.evidence


@pytest.mark.parametrize(
    ("asked", "name", "words"),
    [
        ({"recall": "True: 0.5", "costs": "True>False=5"}, "recall", "must be empty with costs"),
        ({"recall": "maybe: 0.5"}, "recall", "not a class"),
        ({"forbidden_pairs": "x0 + lab"}, "forbidden_pairs", "not a column"),
        ({"optimal_trees": 3, "forbidden_pairs": "x0 + x1"}, "optimal_trees", "only without forbidden_pairs[.]"),
        ({"optimal_trees": 3, "column_price": "x0=1"}, "optimal_trees", "not possible with prices"),
        ({"optimal_trees": 3, "goal": "f1"}, "optimal_trees", "must be 0 with F1"),
    ],
)
def test_restrictions_that_do_not_fit_are_refused(rows, asked, name, words):
    with pytest.raises(ParameterError, match=words) as caught:
        make_classifier("exact-numeric", depth=1, **asked).fit(*rows)
    assert name in caught.value.errors


def test_too_many_thresholds_give_feasible_tree_and_bound(rows, monkeypatch):
    best = make_classifier("exact-numeric", depth=2, recall={True: 0.97}).fit(*rows).certificate_
    free = make_classifier("exact-numeric", depth=2).fit(*rows).certificate_
    monkeypatch.setattr(restricted, "MOST_SEARCHED", 10)
    few = make_classifier("exact-numeric", depth=2, recall={True: 0.97}).fit(*rows)
    assert few.certificate_.status is Status.HEURISTIC
    assert "these rows have" in few.certificate_.note
    assert few.certificate_.objective <= best.objective < few.certificate_.bound == free.objective
    assert few.predict(rows[0])[rows[1]].mean() >= 0.97


def test_limits_unmet_by_few_thresholds_are_not_infeasible(monkeypatch):
    """The split below the last seven rows meets the recalls. It is not a quantile, and its leaf costs more than it gains."""
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] < 33, "a", "b")
    monkeypatch.setattr(restricted, "MOST_SEARCHED", 10)
    monkeypatch.setattr(restricted, "FEW_QUESTIONS", 2)
    with pytest.raises(SolverError, match="but one may exist: these rows have 39 thresholds"):
        make_classifier("exact-numeric", depth=1, leaf_penalty=0.4, recall="a: 1; b: 1").fit(X, y)


def test_count_of_optima_over_too_many_thresholds_has_advice(rows, monkeypatch):
    monkeypatch.setattr(restricted, "MOST_SEARCHED", 10)
    with pytest.raises(ParameterError, match="thresholds, and at most 10 are searched") as caught:
        make_classifier("exact-numeric", depth=1, optimal_trees=3).fit(*rows)
    assert "optimal_trees" in caught.value.errors


@pytest.mark.parametrize("limits", [{"recall": "yes: 0.9"}, {"max_leaves": 3}, {"max_columns": 1}, {"min_leaf": 8}])
def test_limited_search_has_tree_and_bound_before_it_searches(limits):
    """The monitor stops at its first question, so only what is known before the search counts."""
    table, labels, weights, _ = random_case(4)
    method = get("exact-numeric")
    problem = Problem(table=table, labels=labels, leaf_penalty=Fraction(1, 100), weights=weights)
    monitor = Monitor()
    monitor.stop(Status.TIME_LIMIT)
    solution = method.solve(problem, method.settings(limits | {"depth": 2}), monitor)
    tree = problem.tree(solution.draft)
    assert monitor.draft is not None or "min_leaf" in limits
    assert solution.bound >= problem.objective(tree)
    assert monitor.bound >= solution.bound
    assert monitor.incumbent == problem.objective(tree)
    assert WholeTreeLimits(problem, method.settings(limits)).hold(tree)


def test_trees_near_another_one_include_one_with_the_recalls():
    """The best tree misses the recall; other classes in its leaves give it, and prunings keep the other limits."""
    for seed in range(20):
        table, labels, weights, _ = random_case(seed)
        method = get("exact-numeric")
        problem = Problem(table=table, labels=labels, leaf_penalty=Fraction(0), weights=weights)
        draft = method.solve(problem, method.settings({"depth": 2}), Monitor()).draft
        limits = WholeTreeLimits(
            problem, method.settings({"recall": "yes: 1", "max_leaves": 1 + seed % 3, "min_leaf": 3})
        )
        assert any(limits.hold(tree) for tree in limits.repair(draft)), seed
