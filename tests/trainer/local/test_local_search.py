"""Local search: no small subtree of its trees can be replaced by a better one, and no start is better."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.recount.files import findings, trained
from tests.trainer.oracles.exact import best_cost
from tests.trainer.oracles.missing import least_cost, partitions, random_table
from trainer import CartClassifier, LocalSearchClassifier
from trainer.certificate import Guarantee, Limits, Status
from trainer.check.recount import verdict
from trainer.check.recount.search import subtrees
from trainer.families.local import method as local_search
from trainer.families.local.search import SubtreeSearch
from trainer.families.local.starts import grown_trees, shape_of
from trainer.families.local.subproblem import Subproblems, rank_rows
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.run import TrainRequest, fit, train

OWN = get("local-search")


def random_problem(seed, **parameters):
    """Return a problem with ties, empty cells, categories and weights, its settings, and its smallest leaf."""
    rng = np.random.default_rng(seed)
    table, labels = random_table(rng, classes=int(rng.integers(2, 5)))
    weights = rng.integers(1, 4, len(table)) if rng.random() < 0.4 else None
    settings = OWN.settings(
        {
            "depth": int(rng.integers(1, 6)),
            "height": int(rng.integers(1, 3)),
            "leaf_penalty": float(rng.choice([0.0, 0.01, 0.03, 0.1])),
            "seed": seed,
            "starts": 3,
        }
        | parameters
    )
    return pose(table, labels, settings, weights=weights), settings


def small_subtrees(tree, settings, matrix):
    """Yield each small subtree: its node, the rows that reach it, and the height of a tree in its place."""
    rows = tree.reach(matrix)
    for v in tree.nodes:
        if tree.heights[v.id] <= settings["height"]:
            yield v.id, rows[v.id], min(settings["height"], settings["depth"] - len(tree.path_to(v.id)) + 1)


def errors_below(tree, node):
    v = tree.nodes[node]
    if v.is_leaf:
        return v.rows - v.counts[v.label], 1
    sides = [errors_below(tree, child) for child in (v.left, v.right)]
    return sum(e for e, _ in sides), sum(t for _, t in sides)


def check_subtrees_by_enumeration(seed):
    problem, settings = random_problem(seed)
    tree, certificate, _ = fit(OWN, problem, settings, Monitor())
    price = problem.leaf_penalty * problem.n
    places = list(small_subtrees(tree, settings, problem.matrix))
    for node, rows, height in places:
        errors, leaves = errors_below(tree, node)
        least = least_cost(
            problem.table.take(rows), problem.labels.take(rows), problem.row_weights[rows], height, price
        )
        assert errors + price * leaves == least, node
    assert (certificate.subtrees, certificate.subtrees_proved) == (len(places), len(places))
    assert certificate.bound is None
    assert certificate.status is Status.HEURISTIC


@seeds(8)
def test_small_subtree_is_the_best_one_by_enumeration(seed):
    check_subtrees_by_enumeration(seed)


@pytest.mark.slow
@seeds(300)
def test_small_subtrees_of_more_tables_by_enumeration(seed):
    check_subtrees_by_enumeration(1000 + seed)


@pytest.mark.slow
@seeds(60)
def test_smallest_leaf_of_more_tables_by_enumeration(seed):
    check_smallest_leaf(1000 + seed)


@seeds(6)
def test_small_subtree_respects_the_smallest_leaf(seed):
    check_smallest_leaf(seed)


def check_smallest_leaf(seed):
    problem, settings = random_problem(seed, min_leaf=2 + seed % 3)
    tree, certificate, _ = fit(OWN, problem, settings, Monitor())
    answers = np.array(list(partitions(problem.table)), np.uint8).T
    assert all(v.rows >= settings["min_leaf"] for v in tree.leaves) or tree.n_leaves == 1
    for node, rows, height in small_subtrees(tree, settings, problem.matrix):
        errors, leaves = errors_below(tree, node)
        least, _ = best_cost(
            answers[rows],
            problem.y[rows],
            problem.row_weights[rows],
            problem.n_classes,
            height,
            problem.kappa,
            settings["min_leaf"],
        )
        assert errors + problem.kappa * leaves == least
    assert certificate.subtrees == certificate.subtrees_proved


@seeds(10)
def test_result_is_never_worse_than_a_start(seed):
    problem, settings = random_problem(seed)
    rows = rank_rows(problem)
    if not len(rows.rank) or len(np.unique(rows.y)) < 2:
        return
    subproblems = Subproblems(problem, rows, 1, Monitor())
    search = SubtreeSearch(subproblems, settings["depth"], settings["height"])
    for draft in grown_trees(problem, settings, 3, Monitor()):
        shape = shape_of(draft, problem, subproblems)
        seen = []
        part = search.improve(shape, seen.append)
        costs = [subproblems.cost(p) for p in (subproblems.evaluate(rows.order, shape), *seen)]
        assert costs == sorted(costs, reverse=True)
        assert costs[-1] == subproblems.cost(part)
        # the start is the same tree, up to splits that separate no rows
        assert (
            subproblems.cost(part)[0]
            <= subproblems.Q * problem.n * (1 - Fraction(problem.objective(problem.tree(draft)))) + 1e-6
        )


@seeds(3)
def test_equal_seeds_give_equal_trees(seed):
    problem, settings = random_problem(seed)
    first, second = (fit(OWN, problem, settings, Monitor())[0] for _ in range(2))
    assert first == second


def wave(n=240, classes=6, seed=0):
    """Return rows whose classes form a checkerboard of two columns, a third column, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).round(3)
    y = ((X[:, 0] * 4).astype(int) + 2 * (X[:, 1] * 3).astype(int)) % classes
    y[rng.random(n) < 0.05] = 0
    return X, y


