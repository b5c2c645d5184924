"""Select columns and topology from the training rows (Günlük et al.).

A CART tree selects columns, cross-validation the topology.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trainer.certificate import Evidence
from trainer.data.folds import assign_folds, inner_folds
from trainer.data.problem import Problem
from trainer.families.odt.grouping import make_groups, predict_labels
from trainer.families.odt.groups import Groups
from trainer.families.odt.levels import LevelLimitReached
from trainer.families.odt.plan import find_tested_groups
from trainer.families.odt.search import SubsetSearch
from trainer.families.odt.topology import Shape, parse
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.solver_common.problem_setup import pose
from trainer.tree.nodes import Draft, DraftLeaf

AUTO = "auto"
CANDIDATES = ("depth-2", "depth-2.5", "depth-3", "imbalanced")  # ascending by number of questions
FOLDS = 5
SAMPLE_ROWS = 600  # on larger data, each repetition trains on this many rows, as in the paper
TIME_SHARE = 0.5  # share of the time limit that the selection may use


def select_columns(groups: Groups, seed: int) -> Groups:
    """Keep the groups that a full CART tree on nine tenths of the rows tests; keep all if it tests none."""
    order = np.random.default_rng(seed).permutation(len(groups.y))
    tested = find_tested_groups(groups, np.sort(order[: len(order) - len(order) // 10]))
    columns = {groups.columns[g] for g in tested}
    indices = [g for g, column in enumerate(groups.columns) if column in columns]
    if not indices or len(indices) == len(groups.sizes):
        return groups

    def branch(g: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        return groups.branch(indices[g], chosen, left, right)

    def question(split: Any) -> tuple[int, list[int]]:
        g, chosen = groups.question(split)
        return indices.index(g), chosen

    return replace(
        groups,
        cat=np.ascontiguousarray(groups.cat[:, indices]),
        sizes=groups.sizes[indices],
        ordered=groups.ordered[indices],
        columns=tuple(groups.columns[g] for g in indices),
        branch=branch,
        question=question,
    )


def choose_topology(problem: Problem, settings: Settings, monitor: Monitor) -> tuple[Shape, dict[str, Any]]:
    """Return the topology with the best mean accuracy on held-out rows, and the evidence. Ties are broken by fewer nodes.

    With at most 720 rows, or with groups or times, the repetitions are five folds, with at most 720 training rows each. Otherwise they are
    five random training sets of 600 rows, evaluated on all other rows (Günlük et al.).
    """
    parts = _train_test_pairs(problem, settings["seed"])
    accuracy = {name: [] for name in CANDIDATES}  # type: dict[str, list[float]]
    end = monitor.elapsed() + TIME_SHARE * monitor.remaining()
    fits_left = len(CANDIDATES) * len(parts)
    for train, test in parts:
        weights = None if problem.weights is None else problem.weights[train]
        part = pose(problem.table.take(train), problem.labels.take(train), settings, weights=weights)
        groups = make_groups(part, settings["bins"], settings["max_card"])
        if settings["select"] == "cart":
            groups = select_columns(groups, settings["seed"])
        matrix = problem.matrix[test]
        weight = problem.row_weights[test]
        for name in CANDIDATES:
            monitor.report(phase=f"topology: {name}")
            seconds = (end - monitor.elapsed()) / fits_left if np.isfinite(end) else np.inf
            draft = _search(groups, parse(name), monitor, monitor.elapsed() + seconds)
            right = predict_labels(draft, matrix) == problem.y[test]
            accuracy[name].append(float((weight * right).sum() / max(1, weight.sum())))
            fits_left -= 1
    means = {name: float(np.mean(values)) for name, values in accuracy.items()}
    best = max(CANDIDATES, key=lambda name: (round(means[name], 9), -parse(name).nodes))
    return parse(best), {
        "kind": Evidence.TOPOLOGY_CHOICE,
        "chosen": best,
        "accuracy": means,
        "repetitions": len(parts),
    }


def _train_test_pairs(problem: Problem, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    n = len(problem.y)
    rng = np.random.default_rng(seed)
    if n <= 1.2 * SAMPLE_ROWS or problem.table.groups is not None or problem.table.times is not None:
        folds = inner_folds(problem.y, min(FOLDS, n), seed, problem.table) or assign_folds(
            problem.y, min(FOLDS, n), seed
        )
        parts = [(folds.training(f), folds.validation(f)) for f in range(folds.count)]
        return [(np.sort(rng.permutation(train)[: int(1.2 * SAMPLE_ROWS)]), test) for train, test in parts]
    orders = [rng.permutation(n) for _ in range(FOLDS)]
    return [(np.sort(order[:SAMPLE_ROWS]), np.sort(order[SAMPLE_ROWS:])) for order in orders]


def _search(groups: Groups, shape: Shape, monitor: Monitor, until: float) -> Draft:
    """Return the best tree, or the incumbent once the time `until` is over or the run is stopped."""
    trees: list[Draft] = [DraftLeaf(label=int(np.bincount(groups.y, groups.w, groups.n_classes).argmax()))]
    if not len(groups.sizes):
        return trees[0]
    search = SubsetSearch(
        groups=groups,
        root=shape,
        stopped=lambda: monitor.stopped() or monitor.elapsed() > until,
        on_incumbent=lambda _, draft: trees.append(draft),
    )
    try:
        draft = search.solve(shape, np.arange(len(groups.y)))[1]
        return trees[-1] if draft is None else draft
    except LevelLimitReached:
        return trees[-1]
