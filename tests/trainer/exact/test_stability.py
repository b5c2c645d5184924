"""Stability: the fewest changed rows until another tree is as good."""

import io
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from tests.trainer.oracles.stability import all_trees, fewest_changes
from trainer import make_classifier
from trainer.errors import DataError, ParameterError
from trainer.families.exact.search.solve import solve_binary
from trainer.families.exact.stability import answer_stability, root_stability, tree_stability
from trainer.solver_common.binary_problem import BinaryProblem

CHANGES = ("remove", "relabel")


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    X = rng.integers(0, 2, (n, int(rng.integers(1, 4)))).astype(np.uint8)
    if rng.random() < 0.3:
        X[:, 0] = 1
    if rng.random() < 0.4:
        X[rng.integers(n)] = X[0]
    classes = int(rng.integers(2, 4))
    y = (rng.integers(0, classes, n) if rng.random() < 0.6 else X.sum(axis=1) % classes).astype(np.int32)
    leaf_cost = [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)][rng.integers(4)]
    return BinaryProblem(X, y, n_classes=classes, depth=int(rng.integers(1, 3)), leaf_cost=leaf_cost)


def fitted(problem):
    """Return root side of each row (None for a leaf), answers and leaves of an optimal tree."""
    shape = solve_binary(problem).shape

    def answer(part, at):
        if not isinstance(part, tuple):
            out[at] = np.bincount(problem.y[at], minlength=problem.n_classes).argmax() if part is None else part
            return 1
        one = problem.X[at, part[0]] == 1
        return answer(part[1], at[~one]) + answer(part[2], at[one])

    out = np.zeros(len(problem.y), np.int32)
    leaves = answer(shape, np.arange(len(out)))
    return problem.X[:, shape[0]] > 0 if isinstance(shape, tuple) else None, out, leaves


def root_key(X, q):
    return b"" if q is None else (X[:, q] ^ X[0, q]).tobytes()


def check(problem, stability, homes, rivals, change):
    """Compare with the oracle, and the named rows with the claim."""
    want = fewest_changes(problem.X, problem.y, problem.n_classes, problem.leaf_cost, homes, rivals, change)
    if want is None:
        assert stability.upper is None
        return
    assert (stability.lower, stability.upper) == (want, want)
    assert len(set(stability.rows)) == want
    y = problem.y.copy()
    kept = np.ones(len(y), bool)
    if change == "remove":
        kept[list(stability.rows)] = False
    else:
        y[list(stability.rows)] = stability.labels
    cost = lambda t: int(((np.array(t[1]) != y) & kept).sum()) + problem.leaf_cost * t[2]  # noqa: E731
    assert min(map(cost, rivals)) <= min(map(cost, homes))


def compare(seed):
    problem = random_problem(seed)
    X = problem.X
    change = CHANGES[seed % 2]
    trees = all_trees(X, problem.n_classes, problem.depth)
    is_high, answers, leaves = fitted(problem)

    splitting = [t for t in trees if t[0] is None or np.ptp(X[:, t[0]])]
    key = b"" if is_high is None else (is_high ^ is_high[0]).astype(np.uint8).tobytes()
    homes = [t for t in splitting if root_key(X, t[0]) == key]
    if len({root_key(X, t[0]) for t in splitting}) > 1:
        check(
            problem,
            root_stability(problem, is_high, change=change),
            homes,
            [t for t in splitting if root_key(X, t[0]) != key],
            change,
        )

    row = seed % len(X)
    homes = [t for t in trees if t[1][row] == answers[row]]
    rivals = [t for t in trees if t[1][row] != answers[row]]
    check(problem, answer_stability(problem, X[row], int(answers[row]), change=change), homes, rivals, change)

    homes = [t for t in trees if t[1] == tuple(answers.tolist())]
    rivals = [t for t in trees if t[1] != tuple(answers.tolist())]
    check(problem, tree_stability(problem, answers, leaves, change=change), homes, rivals, change)


@pytest.mark.parametrize("seed", range(6))
def test_stability_on_small_tables_equals_brute_force(seed):
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_stability_on_300_tables_equals_brute_force(seed):
    compare(seed)


