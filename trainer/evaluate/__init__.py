"""Evaluate methods on the same folds of many data sets."""

from trainer.evaluate.choice import NestedEstimate, OneStandardErrorChoice, Score, choose, honest
from trainer.evaluate.statistics import VariantComparison, average_ranks, compare
from trainer.evaluate.study import FoldRecord, Study, StudyDataset, Variant, run_study
from trainer.evaluate.tables import Cell, StudyReport, report

__all__ = [
    "Cell",
    "FoldRecord",
    "NestedEstimate",
    "OneStandardErrorChoice",
    "Score",
    "Study",
    "StudyDataset",
    "StudyReport",
    "Variant",
    "VariantComparison",
    "average_ranks",
    "choose",
    "compare",
    "honest",
    "report",
    "run_study",
]  # fmt: skip
