"""Evaluation of methods on the same folds of many data sets: records, statistics and tables."""

from trainer.evaluate.choice import Choice, Honest, Score, choose, honest
from trainer.evaluate.statistics import Comparison, average_ranks, compare
from trainer.evaluate.study import Dataset, Record, Study, Variant, run_study
from trainer.evaluate.tables import Cell, Report, report

__all__ = [
    "Cell", "Choice", "Comparison", "Dataset", "Honest", "Record", "Report", "Score", "Study", "Variant", "average_ranks", "choose",
    "compare", "honest", "report", "run_study",
]  # fmt: skip
