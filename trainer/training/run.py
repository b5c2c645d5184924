"""Run a training from its request to tree, certificate and model file.

The method runs in a worker thread (`trainer.training.supervised_thread`), because Python delivers signals to the main thread.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from trainer.certificate import OPTIMAL_GAP, Certificate, Evidence, Guarantee, Progress, Status, relative_gap
from trainer.data.column_statistics import describe_columns
from trainer.data.costs import CostTerm, RowCosts
from trainer.data.folds import Folds, assign_folds, check_evaluation, holdout, rows_record
from trainer.data.problem import Problem, balance_error
from trainer.data.row_weights import weight_error
from trainer.errors import InfeasibleError, ParameterError, SolverError
from trainer.goal import Goal
from trainer.methods.base import Method, Settings, Solution
from trainer.methods.monitor import Monitor, Sink
from trainer.methods.scope import scope_of
from trainer.registry import METHODS, get
from trainer.solver_common.goal_search import goal_method, with_positive
from trainer.solver_common.problem_setup import (
    chosen_settings,
    costs_of,
    file_parameters,
    limits_of,
    pose,
    searched_settings,
)
from trainer.table import Labels, Table, fingerprint
from trainer.training.first_tree import at_least_first_tree, report_first_tree
from trainer.training.metrics import JudgedRows, crossed_metrics, held_out_costs, held_out_groups, metrics_of
from trainer.training.proof_file import ProofLimits, write_proof
from trainer.training.recovery import RecoveredRun, solution_from_progress
from trainer.training.single_question import judge_best_question
from trainer.training.size_choice import settle_size
from trainer.training.summary import summary_of
from trainer.training.supervised_thread import TICK, compiler_runs, prepare, solve
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Draft, Tree, simplify, to_draft

TOLERANCE = 1e-9
SAME = 1e-12  # two computations of the same number differ by at most this
MAX_FOLD_NODES = 20_000  # trees of folds are stored in the model file up to this many nodes in total
MAX_TREE_IN_PROGRESS = 255  # limit on the nodes of an incumbent that progress lines contain


LISTS_TREES = (Evidence.LEAF_FRONTIER, Evidence.COEFFICIENT_FRONTIER, Evidence.OPTIMAL_TREES)
CHECK = "check"  # phase that reports the final tree


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """A training: rows, method, settings and evaluation.

    Parameters
    ----------
    table, labels
        The rows and their classes.
    method : str
        Id of the method.
    parameters : mapping
        Its settings.
    test_share : float
        Share of the rows to hold out, in [0, 0.9].
    folds : int
        Number of folds of a cross-validation, at least 2; 0 for none.
    weights : int64 array of shape (n_rows,), optional
        Row weights.
    name : str
        Name of the model.
    warm_start : Tree, optional
        A tree to begin with; its columns and classes are matched by name. Folds ignore it, because it may have seen their
        held-out rows.
    proof : Path, optional
        File for the proof of the bound, within `proof_limits`.
    left : RecoveredRun, optional
        The state of a killed run of this request. Its tree is kept, and no search is started.
    costs : float64 array of shape (n_rows, n_classes), optional
        Cost of each answer in each row, if the parameter `costs` is "rows".
    """

    table: Table
    labels: Labels
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    test_share: float = 0.0
    folds: int = 0
    weights: np.ndarray | None = None
    name: str = ""
    warm_start: Tree | None = None
    proof: Path | None = None
    proof_limits: ProofLimits = field(default_factory=ProofLimits)
    left: RecoveredRun | None = None
    costs: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """The model file, its tree, certificate, and the record that `train --json` prints."""

    model: ModelFile
    tree: Tree
    certificate: Certificate
    summary: dict[str, Any]


def train(
    request: TrainRequest, *, sink: Sink | None = None, on_start: Callable[[Monitor], None] | None = None
) -> TrainResult:
    """Train a tree, certify it, and evaluate it on unseen rows.

    Parameters
    ----------
    request : TrainRequest
    sink : callable, optional
        Receives the progress.
    on_start : callable, optional
        Receives the monitor, so that the caller can cancel from a signal handler or another thread.

    Returns
    -------
    TrainResult

    Raises
    ------
    TrainerError
        If the request cannot be trained; the message is for the user.
    """
    method = get(request.method)
    settings = method.settings(request.parameters)
    check_evaluation(request.test_share, request.folds, len(request.table))
    _check_start(request, method)
    seed = settings.get("seed", 0)
    train_rows, test_rows = holdout(request.labels.codes, request.test_share, seed, request.table)
    folds = assign_folds(request.labels.codes, request.folds, seed, request.table) if request.folds else None
    # choose the positive class once, so that all folds have the same one
    settings = with_positive(request.labels.take(train_rows), row_weights(request, train_rows), settings)
    problem = _problem(request, settings, train_rows, start=request.warm_start)
    # read the costs of test rows before the search, so that errors appear early
    row_costs_of(request, settings, test_rows)
    prepare(problem)
    monitor = Monitor(limits_of(settings), sink)
    if on_start is not None:
        on_start(monitor)
    requested = settings
    monitor.while_compiling = partial(report_first_tree, method, problem, settings, monitor)
    problem, settings, size = settle_size(method, problem, settings, monitor)
    monitor.while_compiling = partial(report_first_tree, method, problem, settings, monitor)
    tree, certificate, solution = fit(method, problem, settings, monitor, request.left)
    monitor.report(
        phase=CHECK,
        incumbent=certificate.objective,
        bound=certificate.bound,
        leaves=tree.n_leaves,
        draft=to_draft(tree),
    )
    metrics = _metrics(request, tree, test_rows, problem, settings)
    fold_trees = None
    questions: list[dict[str, Any]] = []
    if folds is not None and (monitor.cancelled or request.left is not None):
        folds = None
    if folds is not None:
        metrics["cross_validation"], trees, questions = _cross_validate(method, request, requested, monitor, folds)
        small = sum(len(one.nodes) for one in trees) <= MAX_FOLD_NODES
        fold_trees = [nodes_of_fold(one) for one in trees] if small else None
    claim = certificate.to_json() | _best_question(request, tree, problem, (train_rows, test_rows), folds)
    if request.proof is not None and not monitor.cancelled:
        monitor.report(phase="proof")
        searched = searched_settings(problem, settings)
        limits = request.proof_limits
        claim["evidence"].append(
            write_proof(request.proof, problem.searched, method, searched, solution, limits, lambda: monitor.cancelled)
        )
    model = ModelFile(
        tree=describe_columns(tree, problem.matrix),
        target=request.labels.name,
        method=method.id,
        name=request.name,
        parameters=file_parameters(problem, settings) | {"test_share": request.test_share, "folds": request.folds},
        metrics=metrics,
        certificate=claim,
        fingerprint=fingerprint(problem.table, problem.labels),
        rows=rows_record(request.table, train_rows, test_rows, folds, request.weights, fold_trees, request.costs)
        | ({"fold_questions": questions} if fold_trees and any(questions) else {}),
        reading=request.table.reading,
        class_type=request.labels.type,
        sizes=size or None,
    )
    return TrainResult(
        model=model,
        tree=tree,
        certificate=certificate,
        summary=summary_of(model, certificate, problem, solution) | {"compile_seconds": monitor.compiled()},
    )


def _best_question(
    request: TrainRequest,
    tree: Tree,
    problem: Problem,
    held_out: tuple[np.ndarray, np.ndarray],
    folds: Folds | None,
) -> dict[str, Any]:
    """Return the accuracy of the best single question on unseen rows; empty for trees of at most two leaves, or with costs."""
    if tree.n_leaves <= 2 or problem.costs is not None or request.left is not None:
        return {}
    if compiler_runs():  # its kernels would wait for the compiler of an abandoned search
        return {}
    parts = [held_out] if folds is None else [(folds.training(f), folds.validation(f)) for f in range(request.folds)]
    if not all(len(judged) for _, judged in parts):
        return {}
    weights = row_weights(request, np.arange(len(request.table)))
    return judge_best_question(request.table, request.labels, weights, parts)


def row_costs_of(request: TrainRequest, settings: Settings, rows: np.ndarray) -> RowCosts | None:
    """Return the costs of some rows of a request; None without costs. Raise ParameterError."""
    return costs_of(
        request.table.take(rows),
        request.labels.take(rows),
        settings,
        weights=row_weights(request, rows),
        given_costs=None if request.costs is None else request.costs[rows],
    )


def _metrics(
    request: TrainRequest, tree: Tree, rows: np.ndarray, problem: Problem, settings: Settings
) -> dict[str, Any]:
    """Return the metrics of the training rows, and of the held-out `rows` with intervals over groups and costs."""
    constant = 0 if problem.costs is None else problem.costs.best_constant
    training = metrics_of(tree, problem.matrix, problem.y, problem.weights, problem.costs, constant)
    if request.table.weights is not None:
        training["rows"] = len(problem.y)
    if not len(rows):
        return {"train": training}
    table = request.table.take(rows)
    codes = request.labels.codes[rows]
    weights = row_weights(request, rows)
    costs = row_costs_of(request, settings, rows)
    held_out = metrics_of(tree, table.matrix(), codes, weights, costs, constant)
    held_out |= held_out_groups(tree, table, codes, weights) | held_out_costs(tree, table, costs, constant)
    return {"train": training, "test": held_out}


def nodes_of_fold(tree: Tree) -> list[dict[str, Any]]:
    """Return the nodes of the tree of a fold, without bounds of its splits."""
    bounds = ("impurity", "impurity_bound", "measure")
    return [{name: value for name, value in node.items() if name not in bounds} for node in tree.to_json()]


def fit(
    method: Method, problem: Problem, settings: Settings, monitor: Monitor, left: RecoveredRun | None = None
) -> tuple[Tree, Certificate, Solution]:
    """Solve, build the tree, and certify it with counts from the rows; no number of a solver is used unchecked.

    `left` is the state of a killed run, which replaces the search.
    """
    if method.two_classes and problem.n_classes > 2:  # a single class is allowed, since a leaf solves it
        raise ParameterError(
            {
                "method": f"'{method.id}' needs two classes, but the target has {problem.n_classes}. Choose another method or target."
            }
        )
    if problem.n_classes > 1:
        method.check(settings, problem.names)
    solution = (
        _without_copies(
            problem,
            solve(
                goal_method(method, problem, settings),
                problem.searched,
                searched_settings(problem, settings),
                monitor,
            ),
        )
        if left is None
        else solution_from_progress(method, problem, settings, left)
    )
    solution = at_least_first_tree(problem, settings, solution, monitor.first_draft)
    tree = problem.tree(solution.draft)
    if method.guarantee is Guarantee.TREE:
        simpler = problem.tree(simplify(tree))
        if problem.gain(simpler) < problem.gain(tree):
            raise SolverError(
                "Simplifying the tree lost correct rows, which is a defect of octweb. Report it with the data and the settings."
            )
        tree = simpler
    tree = problem.finish(tree)
    return tree, certify(method, problem, settings, solution, tree, monitor), solution


def _without_copies(problem: Problem, solution: Solution) -> Solution:
    """Return the solution with evidence about rows in place of copies, without lists of trees."""
    if problem.costs is None:
        return solution
    rows = np.nonzero(problem.costs.copies)[0]
    evidence = tuple(_of_rows(e, rows) for e in solution.evidence if e["kind"] not in LISTS_TREES)
    return replace(solution, evidence=evidence)


def _of_rows(part: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Replace copies by their rows in the groups of the evidence; `rows` maps copies to rows."""
    if part["kind"] != Evidence.PLANES:
        return part
    groups = [group | {"rows": np.unique(rows[group["rows"]]).tolist()} for group in part["groups"]]
    return part | {"groups": groups}


