"""Request good trees (the Rashomon set) and record the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from trainer.data.problem import Problem
from trainer.dtypes import CountArray
from trainer.editing.space import SearchStopped
from trainer.families.exact.rashomon.chosen import RATES, GoodTreeFilter
from trainer.families.exact.rashomon.good import GoodTrees
from trainer.families.exact.workbench import Workbench
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Tree
from trainer.tree.shapes import LabelledShape
from trainer.workbench.ballot import ballot_record

IMPORTANCE = ("importance_least", "importance_most")
COUNTING = "counting"  # status of a record whose slow parts are still missing
MOST_STEPS = 200  # limit on the points of the curve of tolerances
MOST_COMPARED = 24  # only the first trees of the list are compared pairwise, up to this number
Filter = tuple[str, Any]  # name in a request, and its value
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class GoodRequest:
    """A request for good trees.

    Parameters
    ----------
    slack, slack_rows, slack_cost : str
        Tolerance of the objective, as a decimal: as a share, in rows, or in the unit of the costs if answers have costs.
    must, without : sequence of str
        Columns that a tree must use, or must not use.
    max_leaves : int, optional
        Largest number of leaves.
    recalls : dict of str to str
        Minimum recall by class.
    difference : str, optional
        Largest difference of the shares of answer `favoured` between the values of column `groups`: among all rows or, with
        `rate` 'opportunity', among the rows of that class.
    agree_rows : str, optional
        "all", or lines of the file (rows of a Parquet file) such as "3, 10-20", where trees must agree with a given tree.
    listed, disputed, sample : int
        Numbers of listed trees, of listed rows on which trees disagree, and of sampled trees.
    distinct : bool
        Also count trees with equivalent questions as one, which takes twenty times as long.
    ballot : int
        Keep all trees in short form if there are at most this many, to answer any row.
    """

    slack: str | None = None
    slack_rows: str | Fraction | None = None
    slack_cost: str | None = None
    must: Sequence[str] = ()
    without: Sequence[str] = ()
    max_leaves: int | None = None
    recalls: dict[str, str] = field(default_factory=dict)
    difference: str | None = None
    groups: str | None = None
    rate: str = RATES[0]
    favoured: str | None = None
    agree_rows: str | None = None
    listed: int = 10
    disputed: int = 10
    sample: int = 0
    distinct: bool = False
    ballot: int = 0


def good_request(values: Mapping[str, Any]) -> GoodRequest:
    """Build a request from a mapping; ignore unknown members."""
    members = {f.name for f in fields(GoodRequest)}
    return GoodRequest(**{name: value for name, value in values.items() if name in members})


def choice_of(request: GoodRequest, agrees: Tree | None, agree_rows: list[int] | None) -> GoodTreeFilter:
    """Return the filters of a request as arguments of `Workbench.good_trees`."""
    return {
        "must": request.must, "without": request.without, "max_leaves": request.max_leaves, "recalls": request.recalls,
        "difference": request.difference, "groups": request.groups, "rate": request.rate, "favoured": request.favoured,
        "agrees": agrees, "agree_rows": agree_rows,
    }  # fmt: skip


def filters_of_request(request: GoodRequest) -> list[Filter]:
    """Return the filters of a request as a list: columns, leaves, recalls, groups, answers."""
    filters: list[Filter] = [("without", name) for name in request.without]
    filters += [("must", name) for name in request.must]
    filters += [("max_leaves", request.max_leaves)] if request.max_leaves is not None else []
    filters += [("recalls", [name, share]) for name, share in request.recalls.items()]
    filters += [("difference", request.difference)] if request.difference is not None else []
    return filters + ([("agree_rows", request.agree_rows)] if request.agree_rows is not None else [])


def with_filters(request: GoodRequest, filters: Sequence[Filter]) -> GoodRequest:
    """Return the request with these filters only, without `agree_rows`."""
    every = dict(filters)
    return replace(
        request,
        without=[value for name, value in filters if name == "without"],
        must=[value for name, value in filters if name == "must"],
        max_leaves=every.get("max_leaves"),
        recalls=dict(value for name, value in filters if name == "recalls"),
        difference=every.get("difference"),
        groups=request.groups if "difference" in every else None,
        favoured=request.favoured if "difference" in every else None,
        agree_rows=None,
    )


class GoodRecord:
    """Builder of the record of good trees; parts that were stopped are None and named in the status.

    `problem` has the rows. If answers have costs, the bench has their copies, with the same total weight for each row.
    """

    def __init__(self, bench: Workbench, good: GoodTrees, request: GoodRequest, *, seed: int, problem: Problem) -> None:
        self.bench = bench
        self.good = good
        self.request = request
        self.seed = seed
        self.problem = problem
        self.searched = bench.problem
        self.Q = bench.space.instance.Q
        self.left: list[str] = []
        self.differ: list[list[int]] = []

    def build(self, monitor: Monitor, report: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
        """Build all parts, the counts first; `report` receives the record before the slow parts are computed."""
        good = self.good
        record: dict[str, Any] = {
            "count": self._part("count", lambda: good.count),
            "count_without_idle": self._part("count_without_idle", lambda: good.without_idle),
            "answers": None,
            "answers_complete": False,
            "optimum": self._objective(good.least),
            "limit": self._objective(good.limit),
            **self._costs(),
            "first_questions": self._part("first_questions", self._first),
            "first_columns": self._part("first_columns", self._first_columns),
            "tolerance": self._part("tolerance", self._tolerance),
            "columns": self._part("columns", self._columns),
            "rows": self._part("rows", self._rows),
            "trees": self._part("trees", self._list_trees) or [],
        }
        record |= {"differ": self.differ, "count_unit": self.problem.count_unit}
        if record["count"] and record["count"] <= self.request.ballot:
            schema = self.problem.table.schema
            record["ballot"] = self._part("ballot", lambda: ballot_record(self.bench, self.good, schema))
        if self.request.agree_rows is not None:
            record["agree_rows"] = len(self.good.filters.answers)
        if report is not None and not self.left:
            report({**record, "status": COUNTING, "seconds": monitor.elapsed()})
        if self.request.sample:
            sample = self._part("sample", lambda: good.sample(self.request.sample, seed=self.seed))
            record["sample"] = [self.tree(shape) for shape in sample or []]
        if self.request.distinct:
            record["count_distinct"] = self._part("count_distinct", lambda: good.distinct)
        if filters := filters_of_request(self.request):
            record["filters"] = self._part("filters", lambda: self._funnel(filters, monitor))
        answers = self._part("answers", good.answers)
        if answers is not None:
            record["answers"], record["answers_complete"] = answers
            if not answers[1]:
                self.left.append("answers (at least this many)")
        importance = self._importance()
        if record["columns"] is not None:
            unknown = (None, None)
            record["columns"] = {
                name: of | dict(zip(IMPORTANCE, importance.get(name, unknown), strict=True))
                for name, of in record["columns"].items()
            }
        if record["count"] is None:
            record["at_least"] = good.at_least()
        why = f" ({monitor.reason})" if monitor.reason else ""
        record["status"] = f"left{why}: {', '.join(self.left)}" if self.left else "complete"
        record["seconds"] = monitor.elapsed()
        return record

    def _part(self, name: str, compute: Callable[[], T]) -> T | None:
        try:
            return compute()
        except SearchStopped:
            self.left.append(name)
            return None

    def _first(self) -> dict[str, int]:
        """Return the number of trees by the text of the root question; questions with equal texts are added up."""
        questions = self.bench.space.questions
        counts = sorted(self.good.first_questions.items(), key=lambda item: -item[1])
        short = Counter(questions.text(q) for q, _ in counts)
        numbers: Counter[str] = Counter()
        for q, number in counts:
            text = questions.text(q)
            numbers[text if short[text] == 1 else questions.wish(q)] += number
        return dict(numbers.most_common())

    def _objective(self, cost: int) -> float:
        return float(1 - Fraction(cost, self.Q) / self.searched.n)

    def _costs(self) -> dict[str, Any]:
        """Return the optimal cost and the cost limit of good trees, both with leaf penalties, and their unit; empty without costs."""
        costs = self.problem.costs
        if costs is None:
            return {}
        ends = {"optimum_cost": self.good.least, "limit_cost": self.good.limit}
        record: dict[str, Any] = {
            name: costs.in_unit(costs.cost_of(1 - Fraction(cost, self.Q) / self.searched.n))
            for name, cost in ends.items()
        }
        return record | {"cost_unit": costs.matrix.unit, "rounding_error": costs.error}

    def _first_columns(self) -> list[dict[str, Any]]:
        """Return the number of trees by the column of the first question, and by the next column on each side; "" is a leaf."""
        names = self.problem.table.names

        def by_column(numbers: dict[int | None, int]) -> dict[str, int]:
            return {"" if c is None else names[c]: n for c, n in sorted(numbers.items(), key=lambda item: -item[1])}

        return [
            {"column": names[column], "trees": of.trees, "yes": by_column(of.yes), "no": by_column(of.no)}
            for column, of in sorted(self.good.first_columns.items(), key=lambda item: -item[1].trees)
        ]

    def _tolerance(self) -> list[list[float | int]]:
        """Return pairs of an excess cost, as a share of the least cost, and its number of trees.

        Fewer than 2 MOST_STEPS pairs are chosen evenly, and the last one is added.
        """
        numbers = self.good.numbers()
        least = self.good.least + self.bench.rows_beyond * self.Q
        steps = numbers[:: max(1, len(numbers) // MOST_STEPS)]
        steps += numbers[-1:] if numbers and steps[-1] != numbers[-1] else []
        return [[float((cost - self.good.least) / least) if least else 0.0, number] for cost, number in steps]

    def _funnel(self, filters: list[Filter], monitor: Monitor) -> list[dict[str, Any]]:
        """Return the number of trees before the first filter and after each filter, applied in turn."""
        stages: list[dict[str, Any]] = []
        for k in range(len(filters) + 1):
            if k == len(filters):
                number = self.good.count
            else:
                number = self.bench.good_trees(
                    slack=self.request.slack,
                    slack_rows=self.request.slack_rows,
                    slack_cost=self.request.slack_cost,
                    time_limit=monitor.remaining(),
                    stop=monitor.stopped,
                    **choice_of(with_filters(self.request, filters[:k]), None, None),
                ).count
            filter_, value = filters[k - 1] if k else (None, None)
            stages.append({"filter": filter_, "value": value, "count": number})
        return stages

    def _columns(self) -> dict[str, dict[str, Any]]:
        n = self.searched.n
        lo, hi = self.good.tested_weights
        return {
            name: {
                "trees": self.good.asking(j),
                "asked_least": float(Fraction(int(lo[j]), n)),
                "asked_most": float(Fraction(int(hi[j]), n)),
            }
            for j, name in enumerate(self.problem.table.names)
        }

    def _importance(self) -> dict[str, tuple[float, float]]:
        """Return for each column the least and the largest accuracy that any tree loses on average when it is shuffled.

        If answers have costs, it is the added cost per row. When the time is over, only the finished columns are
        returned.
        """
        squared = self.searched.n**2
        costs = self.problem.costs

        def lost(least_or_most: int) -> float:
            share = Fraction(least_or_most, squared)
            return float(share) if costs is None else costs.per_row(costs.price_of(share))

        names = self.problem.table.names
        losses: dict[str, tuple[float, float]] = {}
        try:
            for column, (least, most) in self.good.importances():
                losses[names[column]] = lost(least), lost(most)
        except SearchStopped:
            left = len(names) - len(losses)
            self.left.append("importance" if not losses else f"importance of {left} of {len(names)} columns")
        return losses

    def _rows(self) -> dict[str, Any]:
        """Return the number of rows on which the good trees disagree, and the exact votes on the most disputed rows."""
        problem = self.problem
        disputed_rows = self._disputed_rows()
        classes = problem.labels.classes
        return {
            "depends": sum(int(problem.row_weights[row]) for row, _ in disputed_rows),
            "of": problem.n,
            "listed": [
                {
                    "row": int(problem.table.row_numbers[row]),
                    "actual": classes[int(problem.y[row])],
                    "answers": {classes[k]: int(number) for k, number in enumerate(votes) if number},
                    "disagree": float(Fraction(self.good.count - int(votes.max()), self.good.count)),
                }
                for row, votes in disputed_rows[: self.request.disputed]
            ],
        }

    def _disputed_rows(self) -> list[tuple[int, np.ndarray]]:
        """Return the rows that good trees answer differently, each once, with the number of trees for each class."""
        disputed = self.good.disputed_rows()
        if self.problem.costs is None:
            return disputed
        rows = rows_of_copies(self.problem)
        return list({int(rows[copy]): votes for copy, votes in reversed(disputed)}.items())[::-1]

    def _list_trees(self) -> list[dict[str, Any]]:
        shapes = [shape for _, shape in self.good.first(self.request.listed)]
        trees = [self.good.predict(shape) for shape in shapes[:MOST_COMPARED]]
        weights = self.bench.space.weights
        # scale to rows of the problem, since the copies of each row have the same total weight
        self.differ = [[int(weights[a != b].sum()) * self.problem.n // self.searched.n for b in trees] for a in trees]
        return [self.tree(shape) for shape in shapes]

    def tree(self, shape: LabelledShape) -> dict[str, Any]:
        """Return objective, leaves and nodes of a tree, counted over the rows, and the cost of its answers if they have costs."""
        problem = self.problem
        tree: Tree = problem.settle(problem.tree(self.bench.space.questions.draft(shape)))
        record = {"objective": problem.objective(tree), "leaves": tree.n_leaves, "nodes": tree.to_json()}
        if problem.costs is None:
            return record
        return record | {"cost": problem.costs.in_unit(problem.costs.total(tree.predict(problem.matrix)))}


def rows_of_copies(problem: Problem) -> CountArray:
    """Return the row of each copy that is searched, int64 (copies,)."""
    assert problem.costs is not None
    rows: CountArray = np.nonzero(problem.costs.copies)[0]
    return rows