def table_of(X, y):
    schemas = [ColumnSchema(name=f"x{j}", kind=ColumnKind.NUMERIC) for j in range(X.shape[1])]
    columns = tuple(Column(schema=schema, cells=X[:, j]) for j, schema in enumerate(schemas))
    labels = Labels(name="y", classes=tuple("abcdef"), codes=y.astype(np.int32))
    return Table(columns=columns, row_numbers=np.arange(1, len(y) + 1)), labels


def test_deep_tree_of_many_classes_has_more_right_rows_than_cart():
    X, y = wave()
    own = LocalSearchClassifier(depth=8, leaf_penalty=0.004).fit(X, y)
    greedy = CartClassifier(depth=8, pruning="0.004", leaf_penalty=0.004).fit(X, y)
    assert own.certificate_.objective > greedy.certificate_.objective
    assert own.tree_.depth > 3
    assert own.certificate_.guarantee is Guarantee.SUBTREES


@pytest.mark.slow
def test_penalty_is_chosen_by_folds():
    X, y = wave(n=60, classes=3)
    model = LocalSearchClassifier(depth=4, starts=1).fit(X, y)
    chosen = [size for size in model.sizes_ if size["chosen"]]
    assert len(chosen) == 1
    assert len(model.sizes_) > 2
    assert float(Fraction(model.certificate_.leaf_penalty)) == chosen[0]["leaf_penalty"]


def test_chosen_size_follows_from_its_record(tmp_path):
    document, data = trained(tmp_path, "local-search", depth=4, leaf_penalty="auto")
    assert claims(findings(document, data, tmp_path), "sizes") == ["recounted"]


def test_stopped_search_keeps_its_tree_and_claims_less():
    X, y = wave()
    table, labels = table_of(X, y)
    settings = OWN.settings({"leaf_penalty": 0.004, "depth": 8, "time_limit": 0})
    tree, certificate, _ = fit(OWN, pose(table, labels, settings), settings, Monitor(Limits(time=0)))
    assert certificate.status is Status.TIME_LIMIT
    assert certificate.subtrees_proved < certificate.subtrees
    assert certificate.objective >= 1 / 6 - 0.004 - 1e-9
    assert tree.n_leaves >= 1


def test_stopped_search_moves_no_split(monkeypatch):
    X, y = wave()
    settings = OWN.settings({"leaf_penalty": 0.004, "depth": 8})
    problem = pose(*table_of(X, y), settings)
    monitor = Monitor()
    subproblems = Subproblems(problem, rank_rows(problem), 1, monitor)
    shape = shape_of(next(grown_trees(problem, settings, 1, monitor)), problem, subproblems)
    monitor.stop(Status.TIME_LIMIT)
    moved = []
    monkeypatch.setattr(SubtreeSearch, "_move_split", lambda self, order, part: moved.append(part) or part)
    part = SubtreeSearch(subproblems, 8, 2).improve(shape, lambda part: None)
    assert part == subproblems.evaluate(subproblems.rows.order, shape)
    assert not moved


@pytest.mark.parametrize("min_leaf", [121, 241])
def test_min_leaf_above_half_of_rows_gives_proved_leaf(min_leaf):
    certificate = LocalSearchClassifier(depth=2, leaf_penalty=0.004, min_leaf=min_leaf).fit(*wave()).certificate_
    assert certificate.leaves == certificate.subtrees == certificate.subtrees_proved == 1


def test_rows_of_one_class_give_a_proved_leaf():
    X, y = wave()
    certificate = LocalSearchClassifier(leaf_penalty=0.004).fit(X, np.zeros_like(y)).certificate_
    assert certificate.leaves == certificate.subtrees == certificate.subtrees_proved == 1


def test_warm_start_is_a_start():
    X, y = wave()
    table, labels = table_of(X, y)
    parameters = {"leaf_penalty": 0.004, "depth": 8, "starts": 1}
    request = {"table": table, "labels": labels, "method": OWN.id}
    best = train(TrainRequest(**request, parameters=parameters | {"starts": 4}))
    again = train(TrainRequest(**request, parameters=parameters, warm_start=best.tree))
    assert again.certificate.objective >= best.certificate.objective


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("files"), "local-search", depth=4, leaf_penalty=0.02)