def certify(
    method: Method, problem: Problem, settings: Settings, solution: Solution, tree: Tree, monitor: Monitor
) -> Certificate:
    """Return the certificate of a tree; raise SolverError if the solver's bound contradicts the tree."""
    objective = objective_of(problem, tree, solution.goal)
    bound = solution.bound
    if bound is not None:
        if bound < objective - TOLERANCE:
            raise SolverError(
                f"The solver's bound {bound:.9g} lies below the objective {objective:.9g} of its own tree. The result was discarded. Train again with another solver or seed, or report this."
            )
        bound = max(bound, objective)
    status = solution.status(method.guarantee, monitor)
    gap = relative_gap(objective, bound)
    allowed_gap = float(settings.get("mip_gap") or 0.0)
    # a stopped search proves its tree only if bound and objective are equal; a search that finishes may round its bound
    near = OPTIMAL_GAP if solution.finished else SAME
    # rounding in floats may make a gap slightly larger than the equal allowed one
    closed = gap is not None and gap <= max(near, allowed_gap + SAME)
    if closed and not solution.unproved and method.guarantee is Guarantee.TREE:
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL:
        raise SolverError(
            "The solver ended without reaching a limit, but its bound does not prove its tree. "
            "The result was discarded. Train again with another solver or seed, or report this."
        )
    subtrees = _subtree_counts(method, settings, solution, tree)
    splits = [v for v in tree.branches if v.impurity is not None]
    proved = [v for v in splits if v.split_proved]
    return Certificate(
        method=method.id,
        guarantee=method.guarantee,
        status=status,
        objective=objective,
        bound=bound,
        gap=gap,
        mip_gap=allowed_gap,
        scope=scope_of(method, problem, settings, solution.scope, solution.wishes),
        splits=len(tree.branches) if method.guarantee is Guarantee.SPLITS else None,
        splits_proved=len(proved) if method.guarantee is Guarantee.SPLITS else None,
        subtrees=subtrees.get("subtrees"),
        subtrees_proved=subtrees.get("subtrees_proved"),
        correct=problem.correct(tree),
        n=problem.n,
        leaves=tree.n_leaves,
        depth=tree.depth,
        leaf_penalty=str(problem.leaf_penalty),
        coefficient_penalty=str(problem.coefficient_penalty) if problem.coefficient_penalty else None,
        nodes=solution.nodes,
        cuts=solution.cuts,
        seconds=monitor.elapsed(),
        solver=solution.solver,
        solver_version=solution.solver_version,
        warm_start_objective=solution.warm_start_objective,
        evidence=solution.evidence,
        goal=None if solution.goal is None else solution.goal.to_json(),
        unproved=solution.unproved,
        note=solution.note,
        column_prices=price_record(problem, tree),
        costs=None if problem.costs is None else cost_record(problem, problem.costs, tree, bound),
        weights=weight_record(problem, tree),
        class_weights=class_weight_record(problem, settings, tree),
        weight_error=0.0 if problem.table.weights is None else weight_error(problem.table.weights),
    )


