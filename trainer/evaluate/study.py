"""Run a study: every variant on the same folds of every data set.

Each fold gives one record. `test_share` holds rows out of the whole study. With `nested`, every pair of folds is left out as well.
Trees without the folds o and i choose a variant for o by their accuracy on i. `trainer.evaluate.choice` turns that into an
unbiased estimate.

Records are appended to a file as they come, one JSON object per line. A study that is started again with the same file computes
only the missing records, so an interruption loses only the running folds.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.costs import RowCosts
from trainer.data.folds import MOST_FOLDS, Folds, assign_folds, check_evaluation, group_sums, holdout
from trainer.data.share_interval import CostSums, WeightSums
from trainer.dtypes import FloatArray
from trainer.errors import DataError, ParameterError, TrainerError
from trainer.goal import score_name, stated_goal
from trainer.methods.base import AUTO, Settings
from trainer.registry import get
from trainer.solver_common.goal_search import with_positive
from trainer.solver_common.problem_setup import costs_of
from trainer.table import Labels, Table, fingerprint
from trainer.training.metrics import metrics_of
from trainer.training.rewarded import as_costs
from trainer.training.run import TrainRequest, TrainResult, nodes_of_fold, train
from trainer.training.warm_up import warm
from trainer.tree.nodes import Tree

MAX_RECORD_BYTES = 1 << 20  # limit on the bytes of a record


@dataclass(frozen=True, kw_only=True)
class StudyDataset:
    """A data set of a study: a table with labels, and its name in the results."""

    name: str
    table: Table
    labels: Labels

    @property
    def group(self) -> str:
        """The column whose values name the groups of rows; empty for none."""
        return "" if self.table.groups is None else self.table.groups.column

    @property
    def time(self) -> str:
        """The column that orders the rows in time; empty for none."""
        return "" if self.table.times is None else self.table.times.column

    @property
    def weight(self) -> str:
        """The column of row weights; empty for none."""
        return "" if self.table.weights is None else self.table.weights.column

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Return the weights of some rows.

        Parameters
        ----------
        rows : int64 array of shape (m,)
            Indices of rows.

        Returns
        -------
        int64 array of shape (m,)
            1 for each row if the table has no weights.
        """
        column = self.table.weights
        return np.ones(len(rows), np.int64) if column is None else column.values[rows]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A method with parameters; variants of one `group` are ranked against each other, and the first is the
    control.
    """

    label: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""

    @property
    def key(self) -> str:
        """The identity of a variant: the method and all its checked parameters except threads, as JSON."""
        values = get(self.method).settings(self.parameters).to_json()
        return json.dumps([self.method, {k: v for k, v in sorted(values.items()) if k != "threads"}])


@dataclass(frozen=True, kw_only=True)
class Study:
    """Data sets, variants and folds to compute; `threads` lists the numbers of threads with which each fold is timed.

    Raises ParameterError if a variant has a bad parameter or the number of folds does not fit a data set.
    """

    datasets: Sequence[StudyDataset]
    variants: Sequence[Variant]
    folds: int = 10
    seed: int = 0
    threads: Sequence[int] = (1,)
    test_share: float = 0.0
    nested: bool = False

    def __post_init__(self) -> None:
        check_evaluation(self.test_share, 0, max((len(d.table) for d in self.datasets), default=0))
        if self.nested and self.folds < 3:
            raise ParameterError(
                {
                    "folds": f"must be at least 3 with nested folds: one is left out, one chooses, one trains. It is {self.folds}."
                }
            )
        if not 2 <= self.folds <= MOST_FOLDS:
            raise ParameterError({"folds": f"must be from 2 to {MOST_FOLDS}. It is {self.folds}."})
        for dataset in self.datasets:
            if len(dataset.table) < self.folds:
                raise ParameterError(
                    {
                        "folds": f"'{dataset.name}' has {len(dataset.table)} rows, too few for {self.folds} folds. Choose fewer folds."
                    }
                )
            _assign(dataset, self.folds, self.seed, self.test_share)
        for variant in self.variants:
            get(variant.method).settings(variant.parameters)
        for what, names in (("data set", self.datasets), ("variant", self.variants)):
            labels = [n.name if isinstance(n, StudyDataset) else n.label for n in names]
            if len(set(labels)) < len(labels):
                raise ParameterError(
                    {"study": f"two {what}s have the same name: {', '.join(labels)}. Rename one of them."}
                )


@dataclass(frozen=True, kw_only=True)
class FoldRecord:
    """Result of one fold: a variant's tree, trained on the other folds and measured on this one.

    `error` says why there is no tree. With a `second` fold (-1: none) both folds are left out in training, and the tree is measured on
    the second one, too.
    """

    dataset: str
    fingerprint: str
    variant: str
    key: str
    folds: int
    seed: int
    fold: int
    threads: int
    correct: int = 0
    n: int = 0
    accuracy: float = 0.0
    train_accuracy: float = 0.0
    leaves: int = 0
    depth: int = 0
    seconds: float = 0.0
    status: str = ""
    gap: float | None = None
    splits: int | None = None
    splits_proved: int | None = None
    subtrees: int | None = None
    subtrees_proved: int | None = None
    error: str = ""
    test_share: float = 0.0
    second: int = -1
    second_correct: int = 0
    second_n: int = 0
    # number of judged rows in the most frequent class of the training rows; None in older records
    base_correct: int | None = None
    cost: float | None = None  # total cost of the answers to the judged rows, if answers have costs
    # total cost if every judged row gets the best single answer of the training rows
    constant_cost: float | None = None
    cost_unit: str = ""
    weight_step: float = 1.0  # one unit of `n` in a cost per row, if answers have costs
    # members of `CostSums` for the judged rows, except cost and n
    cost_sums: list[float] = field(default_factory=list)
    second_cost: float | None = None
    goal: str = ""  # one of balanced, f1 and mcc, or empty
    goal_name: str = ""
    positive: int = 0  # index of the goal's positive class
    # confusion matrix of the judged rows; empty without a goal
    confusion: list[list[int]] = field(default_factory=list)
    # nodes of the tree; empty if rows are held out or the tree is large
    tree: list[dict[str, Any]] = field(default_factory=list)
    group: str = ""  # column whose groups stay together in a fold, if any
    time: str = ""
    # for each group of the judged rows: group, correct rows and rows
    by_group: list[list[int]] = field(default_factory=list)
    weight: str = ""  # column of row weights; `correct` and `n` are then sums of weights
    rows: int = 0  # number of judged rows, if rows have weights
    # sums of squared weights over all judged rows and over the correct ones
    squares: list[float] = field(default_factory=list)
    # parameters that were chosen from the data, see _chosen_settings
    questions: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Key that is equal for two records of the same computation."""
        rows = (self.test_share, self.fold, self.second, self.group, self.time, self.weight)
        return (self.fingerprint, self.key, self.folds, self.seed, self.threads, *rows)