def write_table(path):
    """Column a is wrong for two rows of 16, b for four other rows."""
    rows = [[k % 2, k % 2, k % 2] for k in range(16)]
    for k in (0, 1):
        rows[k][0] = 1 - rows[k][0]
    for k in (2, 7, 10, 15):
        rows[k][1] = 1 - rows[k][1]
    path.write_text("a,b,y\n" + "\n".join(f"{a},{b},{'yes' if y else 'no'}" for a, b, y in rows) + "\n")


def run_command(*arguments):
    out = io.StringIO()
    call_command("stability", *map(str, arguments), "--json", stdout=out)
    return json.loads(out.getvalue().splitlines()[-1])


@pytest.fixture
def files(tmp_path):
    write_table(tmp_path / "rows.csv")
    options = ("--target", "y", "--depth", "1", "--output", str(tmp_path / "model.json"))
    call_command("train", str(tmp_path / "rows.csv"), "--method", "exact", *options, stdout=io.StringIO())
    return tmp_path / "model.json", tmp_path / "rows.csv"


def test_stability_command_names_rows_that_are_enough(files):
    removal = run_command(*files)
    assert (removal["lower"], removal["upper"], removal["n"]) == (2, 2, 16)
    assert len(removal["rows"]) == 2
    assert set(removal["rows"]) < {3, 8, 11, 16}  # the rows on which the other question is wrong
    relabelling = run_command(*files, "--change", "relabel")
    assert (relabelling["lower"], relabelling["upper"]) == (1, 1)
    assert set(relabelling["rows"]) < {3, 8, 11, 16}
    assert run_command(*files, "--of", "tree")["upper"] == 2
    assert run_command(*files, "--row", "3")["upper"] == 2  # b answers it otherwise
    assert run_command(*files, "--row", "3", "--change", "relabel")["classes"]


def test_stability_command_with_other_rows_or_method_is_refused(files, tmp_path):
    model, rows = files
    with pytest.raises(CommandError, match="there is no row 17"):
        run_command(model, rows, "--row", "17")
    (tmp_path / "other.csv").write_text("a,b,y\n1,0,yes\n0,1,no\n")
    with pytest.raises(CommandError, match="not the rows that trained the model"):
        run_command(model, tmp_path / "other.csv")
    options = ("--target", "y", "--depth", "1", "--output", str(tmp_path / "cart.json"))
    call_command("train", str(rows), "--method", "cart", *options, stdout=io.StringIO())
    with pytest.raises(CommandError, match="has no certificate of stability"):
        run_command(tmp_path / "cart.json", rows)


def test_stability_with_unsupported_problems_is_refused():
    problem = random_problem(1)
    side = problem.X[:, 0] > 0
    weights = np.full(len(problem.y), 2, np.int64)
    for unsupported in (replace(problem, weights=weights), replace(problem, min_leaf=2), replace(problem, depth=0)):
        with pytest.raises(ParameterError):
            root_stability(unsupported, side)
    with pytest.raises(ParameterError, match="must be 'remove' or 'relabel'"):
        answer_stability(problem, problem.X[0], 0, change="swap")


def test_stability_of_a_tree_that_is_not_optimal_is_refused():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.uint8)
    problem = BinaryProblem(X, X[:, 0].astype(np.int32), n_classes=2, depth=1)
    with pytest.raises(DataError, match="is not optimal"):
        root_stability(problem, X[:, 1] > 0)
    with pytest.raises(DataError, match="not among the questions"):
        root_stability(problem, X[:, 0] != X[:, 1])


def test_stability_ended_by_a_limit_has_valid_bounds():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.uint8)
    problem = BinaryProblem(X, X[:, 0].astype(np.int32), n_classes=2, depth=1)
    ended = root_stability(problem, X[:, 0] > 0, stop=lambda: True)
    assert (ended.lower, ended.upper, ended.exact) == (0, None, False)


def test_stability_of_an_estimator_equals_brute_force():
    problem = random_problem(109)
    model = make_classifier("exact", depth=problem.depth, leaf_penalty=0.1)
    model.fit(problem.X, problem.y)
    counted = replace(problem, leaf_cost=Fraction(len(problem.y), 10))
    _, answers, leaves = fitted(counted)
    assert model.stability("tree") == tree_stability(counted, answers, leaves)
    assert model.stability(row=0) == answer_stability(counted, problem.X[0], int(answers[0]))
    with pytest.raises(ValueError, match="has no row 99"):
        model.stability(row=99)
    with pytest.raises(ParameterError, match="must be one of root, tree"):
        model.stability("leaf")
