"""Choose the column statistics with which explanations measure changes."""

from __future__ import annotations

from octweb.registry.document.model_files import DocumentCache, model_file
from octweb.registry.document.rows import rows_of as stored_rows
from octweb.registry.models import TreeModel
from trainer.data.column_statistics import ColumnStatistics, is_described
from trainer.explain.statistics import OF_FILE, coarse, statistics_of_model

FROM_ROWS = "training rows"
FROM_TREE = "thresholds of the tree: the training rows are not stored"
COARSE = "training rows, units rounded to 1, 2 or 5 times a power of ten"
_statistics: DocumentCache[tuple[ColumnStatistics, ...]] = DocumentCache()


def statistics_of(model: TreeModel, *, inside: bool) -> tuple[tuple[ColumnStatistics, ...], str]:
    """Return the statistics of the columns, and the source of their units in words.

    Steps and units come from the model file, so all users see the same smallest change. For older files, they come from
    the stored training rows. They are then rounded unless the user may see the rows (`inside`).
    """
    tree = model_file(model).tree
    statistics = _statistics_of_rows(model)
    if statistics is None:
        return statistics_of_model(tree), OF_FILE if is_described(tree) else FROM_TREE
    if not inside:
        return coarse(statistics), COARSE
    return statistics, COARSE if is_described(tree) else FROM_ROWS


def _statistics_of_rows(model: TreeModel) -> tuple[ColumnStatistics, ...] | None:
    """Return the statistics of the stored training rows, or None without these rows."""
    key = f"{model.sha256}:{model.dataset.sha256 if model.dataset else ''}"
    statistics = _statistics.get(key)
    if statistics is not None:
        return statistics
    rows = stored_rows(model)
    if rows is None or not rows.same:
        return None
    statistics = statistics_of_model(model_file(model).tree, rows.matrix[rows.training])
    _statistics.put(key, statistics, 100 * len(statistics))
    return statistics
