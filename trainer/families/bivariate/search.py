"""Find the proved best split of a node on two features.

Bollwein & Westphal, Algorithm 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.dtypes import CountArray
from trainer.families.bivariate.kernels import brief
from trainer.families.bivariate.node import NodeSearch
from trainer.families.bivariate.pair import SearchOptions
from trainer.families.bivariate.scale import node_points
from trainer.families.bivariate.store import widest_split
from trainer.growing.node_split import NodeSplit, SplitData, class_counts, univariate_split
from trainer.worker_pool import WorkerPool

MIN_SHARED_WORK = 20_000  # below this number of rows × pairs, threads cost more than they save


def best_split(
    data: SplitData,
    rows: CountArray,
    options: SearchOptions,
    *,
    crew: WorkerPool[Any] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    seed: int = 0,
    known: NodeSplit | None = None,
) -> NodeSplit | None:
    """Return the best split of the rows on at most two features; None if there is none (equal rows, or too few for two leaves).

    Returns the univariate split, or a better `known` one, unless a line is strictly better. Idle threads of the worker pool help. If
    the search is stopped, the function returns the incumbent with its proved bound.
    """
    start = univariate_split(data, rows, options)
    total = class_counts(data, rows)
    if known is not None and start is not None and known.value < start.value - 1e-12 * int(total.sum()):
        start = known
    if start is not None and start.value <= 0.0:
        return start
    sums = data.sums
    points = node_points(sums.whole, sums.codes, sums.levels, rows, empty=sums.empty)
    if len(points.features) < 2 or 2 * options.min_leaf > total.sum():
        return start
    pairs = len(points.features) * (len(points.features) - 1) // 2
    # with early stopping, the result depends on when threads find incumbents, so a single thread searches
    shared = crew is not None and crew.threads > 1 and options.gap == 0 and len(rows) * pairs > MIN_SHARED_WORK
    search = NodeSearch(
        data=sums,
        rows=rows,
        options=options,
        points=points,
        total=total,
        stopped=stopped,
        seed=seed,
        threads=crew.threads if crew is not None and shared else 1,
        value=math.inf if start is None else start.value,
    )
    if crew is not None and shared:
        with crew.share_work(search.help):
            search.begin()
            search.work()
    else:
        search.begin()
        search.work()
    return _make_split(search, start)


def _make_split(search: NodeSearch, start: NodeSplit | None) -> NodeSplit | None:
    """Return the best line in the columns' units, or the univariate split if no line is better."""
    results = search.results()
    best = float(results[:, brief.RESULT].min(initial=math.inf))
    value = best if start is None else min(best, start.value)
    counts: dict[str, Any] = {
        "boxes": int(results[:, brief.BOXES_OF].sum()),
        "classified": int(results[:, brief.CLASSIFIED_OF].sum()),
        "swept": int(results[:, brief.SWEPT].sum()),
    }
    bound = value if search.is_complete() else min(value, search.bound())
    if start is not None and value >= start.value - search.tol:
        return replace(start, bound=min(bound, start.value), **counts)
    if math.isinf(value):
        return None
    rank = int(
        np.flatnonzero((search.pair_status > 0) & (search.result_rows[:, brief.RESULT] <= value + search.tol))[0]
    )
    rule = search.rule(rank, value)
    if rule is None:
        raise AssertionError("a pair with a finite value has a rule")
    i, j, side = search.pairs[rank].tolist()
    split = widest_split(
        search.data,
        search.rows,
        search.points,
        (i, j),
        search.distinct_points(rank),
        rule,
        search.options.measure,
        side=side,
    )
    if split is None:
        # in the precision of the uploaded numbers, no line separates the sides, so return the univariate split
        return None if start is None else replace(start, bound=min(bound, start.value), **counts)
    return replace(split, bound=min(bound, split.value), **counts)