@dataclass(frozen=True, kw_only=True)
class _Task:
    dataset: StudyDataset
    variant: Variant
    folds: int
    seed: int
    fold: int
    threads: int
    fingerprint: str
    test_share: float = 0.0
    second: int = -1

    @property
    def head(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset.name, "fingerprint": self.fingerprint, "variant": self.variant.label,
            "key": self.variant.key, "folds": self.folds, "seed": self.seed, "fold": self.fold, "threads": self.threads,
            "test_share": self.test_share, "second": self.second, "group": self.dataset.group, "time": self.dataset.time,
            "weight": self.dataset.weight,
        }  # fmt: skip

    @property
    def identity(self) -> tuple[Any, ...]:
        return FoldRecord(**self.head).identity


def run_study(
    study: Study,
    *,
    path: Path | None = None,
    jobs: int = 1,
    context: AbstractContextManager[Any] | None = None,
    on_record: Callable[[FoldRecord, int, int], None] = lambda record, finished, total: None,
) -> list[FoldRecord]:
    """Compute all records of a study, except those that the file `path` has already.

    Each new record is appended to the file at once. A fold that fails leaves a record with its `error` and is tried again next time.

    Parameters
    ----------
    study : Study
        Data sets, variants and folds.
    path : Path, optional
        File of records, one JSON object per line; it need not exist.
    jobs : int
        Number of folds that run at once; with more than one, times are measured on a busy machine.
    context : context manager, optional
        A joblib configuration, such as that of a dask cluster.
    on_record : callable
        Called as `on_record(record, finished, total)` after each new record.

    Returns
    -------
    list of FoldRecord
        One for each fold, in the order of the study.

    Raises
    ------
    DataError
        If a line of `path` other than the last one is not a record.
    """
    from joblib import Parallel, delayed

    tasks = _tasks(study)
    recorded = {r.identity: r for r in read_records(path)} if path is not None and path.exists() else {}
    recorded = {identity: record for identity, record in recorded.items() if not record.error}
    required = {task.identity: task for task in tasks}
    missing = [task for identity, task in required.items() if identity not in recorded]
    finished = len(required) - len(missing)
    with context or nullcontext():
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        for record in pool(delayed(_fold)(task) for task in missing):
            recorded[record.identity] = record
            finished += 1
            if path is not None:
                _append(path, record)
            on_record(record, finished, len(required))
    # the file may hold the same computation under another name of the data set or variant, so insert the current names
    return [replace(recorded[t.identity], dataset=t.dataset.name, variant=t.variant.label) for t in tasks]


