"""What is known about a model's columns when an answer is explained: units from the training rows, and what may change."""

from __future__ import annotations

from octweb.registry.data import rows_of as stored_rows
from octweb.registry.models import TreeModel
from octweb.registry.parsed import ParsedModels, model_file
from trainer.explain.statistics import ColumnStatistics, coarse, statistics, statistics_of_tree

FROM_ROWS = "training rows"
FROM_TREE = "thresholds of the tree: the training rows are not stored"
COARSE = "training rows, units rounded to 1, 2 or 5 times a power of ten"
_statistics: ParsedModels[tuple[ColumnStatistics, ...]] = ParsedModels()


def statistics_of(model: TreeModel, *, inside: bool) -> tuple[tuple[ColumnStatistics, ...], str]:
    """The statistics of the columns on the training rows, where they are stored, and what they are from.

    Who may not see the rows, not `inside`, gets rounded units: from exact ones the rows' deviations could be worked out.
    """
    known, source = _exact_statistics(model)
    return (known, source) if inside or source != FROM_ROWS else (coarse(known), COARSE)


def _exact_statistics(model: TreeModel) -> tuple[tuple[ColumnStatistics, ...], str]:
    key = f"{model.sha256}:{model.dataset.sha256 if model.dataset else ''}"
    found = _statistics.get(key)
    if found is not None:
        return found, FROM_ROWS
    tree = model_file(model).tree
    rows = stored_rows(model)
    if rows is None or not rows.same:
        return statistics_of_tree(tree), FROM_TREE
    found = statistics(tree.schema, rows.matrix[rows.training])
    _statistics.put(key, found, 100 * len(found))
    return found, FROM_ROWS