def _subtree_counts(method: Method, settings: Settings, solution: Solution, tree: Tree) -> dict[str, int]:
    """Return the number of small subtrees and of the proved ones; empty if the method does not prove subtrees."""
    if method.guarantee is not Guarantee.SUBTREES:
        return {}
    small = sum(height <= settings["height"] for height in tree.heights)
    open_ids = next((part["open"] for part in solution.evidence if part["kind"] == Evidence.SUBTREES), None)
    return {"subtrees": small, "subtrees_proved": 0 if open_ids is None else small - len(open_ids)}


def weight_record(problem: Problem, tree: Tree) -> dict[str, Any] | None:
    """Return the record of a weight column for a certificate: its step and the unweighted rows; None without weights."""
    weights = problem.table.weights
    if weights is None:
        return None
    correct = int((tree.predict(problem.matrix) == problem.y).sum())
    return {"column": weights.column, "step": str(weights.step), "rows": len(problem.y), "correct_rows": correct}


def class_weight_record(problem: Problem, settings: Settings, tree: Tree) -> dict[str, Any] | None:
    """Return the record of balanced classes for a certificate: what a row counts by its class; None if all rows count once.

    It is per step of weight if rows have weights, in the mean of the class if they are rounded. `error` is how much rounded weights change a mean of recalls at most.
    """
    if settings.get("class_weight") != "balanced" or problem.quantile_weights is None:
        return None
    plain, weighted = (
        np.bincount(problem.y, weights, minlength=problem.n_classes).astype(np.int64).tolist()
        for weights in (problem.quantile_weights, problem.row_weights)
    )
    correct = int((tree.predict(problem.matrix) == problem.y).sum())
    counted = zip(problem.labels.classes, weighted, plain, strict=True)
    factors = {name: str(Fraction(weight, rows)) for name, weight, rows in counted if rows}
    error = balance_error(problem.labels, problem.quantile_weights, problem.row_weights)
    if set(factors.values()) == {"1"} and not error:
        return None
    record: dict[str, Any] = {"weights": factors, "rows": len(problem.y), "correct_rows": correct}
    return record | ({"error": error} if error else {})