def read_records(path: Path) -> Iterable[FoldRecord]:
    """Yield the records of a file; skip a half-written last line, which an interruption leaves.

    Raises DataError if another line is not a record.
    """
    names = {f.name for f in fields(FoldRecord)}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
            yield FoldRecord(**{name: value for name, value in values.items() if name in names})
        except (ValueError, TypeError, AttributeError) as error:
            if number < len(lines):
                raise DataError(
                    f"Line {number} of {path} is not a record of a study: {error}. Remove the line, or choose another file."
                ) from error


def _append(path: Path, record: FoldRecord) -> None:
    """Append one line; first remove a half-written line, which an interruption leaves."""
    with path.open("ab+") as stream:
        size = stream.seek(0, 2)
        back = min(size, MAX_RECORD_BYTES)
        stream.seek(size - back)
        stream.truncate(size - back + stream.read(back).rfind(b"\n") + 1)
        stream.write((json.dumps(asdict(record), allow_nan=False) + "\n").encode())


def _tasks(study: Study) -> list[_Task]:
    tasks = []
    for dataset in study.datasets:
        mark = fingerprint(dataset.table, dataset.labels)
        for variant in study.variants:
            takes = get(variant.method).parameter("threads") is not None
            for threads in study.threads if takes else (1,):
                tasks += [
                    _Task(
                        dataset=dataset,
                        variant=variant,
                        folds=study.folds,
                        seed=study.seed,
                        fold=fold,
                        threads=threads,
                        fingerprint=mark,
                        test_share=study.test_share,
                        second=second,
                    )
                    for fold, second in _left_out(study)
                ]
    return tasks


def _left_out(study: Study) -> list[tuple[int, int]]:
    """Return the folds that each tree is grown without: every fold alone, then every pair if the study is nested."""
    alone = [(fold, -1) for fold in range(study.folds)]
    return alone + (list(itertools.combinations(range(study.folds), 2)) if study.nested else [])


@cache
def _warmed(method_id: str) -> None:
    """Compile once per process, so that no fold's time includes it."""
    warm(method_id, workbench=False)