def claims(found, name="subtrees"):
    return [f.verdict for f in found if f.claim == name]


def test_checker_proves_each_small_subtree(honest, tmp_path):
    document, data = honest
    found = findings(document, data, tmp_path)
    assert claims(found) == ["proved"]
    assert verdict(found) == "proved"


def test_lie_about_a_node_is_refuted(honest, tmp_path):
    """A tree with a worse subtree, with all of its counts right, that claims the same."""
    document, data = honest
    for node in [v for v in document["nodes"] if "split" in v]:
        false = collapse(copy.deepcopy(document), node["id"])
        found = findings(false, data, tmp_path)
        assert claims(found) == ["refuted"], (
            node["id"],
            [(f.claim, f.detail) for f in found if f.verdict == "refuted"],
        )


def test_large_node_is_checked_without_binary_columns(honest, tmp_path, monkeypatch):
    """Trees of one question are compared, so a lie about the lowest questions is still refuted."""
    document, data = honest
    monkeypatch.setattr(subtrees, "MAX_NODE_CELLS", 10)
    monkeypatch.delattr(subtrees, "answer_matrix")
    assert claims(findings(document, data, tmp_path)) == ["cannot be judged"]
    nodes = document["nodes"]
    low = [v["id"] for v in nodes if "split" in v and not any("split" in nodes[v[s]] for s in ("left", "right"))]
    for node in low:
        assert claims(findings(collapse(copy.deepcopy(document), node), data, tmp_path)) == ["refuted"]


def collapse(document, at):
    """Return the document with a leaf in place of a branch, and all numbers that follow from it."""
    nodes = {v["id"]: v for v in document["nodes"]}
    leaf = nodes[at]
    leaf["class"] = document["classes"][int(np.argmax(leaf["counts"]))]
    for name in ("split", "left", "right"):
        leaf.pop(name)
    order = [0]
    for i in order:
        order += [nodes[i][side] for side in ("left", "right") if side in nodes[i]]
    new = {old: k for k, old in enumerate(order)}
    document["nodes"] = [
        nodes[old]
        | {"id": new[old]}
        | {side: new[nodes[old][side]] for side in ("left", "right") if side in nodes[old]}
        for old in order
    ]
    leaves = [v for v in document["nodes"] if "split" not in v]
    right = sum(v["counts"][document["classes"].index(v["class"])] for v in leaves)
    n = sum(document["nodes"][0]["counts"])
    height = [0] * len(order)
    depth = [0] * len(order)
    for v in reversed(document["nodes"]):
        if "split" in v:
            height[v["id"]] = 1 + max(height[v["left"]], height[v["right"]])
    for v in document["nodes"]:
        for side in ("left", "right") if "split" in v else ():
            depth[v[side]] = depth[v["id"]] + 1
    small = sum(h <= document["parameters"]["height"] for h in height)
    certificate = document["certificate"]
    objective = Fraction(right, n) - Fraction(certificate["leaf_penalty"]) * len(leaves)
    certificate |= {"correct": right, "leaves": len(leaves), "depth": max(depth), "objective": float(objective), "subtrees": small, "subtrees_proved": small}  # fmt: skip
    document["metrics"] = {}
    return document


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("subtrees_proved", -1),
        ("subtrees", 1),
        ("height", 1),
        ("open", [999]),
        ("open", [1, 1]),
        ("kind", "greedy"),
        ("starts", 5),
        ("starts", "all"),
    ],
)
def test_contradiction_about_subtrees_is_refuted(honest, tmp_path, change, value):
    document, data = copy.deepcopy(honest[0]), honest[1]
    certificate = document["certificate"]
    part = next(part for part in certificate["evidence"] if part["kind"] == "subtrees")
    if change in certificate:
        certificate[change] += value
    else:
        part[change] = value
    assert verdict(findings(document, data, tmp_path)) == "refuted"


def test_claim_of_subtrees_by_another_method_is_refuted(tmp_path):
    document, data = trained(tmp_path, "cart")
    document["certificate"] |= {"subtrees": 3, "subtrees_proved": 3}
    assert claims(findings(document, data, tmp_path)) == ["refuted"]


def test_file_never_calls_the_tree_optimal(honest):
    text = json.dumps(honest[0]["certificate"]) + json.dumps(OWN.to_json())
    assert "optimal" not in text.lower()


def test_sizes_are_those_of_trees_that_were_found():
    problem, settings = random_problem(3, leaf_penalty=0, height=2)
    drafts = local_search.best_by_leaves(problem, settings, Monitor())
    for k, one in enumerate(drafts, start=1):
        tree = problem.tree(one.draft)
        assert tree.n_leaves == one.leaves <= k
        assert one.errors == problem.n - problem.correct(tree)
    assert [one.errors for one in drafts] == sorted((one.errors for one in drafts), reverse=True)