def price_record(problem: Problem, tree: Tree) -> dict[str, Any] | None:
    """Return the record of column prices for a certificate: prices, weights of the rows that pay, and the sum."""
    if not problem.column_prices:
        return None
    names = problem.table.names
    paid = problem.paid_weights(tree)
    return {
        "unit": "" if problem.costs is None else problem.costs.matrix.unit,
        "prices": {names[j]: str(CostTerm(factor=price)) for j, price in problem.column_prices.items()},
        "paid": {names[j]: weight for j, weight in paid.items()},
        "cost": float(problem.column_cost(tree)),
    }


def cost_record(problem: Problem, costs: RowCosts, tree: Tree, bound: float | None) -> dict[str, Any]:
    """Return the record of costs for a certificate, in their unit.

    `least` is the proved lower bound of the cost of any tree in scope, including its leaves.
    """
    cost = costs.total(tree.predict(problem.matrix))
    price = costs.price_of(problem.leaf_penalty)
    least = None if bound is None else costs.cost_of(Fraction(bound))
    # the tree meets the bound, so use its own cost, which is not rounded
    if bound is not None and bound <= problem.objective(tree):
        least = cost + price * tree.n_leaves + problem.column_cost(tree) / costs.step
    return costs.record(cost=cost, price=price, least=least)