def _fold(task: _Task) -> FoldRecord:
    """Train a variant without the folds of a task and measure it on them.

    A TrainerError becomes the error of the record.
    """
    codes = task.dataset.labels.codes
    rows, folds = _assign(task.dataset, task.folds, task.seed, task.test_share)
    inside = rows[folds.training(task.fold, task.second)]
    outside = rows[folds.validation(task.fold, task.second)]
    second = rows[folds.validation(task.second, task.fold)] if task.second >= 0 else rows[:0]
    if not len(inside) or not len(outside):
        return FoldRecord(
            **task.head,
            error="The fold has no row to train on, or none to judge the tree on. Choose fewer folds.",
            status="failed",
        )
    method = get(task.variant.method)
    parameters = dict(task.variant.parameters)
    if method.parameter("threads") is not None:
        parameters["threads"] = task.threads
    _warmed(method.id)
    try:
        costed_request, _ = as_costs(
            TrainRequest(table=task.dataset.table, labels=task.dataset.labels, method=method.id, parameters=parameters)
        )
        dataset = replace(task.dataset, table=costed_request.table)  # use the table without columns of rewards
        parameters = dict(costed_request.parameters)
        unseen = dataset.table.take(outside)
        everyone = with_positive(
            task.dataset.labels.take(rows), task.dataset.weights(rows), method.settings(parameters)
        )
        if everyone.get("positive"):
            parameters["positive"] = everyone["positive"]
        row_costs = costed_request.costs
        costs = _costs_of_rows(dataset, outside, method.settings(parameters), row_costs)
        second_costs = _costs_of_rows(dataset, second, method.settings(parameters), row_costs)
        result = train(
            TrainRequest(
                table=dataset.table.take(inside),
                labels=dataset.labels.take(inside),
                method=method.id,
                parameters=parameters,
                costs=None if row_costs is None else row_costs[inside],
            )
        )
    except TrainerError as error:
        return FoldRecord(**task.head, error=str(error), status="failed")
    correct = _correct(result.tree, dataset, outside)
    weights = dataset.weights(outside)
    n = int(weights.sum())
    certificate = result.certificate
    return FoldRecord(
        **task.head,
        correct=correct,
        n=n,
        accuracy=correct / n,
        train_accuracy=certificate.correct / certificate.n,
        leaves=result.tree.n_leaves,
        depth=result.tree.depth,
        seconds=certificate.seconds,
        status=str(certificate.status),
        gap=certificate.gap,
        splits=certificate.splits,
        splits_proved=certificate.splits_proved,
        subtrees=certificate.subtrees,
        subtrees_proved=certificate.subtrees_proved,
        second_correct=_correct(result.tree, dataset, second),
        second_n=int(dataset.weights(second).sum()),
        base_correct=int(weights[codes[outside] == _most_frequent(dataset, inside)].sum()),
        **_cost_record(result, costs, unseen),
        second_cost=_cost(result.tree, second_costs, dataset.table.take(second)),
        **_goal_record(result, unseen.matrix(), codes[outside], weights),
        tree=_tree_record(result.tree) if task.second < 0 and not task.test_share else [],
        by_group=_by_group(result.tree, dataset, outside),
        questions=_chosen_settings(result.model.parameters, method.settings(parameters)),
        **_weight_sums(result.tree, dataset, outside),
    )


