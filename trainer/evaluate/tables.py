"""Summarise the records of a study as tables, comparisons, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from trainer.evaluate.intervals import (
    CostSums,
    Interval,
    WeightSums,
    of_cost_sums,
    of_folds,
    of_groups,
    of_weights,
    widest,
)
from trainer.evaluate.statistics import VariantComparison, compare
from trainer.evaluate.study import FoldRecord, Study
from trainer.goal import goal_score
from trainer.tree.numbers import points_text

COST_MEMBERS = ("cost", "cost_per_row", "constant_cost", "cost_unit", "cost_interval")
COST_MEASURE = "cost_per_row"  # this measure is compared as well if all cells of a group have costs
MEASURES = {  # field of a cell: (title, whether more is better)
    "accuracy": ("accuracy", True),
    "leaves": ("leaves", False),
    "seconds": ("induction time", False),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A variant on a data set: means over the folds, with the standard deviation (over folds - 1) of the accuracy.

    `correct` of `n` rows, or of their weight, are right on unseen rows, with the 95 % `interval` of `of_folds`. `base_rate` is the share that is right
    if every row gets the class that is most frequent among the training rows of its fold; None for records without it.
    `seconds` has the mean induction time by number of threads. `limited` folds ended at a limit, `failed` ones have no tree;
    `cost` is that of the answers to the unseen rows, where they have costs, and `constant_cost` that of the best single answer of each training.
    `cost_interval` is the 95 % interval of the cost per row.
    `score` is the balanced accuracy, F1 or MCC of all unseen rows together, where the training optimised it; `goal` is its name.
    `proved` is the share of splits, or of trees, that are proved (None for a heuristic).
    """

    dataset: str
    variant: str
    group: str
    folds: int
    accuracy: float
    deviation: float
    accuracies: tuple[float, ...]
    correct: int
    n: int
    interval: tuple[float, float] | None
    base_rate: float | None
    train_accuracy: float
    leaves: float
    leaves_deviation: float
    seconds: dict[int, float]
    limited: int
    failed: int
    proved: float | None
    error: str = ""
    cost: float | None = None
    cost_per_row: float | None = None
    constant_cost: float | None = None
    cost_unit: str = ""
    weight_step: float = 1.0  # one unit of `n` in a cost per row
    cost_interval: tuple[float, float] | None = None
    goal: str = ""
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class StudyReport:
    """The cells of a study and, for each group of variants, the comparisons by measure over the data sets without a failure."""

    cells: tuple[Cell, ...]
    comparisons: dict[str, dict[str, VariantComparison]]
    folds: int
    seed: int

    def cell(self, dataset: str, variant: str) -> Cell:
        """Return the cell of a data set and a variant.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        variant : str
            Label of the variant.

        Returns
        -------
        Cell

        Raises
        ------
        KeyError
            If the report has no such cell.
        """
        for cell in self.cells:
            if (cell.dataset, cell.variant) == (dataset, variant):
                return cell
        raise KeyError((dataset, variant))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the data sets in the order of the cells."""
        return tuple(dict.fromkeys(cell.dataset for cell in self.cells))

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The variants of each group."""
        groups: dict[str, dict[str, None]] = {}
        for cell in self.cells:
            groups.setdefault(cell.group, {})[cell.variant] = None
        return {group: tuple(variants) for group, variants in groups.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the report as a dictionary; with a single data set and variant, its numbers are also at the top."""
        document: dict[str, Any] = {
            "folds": self.folds,
            "seed": self.seed,
            "results": [asdict(cell) for cell in self.cells],
            "comparisons": {g: {m: asdict(c) for m, c in by.items()} for g, by in self.comparisons.items()},
        }
        if len(self.cells) == 1:
            only = asdict(self.cells[0])
            document |= {
                name: only[name]
                for name in ("accuracy", "deviation", "accuracies", "interval", "base_rate", "leaves", "seconds")
            }
            if only["cost"] is not None:
                document |= {name: only[name] for name in COST_MEMBERS}
            if only["score"] is not None:
                document |= {name: only[name] for name in ("goal", "score")}
        return document

    def to_csv(self) -> str:
        """Return the report as CSV: a header and one line per cell."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        threads = sorted({t for cell in self.cells for t in cell.seconds})
        writer.writerow(
            [
                "dataset",
                "group",
                "variant",
                "folds",
                "accuracy",
                "deviation",
                "interval_low",
                "interval_high",
                "base_rate",
                "train_accuracy",
                "leaves",
                "leaves_deviation",
                *(f"seconds_{t}_threads" for t in threads),
                "folds_limited",
                "folds_failed",
                "proved",
                "cost",
                "constant_cost",
                "cost_unit",
                "cost_interval_low",
                "cost_interval_high",
                "goal",
                "score",
            ]
        )
        for c in self.cells:
            writer.writerow(
                [
                    c.dataset,
                    c.group,
                    c.variant,
                    c.folds,
                    c.accuracy,
                    c.deviation,
                    *(c.interval or ("", "")),
                    "" if c.base_rate is None else c.base_rate,
                    c.train_accuracy,
                    c.leaves,
                    c.leaves_deviation,
                    *(c.seconds.get(t, "") for t in threads),
                    c.limited,
                    c.failed,
                    c.proved,
                    "" if c.cost is None else c.cost,
                    "" if c.constant_cost is None else c.constant_cost,
                    c.cost_unit,
                    *(c.cost_interval or ("", "")),
                    c.goal,
                    "" if c.score is None else c.score,
                ]
            )
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return a Markdown table for each group and measure, with its ranks and tests below."""
        parts = []
        for group, variants in self.groups.items():
            for measure in MEASURES:
                parts.append(self._table(group, variants, measure))
            parts += self._cost_table(group, variants) + self._score_table(group, variants)
        return "\n\n".join(parts) + "\n"

    def _table(self, group: str, variants: Sequence[str], measure: str) -> str:
        title, _ = MEASURES[measure]
        threads = (
            sorted({t for c in self.cells if c.group == group for t in c.seconds}) if measure == "seconds" else [0]
        )
        columns = [(v, t) for v in variants for t in threads]
        base = " base rate |" if measure == "accuracy" else ""
        lines = [f"### {title.capitalize()}{f', {group}' if group else ''}", ""]
        lines.append(f"| data set |{base} " + " | ".join(_heading(v, t) for v, t in columns) + " |")
        lines.append("|---|" + "---:|" * (len(columns) + bool(base)))
        for dataset in self.datasets:
            texts = [self.text(dataset, variant, measure, t) for variant, t in columns]
            if base:
                texts.insert(0, self._base_rate_text(dataset, variants))
            lines.append(f"| {dataset} | " + " | ".join(texts) + " |")
        comparison = self.comparisons.get(group, {}).get(measure)
        if comparison is not None:
            ranks = dict(zip(comparison.labels, comparison.ranks, strict=True))
            base_cell = " |" if base else ""
            texts = [f"*{ranks[v]:.2f}*" if t in (0, 1) else "" for v, t in columns]
            lines.append(f"| *average rank* |{base_cell} " + " | ".join(texts) + " |")
            lines += ["", sentence(comparison)]
        return "\n".join(lines)

    def _cost_table(self, group: str, variants: Sequence[str]) -> list[str]:
        """Return a table of costs per unseen row beside the best single answer; none without costs."""
        group_cells = [cell for cell in self.cells if cell.group == group and cell.variant in variants]
        if all(cell.cost is None for cell in group_cells):
            return []
        unit = next((f" in {cell.cost_unit}" for cell in group_cells if cell.cost_unit), "")
        lines = [f"### Cost per unseen row{unit}{f', {group}' if group else ''}", ""]
        lines.append("| data set | best single answer | " + " | ".join(variants) + " |")
        lines.append("|---|" + "---:|" * (len(variants) + 1))
        for dataset in self.datasets:
            cells = [self.cell(dataset, variant) for variant in variants]
            constants = [c.constant_cost / (c.n * c.weight_step) for c in cells if c.constant_cost is not None]
            texts = [f"{constants[0]:.4g}" if constants else ""]
            texts += [_cost_text(c) for c in cells]
            lines.append(f"| {dataset} | " + " | ".join(texts) + " |")
        comparison = self.comparisons.get(group, {}).get(COST_MEASURE)
        if comparison is not None:
            ranks = dict(zip(comparison.labels, comparison.ranks, strict=True))
            lines.append("| *average rank* | | " + " | ".join(f"*{ranks[v]:.2f}*" for v in variants) + " |")
            lines += ["", sentence(comparison)]
        return ["\n".join(lines)]

    def _score_table(self, group: str, variants: Sequence[str]) -> list[str]:
        """Return a table of balanced accuracy, F1 or MCC on unseen rows; none where no training optimised one."""
        group_cells = [cell for cell in self.cells if cell.group == group and cell.variant in variants]
        if all(cell.score is None for cell in group_cells):
            return []
        lines = [f"### Optimised score on unseen rows{f', {group}' if group else ''}", ""]
        lines += ["| data set | " + " | ".join(variants) + " |", "|---|" + "---:|" * len(variants)]
        for dataset in self.datasets:
            cells = [self.cell(dataset, variant) for variant in variants]
            texts = ["" if c.score is None else f"{c.goal}: {c.score:.3f}" for c in cells]
            lines.append(f"| {dataset} | " + " | ".join(texts) + " |")
        return ["\n".join(lines)]

    def _base_rate_text(self, dataset: str, variants: Sequence[str]) -> str:
        rates = (self.cell(dataset, variant).base_rate for variant in variants)
        return next((f"{100 * rate:.1f}" for rate in rates if rate is not None), "")

    def text(self, dataset: str, variant: str, measure: str, threads: int | None = None) -> str:
        """Return the text of a table's cell, such as "93.2 ± 1.1"; "failed" if every fold failed.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        variant : str
            Label of the variant.
        measure : str
            "accuracy" (in percent), "leaves" or "seconds".
        threads : int, optional
            Number of threads of a time, by default the fewest.

        Returns
        -------
        str
            A star at its end means that a fold ended at a limit.

        Raises
        ------
        KeyError
            If the report has no such cell.
        """
        cell = self.cell(dataset, variant)
        if cell.failed == cell.folds:
            return "failed"
        star = "*" * min(1, cell.limited)
        if measure == "accuracy":
            span = (
                ""
                if cell.interval is None
                else f" ({points_text(cell.interval[0])} to {points_text(cell.interval[1])})"
            )
            return f"{100 * cell.accuracy:.1f} ± {100 * cell.deviation:.1f}{span}{star}"
        if measure == "leaves":
            return f"{cell.leaves:.1f}{star}"
        threads = min(cell.seconds) if threads is None else threads
        return f"{cell.seconds[threads]:.3g} s{star}" if threads in cell.seconds else ""


def report(study: Study, records: Sequence[FoldRecord]) -> StudyReport:
    """Summarise all records of a study.

    Parameters
    ----------
    study : Study
        Data sets and variants.
    records : sequence of FoldRecord
        As `run_study` returns them.

    Returns
    -------
    StudyReport
        Variants of a group are compared on the data sets where none of them failed.
    """
    cells = tuple(
        _cell(
            dataset.name,
            variant.label,
            variant.group,
            study.folds,
            [r for r in records if (r.dataset, r.variant, r.second) == (dataset.name, variant.label, -1)],
        )
        for dataset in study.datasets
        for variant in study.variants
    )
    bare = StudyReport(cells=cells, comparisons={}, folds=study.folds, seed=study.seed)
    comparisons = {}
    for group, variants in bare.groups.items():
        complete = [d for d in bare.datasets if all(bare.cell(d, v).failed == 0 for v in variants)]
        if len(variants) > 1 and complete:
            comparisons[group] = {m: _compare(bare, complete, variants, m) for m in MEASURES}
            if all(bare.cell(d, v).cost_per_row is not None for d in complete for v in variants):
                comparisons[group][COST_MEASURE] = _compare(bare, complete, variants, COST_MEASURE)
    return StudyReport(cells=cells, comparisons=comparisons, folds=study.folds, seed=study.seed)


def sentence(comparison: VariantComparison) -> str:
    """Return the results of Friedman's and Holm's tests in words."""
    if comparison.p is None or comparison.chi_square is None:
        return "Friedman's test needs three variants and two data sets."
    words = f"{comparison.datasets} data sets; Friedman χ² = {comparison.chi_square:.2f}, p = {comparison.p:.2g}."
    control = comparison.labels[0]
    tests = [
        f"{label} p = {p:.2g}" for label, p in zip(comparison.labels, comparison.holm, strict=True) if p is not None
    ]
    if tests:
        return f"{words} Holm against {control}: {', '.join(tests)}."
    return f"{words} The differences are not significant at 5 %."


def _cell(dataset: str, variant: str, group: str, folds: int, records: Sequence[FoldRecord]) -> Cell:
    first = min((r.threads for r in records), default=1)
    fold_records = sorted((r for r in records if r.threads == first), key=lambda r: r.fold)
    good = [r for r in fold_records if not r.error]
    accuracies = np.array([r.accuracy for r in good])
    leaves = np.array([float(r.leaves) for r in good])
    correct = sum(r.correct for r in good)
    n = sum(r.n for r in good)
    base = [r.base_correct for r in good if r.base_correct is not None]
    seconds: dict[int, float] = {}
    for t in sorted({r.threads for r in records}):
        timed = [r.seconds for r in records if r.threads == t and not r.error]
        if timed:
            seconds[t] = float(np.mean(timed))
    return Cell(
        dataset=dataset,
        variant=variant,
        group=group,
        folds=folds,
        accuracy=_mean(accuracies),
        deviation=_deviation(accuracies),
        accuracies=tuple(float(a) for a in accuracies),
        correct=correct,
        n=n,
        interval=interval_of(good),
        base_rate=sum(base) / n if good and len(base) == len(good) else None,
        train_accuracy=_mean(np.array([r.train_accuracy for r in good])),
        leaves=_mean(leaves),
        leaves_deviation=_deviation(leaves),
        seconds=seconds,
        limited=sum(r.status in {"time_limit", "memory_limit"} for r in good),
        failed=folds - len(good),
        proved=_count_proved(good),
        error=next((r.error for r in fold_records if r.error), ""),
        **_costs(good, n),
        **_score(good),
    )


def interval_of(records: Sequence[FoldRecord]) -> Interval | None:
    """Return the 95 % interval of the accuracy over the folds; None if it is not defined.

    It is over groups, weights or folds in time; the widest if several apply, and over rows if none does.
    """
    folds = len(records)
    intervals = []
    if any(r.by_group for r in records):
        sums: dict[int, list[int]] = {}
        for group, correct, n in (line for r in records for line in r.by_group):
            group_sums = sums.setdefault(group, [0, 0])
            group_sums[0] += correct
            group_sums[1] += n
        counts = np.array(list(sums.values()), np.float64)
        intervals.append(of_groups(counts[:, 0], counts[:, 1], folds))
    elif records and all(r.squares for r in records):
        sums_of = [
            WeightSums(n=r.n, correct=r.correct, squares=r.squares[0], correct_squares=r.squares[1]) for r in records
        ]
        intervals.append(of_weights(reduce(add, sums_of), folds))
    if any(r.time for r in records):
        counts = np.array([(r.correct, r.n) for r in records], np.float64)
        intervals.append(of_groups(counts[:, 0], counts[:, 1], folds))
    if intervals:
        return widest(intervals)
    return of_folds(sum(r.correct for r in records), sum(r.n for r in records), folds)


def cost_interval_of(records: Sequence[FoldRecord]) -> Interval | None:
    """Return the 95 % interval of the cost per row over the folds; None without costs, or if it is not defined.

    It is over groups if rows have groups, else over rows; the wider one of this and folds that follow time.
    """
    if not records or any(r.cost is None or not r.cost_sums for r in records):
        return None
    folds = len(records)
    costs = np.array([r.cost for r in records], np.float64)
    n = np.array([r.n * r.weight_step for r in records], np.float64)
    sums = [
        CostSums(cost=cost, n=weight, squares=s[0], products=s[1], n_squares=s[2], count=int(s[3]))
        for cost, weight, s in zip(costs.tolist(), n.tolist(), (r.cost_sums for r in records), strict=True)
    ]
    intervals = [of_cost_sums(reduce(add, sums), folds)]
    if any(r.time for r in records):
        intervals.append(of_cost_sums(CostSums.of(costs, n), folds))
    return widest(intervals)


def _costs(records: Sequence[FoldRecord], n: int) -> dict[str, Any]:
    """Return the costs of all folds; empty if a fold has none."""
    costs = [r.cost for r in records if r.cost is not None]
    constants = [r.constant_cost for r in records if r.constant_cost is not None]
    if not records or len(costs) < len(records) or len(constants) < len(records):
        return {}
    return {
        "cost": sum(costs),
        "cost_per_row": sum(costs) / (n * records[0].weight_step),
        "constant_cost": sum(constants),
        "cost_unit": records[0].cost_unit,
        "weight_step": records[0].weight_step,
        "cost_interval": cost_interval_of(records),
    }


def _score(records: Sequence[FoldRecord]) -> dict[str, Any]:
    """Return the optimised score of all unseen rows together; empty if a fold has none, or another positive class."""
    goals = {(r.goal, r.positive) for r in records}
    if len(goals) != 1 or not records[0].goal:
        return {}
    confusion = np.sum([r.confusion for r in records], axis=0).tolist()
    return {"goal": records[0].goal_name, "score": goal_score(confusion, records[0].goal, records[0].positive)}


def _count_proved(records: Sequence[FoldRecord]) -> float | None:
    if not records:
        return None
    if all(r.splits is not None or r.subtrees is not None for r in records):
        total = sum(r.splits or r.subtrees or 0 for r in records)
        return sum(r.splits_proved or r.subtrees_proved or 0 for r in records) / total if total else 1.0
    if all(r.gap is not None for r in records):
        return sum(r.status == "optimal" for r in records) / len(records)
    return None


def _compare(report: StudyReport, datasets: Sequence[str], variants: Sequence[str], measure: str) -> VariantComparison:
    def value(dataset: str, variant: str) -> float:
        cell = report.cell(dataset, variant)
        return cell.seconds[min(cell.seconds)] if measure == "seconds" else float(getattr(cell, measure))

    values = np.array([[value(d, v) for v in variants] for d in datasets])
    return compare(variants, values, higher_is_better=measure in MEASURES and MEASURES[measure][1])


def _cost_text(cell: Cell) -> str:
    """Return the cost per unseen row with its interval; "" without costs."""
    if cell.cost_per_row is None:
        return ""
    interval = cell.cost_interval
    return f"{cell.cost_per_row:.4g}" + ("" if interval is None else f" ({interval[0]:.4g} to {interval[1]:.4g})")


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _heading(variant: str, threads: int) -> str:
    if not threads:
        return variant
    return f"{variant}, 1 thread" if threads == 1 else f"{variant}, {threads} threads"