def objective_of(problem: Problem, tree: Tree, goal: Goal | None) -> float:
    """Return the objective of a tree; raise SolverError if it violates the constraints of the goal."""
    if goal is None:
        return problem.objective(tree)
    positive = problem.y == problem.labels.classes.index(goal.positive)
    weights = problem.row_weights
    predicted_positive = tree.predict(problem.matrix) == problem.labels.classes.index(goal.positive)
    tp = int(weights[positive & predicted_positive].sum())
    tn = int(weights[~positive & ~predicted_positive].sum())
    counts = (tp, int(weights[positive].sum()), tn, int(weights[~positive].sum()))
    if not goal.admits(*counts):
        raise SolverError(
            "The tree of the solver lacks the required sensitivity or specificity. "
            "The result was discarded. Train again with another solver or seed, or report this."
        )
    return float(goal.value(*counts) - problem.leaf_penalty * tree.n_leaves)


def progress_writer(stream: IO[str], problem_of: Callable[[], Problem | None] = lambda: None) -> Sink:
    """Return a sink that writes one JSON object per line; a line with a new incumbent has its nodes as `tree`."""

    def write(progress: Progress, draft: Draft | None) -> None:
        record = progress.to_json()
        problem = problem_of()
        if draft is not None and problem is not None:
            tree = problem.tree(draft)
            if progress.phase != CHECK:  # the final tree has been finished already
                tree = problem.finish(tree)
            record["correct"] = problem.correct(tree)
            record["leaves"] = tree.n_leaves
            if len(tree.nodes) <= MAX_TREE_IN_PROGRESS:
                record |= {
                    "tree": tree.to_json(),
                    "columns": [tree.schema[j].to_json() for j in tree.used_columns],
                    "classes": list(tree.classes),
                }
        stream.write(json.dumps(record, allow_nan=False) + "\n")
        stream.flush()

    return write


def training_problem(request: TrainRequest) -> Problem:
    """Return the problem that `train` will solve, for a progress sink that shows trees."""
    settings = get(request.method).settings(request.parameters)
    rows, _ = holdout(request.labels.codes, request.test_share, settings.get("seed", 0), request.table)
    return _problem(request, settings, rows)