def _chosen_settings(parameters: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the parameters that the data chose, as the model states them: binarisation and leaf penalty."""
    names = ["binarise", "bins", "extra_thresholds"] if settings.get("bins") == AUTO else []
    names += ["leaf_penalty"] if settings.get("leaf_penalty") == AUTO else []
    return {name: parameters[name] for name in names}


def _most_frequent(dataset: StudyDataset, rows: np.ndarray) -> int:
    return int(np.bincount(dataset.labels.codes[rows], dataset.weights(rows)).argmax())


def _assign(dataset: StudyDataset, folds: int, seed: int, test_share: float) -> tuple[np.ndarray, Folds]:
    """Return the rows that are not held out, and the folds of these rows."""
    rows, _ = holdout(dataset.labels.codes, test_share, seed, dataset.table)
    return rows, assign_folds(dataset.labels.codes[rows], folds, seed, dataset.table.take(rows))


def _by_group(tree: Tree, dataset: StudyDataset, rows: np.ndarray) -> list[list[int]]:
    """Return group, correct rows and rows, in weights, of each group among these rows; empty without groups."""
    if dataset.table.groups is None:
        return []
    groups = dataset.table.groups.codes[rows]
    right = tree.predict(dataset.table.take(rows).matrix()) == dataset.labels.codes[rows]
    weights = dataset.weights(rows)
    names = list(dict.fromkeys(groups.tolist()))  # keep the groups in the order of their first row
    sums = zip(names, group_sums(right * weights, groups), group_sums(weights, groups), strict=True)
    return [[int(group), int(correct), int(n)] for group, correct, n in sums]


def _weight_sums(tree: Tree, dataset: StudyDataset, rows: np.ndarray) -> dict[str, Any]:
    """Return the number of judged rows and the sums of their squared weights; nothing without weights."""
    if not dataset.weight:
        return {}
    weights = dataset.weights(rows).astype(np.float64)
    right = tree.predict(dataset.table.take(rows).matrix()) == dataset.labels.codes[rows]
    sums = WeightSums.of(weights * right, weights)
    return {"rows": len(rows), "squares": [sums.squares, sums.correct_squares]}


def _costs_of_rows(
    dataset: StudyDataset, rows: np.ndarray, settings: Settings, row_costs: FloatArray | None
) -> RowCosts | None:
    """Return the costs of some rows; None without costs or rows."""
    if not len(rows):
        return None
    given_costs = None if row_costs is None else row_costs[rows]
    return costs_of(dataset.table.take(rows), dataset.labels.take(rows), settings, given_costs=given_costs)


def _cost(tree: Tree, costs: RowCosts | None, table: Table) -> float | None:
    """Return the cost of the tree's answers to the rows of a table; None without costs."""
    return None if costs is None else costs.in_unit(costs.total(tree.predict(table.matrix())))


def _cost_record(result: TrainResult, costs: RowCosts | None, table: Table) -> dict[str, Any]:
    """Return the costs of the tree's answers and of the best single answer on held-out rows; empty without costs."""
    if costs is None or result.certificate.costs is None:
        return {}
    constant = result.tree.classes.index(result.certificate.costs["best_constant"]["answer"])
    answers = result.tree.predict(table.matrix())
    groups = np.arange(len(table)) if table.groups is None else table.groups.codes
    each = costs.weighted[np.arange(len(table)), answers] * float(costs.step)
    sums = CostSums.of(group_sums(each, groups), group_sums(costs.true_weights, groups))
    return {
        "cost": costs.in_unit(costs.total(answers)),
        "constant_cost": costs.in_unit(costs.constants[constant]),
        "cost_unit": costs.matrix.unit,
        "weight_step": float(costs.weight_step),
        "cost_sums": [sums.squares, sums.products, sums.n_squares, sums.count],
    }


def _goal_record(result: TrainResult, matrix: FloatArray, codes: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """Return the confusion of held-out rows if balanced accuracy, F1 or MCC was optimised; else nothing."""
    goal, positive = stated_goal(result.model.certificate, result.model.parameters)
    if not goal:
        return {}
    return {
        "goal": goal,
        "goal_name": score_name(goal, positive),
        "positive": result.tree.classes.index(positive) if positive else 0,
        "confusion": metrics_of(result.tree, matrix, codes, weights)["confusion"],
    }


def _tree_record(tree: Tree) -> list[dict[str, Any]]:
    """Return the nodes of a tree; empty if they do not fit into a record."""
    nodes = nodes_of_fold(tree)
    return nodes if len(json.dumps(nodes)) <= MAX_RECORD_BYTES // 2 else []


def _correct(tree: Tree, dataset: StudyDataset, rows: np.ndarray) -> int:
    """Return the number of these rows that the tree classifies correctly, or their weight."""
    if not len(rows):
        return 0
    right = tree.predict(dataset.table.take(rows).matrix()) == dataset.labels.codes[rows]
    return int(dataset.weights(rows)[right].sum())
