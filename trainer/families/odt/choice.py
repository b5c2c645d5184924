"""Choices that Günlük et al. make from the data: the columns that a CART tree uses, and the topology by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trainer.certificate import Evidence
from trainer.data.folds import assign_folds, inner_folds
from trainer.data.problem import Problem
from trainer.families.odt.grouping import labels_of, make_groups
from trainer.families.odt.groups import Groups
from trainer.families.odt.plan import used_groups
from trainer.families.odt.search import LevelLimitReached, SubsetSearch
from trainer.families.odt.topology import Shape, parse
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.solver_common.problem_setup import pose
from trainer.tree.nodes import Draft, DraftLeaf

AUTO = "auto"
CANDIDATES = ("depth-2", "depth-2.5", "depth-3", "imbalanced")  # by number of questions
FOLDS = 5
SAMPLE = 600  # training rows of each repetition on larger data, as in the paper
SHARE = 0.5  # of the time limit that the choice may take


def selected(groups: Groups, seed: int) -> Groups:
    """The groups that a full CART tree on nine tenths of the rows tests, all if it tests none."""
    order = np.random.default_rng(seed).permutation(len(groups.y))
    tested = used_groups(groups, np.sort(order[: len(order) - len(order) // 10]))
    columns = {groups.columns[g] for g in tested}
    used = [g for g, column in enumerate(groups.columns) if column in columns]
    if not used or len(used) == len(groups.sizes):
        return groups

    def branch(g: int, chosen: list[int], left: Draft, right: Draft) -> Draft:
        return groups.branch(used[g], chosen, left, right)

    def question(split: Any) -> tuple[int, list[int]]:
        g, chosen = groups.question(split)
        return used.index(g), chosen

    return replace(
        groups, cat=np.ascontiguousarray(groups.cat[:, used]), sizes=groups.sizes[used], ordered=groups.ordered[used],
        columns=tuple(groups.columns[g] for g in used), branch=branch, question=question,
    )  # fmt: skip


def choose_topology(problem: Problem, settings: Settings, monitor: Monitor) -> tuple[Shape, dict[str, Any]]:
    """The topology with the best mean accuracy on rows that were not trained on, the smaller one of equals; and what was measured.

    Up to 1.2 times 600 rows: five stratified folds. More rows: five times 600 rows at random, measured on all others.
    """
    parts = _parts(problem, settings["seed"])
    accuracy = {name: [] for name in CANDIDATES}  # type: dict[str, list[float]]
    end = monitor.elapsed() + SHARE * monitor.remaining()
    left = len(CANDIDATES) * len(parts)
    for train, test in parts:
        weights = None if problem.weights is None else problem.weights[train]
        part = pose(problem.table.take(train), problem.labels.take(train), settings, weights=weights)
        groups = make_groups(part, settings["bins"], settings["max_card"])
        if settings["select"] == "cart":
            groups = selected(groups, settings["seed"])
        matrix = problem.matrix[test]
        weight = problem.row_weights[test]
        for name in CANDIDATES:
            monitor.report(phase=f"topology: {name}")
            seconds = (end - monitor.elapsed()) / left if np.isfinite(end) else np.inf
            draft = _search(groups, parse(name), monitor, monitor.elapsed() + seconds)
            right = labels_of(draft, matrix) == problem.y[test]
            accuracy[name].append(float((weight * right).sum() / max(1, weight.sum())))
            left -= 1
    means = {name: float(np.mean(values)) for name, values in accuracy.items()}
    chosen = max(CANDIDATES, key=lambda name: (round(means[name], 9), -parse(name).nodes))
    return parse(chosen), {
        "kind": Evidence.TOPOLOGY_CHOICE,
        "chosen": chosen,
        "accuracy": means,
        "repetitions": len(parts),
    }


def _parts(problem: Problem, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    n = len(problem.y)
    rng = np.random.default_rng(seed)
    if n <= 1.2 * SAMPLE or problem.table.groups is not None or problem.table.times is not None:
        made = inner_folds(problem.y, min(FOLDS, n), seed, problem.table) or assign_folds(
            problem.y, min(FOLDS, n), seed
        )
        parts = [(made.training(f), made.judged(f)) for f in range(made.count)]
        return [(np.sort(rng.permutation(train)[: int(1.2 * SAMPLE)]), test) for train, test in parts]
    orders = [rng.permutation(n) for _ in range(FOLDS)]
    return [(np.sort(order[:SAMPLE]), np.sort(order[SAMPLE:])) for order in orders]


def _search(groups: Groups, shape: Shape, monitor: Monitor, until: float) -> Draft:
    """The best tree found by a moment; a stopped run stops here, too."""
    found: list[Draft] = [DraftLeaf(label=int(np.bincount(groups.y, groups.w, groups.n_classes).argmax()))]
    if not len(groups.sizes):
        return found[0]
    search = SubsetSearch(
        groups=groups, root=shape, stopped=lambda: monitor.stopped() or monitor.elapsed() > until,
        on_incumbent=lambda _, draft: found.append(draft),
    )  # fmt: skip
    try:
        draft = search.solve(shape, np.arange(len(groups.y)))[1]
        return found[-1] if draft is None else draft
    except LevelLimitReached:
        return found[-1]