def _problem(request: TrainRequest, settings: Settings, rows: np.ndarray, start: Tree | None = None) -> Problem:
    weights = None if request.weights is None else request.weights[rows]
    row_costs = None if request.costs is None else request.costs[rows]
    return pose(
        request.table.take(rows),
        request.labels.take(rows),
        settings,
        weights=weights,
        start=start,
        given_costs=row_costs,
    )


def _check_start(request: TrainRequest, method: Method) -> None:
    if request.warm_start is not None and not method.warm_start:
        able = ", ".join(m.id for m in METHODS if m.warm_start)
        raise ParameterError(
            {
                "warm_start": f"'{method.id}' cannot begin with another tree. Leave the start tree out, or choose one of these methods: {able}."
            }
        )


def row_weights(request: TrainRequest, rows: np.ndarray) -> np.ndarray | None:
    """Return the weights of `rows`, int64, from the request or its table; None if all rows have weight 1."""
    weights = request.table.weights
    if request.weights is None and weights is not None:
        return weights.values[rows]
    return None if request.weights is None else request.weights[rows].astype(np.int64)


def _cross_validate(
    method: Method, request: TrainRequest, settings: Settings, monitor: Monitor, folds: Folds
) -> tuple[dict[str, Any], list[Tree], list[dict[str, Any]]]:
    """Cross-validate the method: return its metrics, the trees of the folds, and their chosen settings.

    Each fold has the full time limit. If thresholds or size are 'auto', each fold chooses them from its own rows.
    """
    codes = request.labels.codes
    trees: list[Tree] = []
    questions: list[dict[str, Any]] = []
    k = len(request.labels.classes)
    confusion = np.zeros((k, k), np.int64)
    accuracies = []
    leaves = []
    ended = ""
    judged_rows = JudgedRows()
    for f in range(request.folds):
        if monitor.cancelled:
            break
        monitor.report(phase=f"fold {f + 1} of {request.folds}")
        problem = _problem(request, settings, folds.training(f))
        inner = Monitor(limits_of(settings))
        cancel = _forward_cancel(monitor, inner)
        try:
            problem, sized, _ = settle_size(method, problem, settings, inner)
            tree, _, _ = fit(method, problem, sized, inner)
        except (InfeasibleError, SolverError) as error:
            # the tree of all rows is kept, and the record says which fold failed
            ended = f"fold {f + 1} of {request.folds}: {error}"
            break
        finally:
            cancel.set()
        if monitor.cancelled:
            break  # the search of this fold was cut short, so its result does not count
        test = folds.validation(f)
        judged = request.table.take(test)
        result = metrics_of(tree, judged.matrix(), codes[test], row_weights(request, test))
        judged_rows.add(tree, judged, codes[test], row_weights(request, test))
        trees.append(tree)
        questions.append(chosen_settings(problem, settings, sized))
        accuracies.append(result["accuracy"])
        leaves.append(tree.n_leaves)
        confusion += np.asarray(result["confusion"])
    if len(accuracies) < request.folds:
        reason = {"ended": ended} if ended else {}
        return (
            {"folds": request.folds, "finished": len(accuracies), "accuracies": accuracies, **reason},
            trees,
            questions,
        )
    counts = int(np.trace(confusion)), int(confusion.sum())
    metrics = crossed_metrics(request.folds, accuracies, leaves, confusion, counts)
    table = request.table
    if table.groups is not None or table.times is not None or table.weights is not None:
        metrics |= judged_rows.to_json(table, request.folds)
    if table.groups is not None or table.times is not None:
        metrics["by_fold"] = folds.counts(codes, k)
    return metrics, trees, questions


def _forward_cancel(outer: Monitor, inner: Monitor) -> threading.Event:
    """Forward a cancel of the whole run to the current fold."""
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(TICK):
            if outer.cancelled:
                inner.stop(Status.CANCELLED)
                return

    threading.Thread(target=watch, name="cancel", daemon=True).start()
    return finished


def save(model: ModelFile, path: str | Path) -> None:
    """Write the model file, checked against its schema, and atomically."""
    from trainer.tree.file import write

    write(model, path)
