"""Describe how the unseen rows of a model differ from its training rows."""

from __future__ import annotations

from trainer.training.metrics import unseen_accuracy
from trainer.tree.file import ModelFile
from trainer.tree.numbers import count_words


def unseen_words(file: ModelFile) -> str:
    """Describe the groups and times that the accuracy on unseen rows is about; "" for rows drawn at random.

    Parameters
    ----------
    file : ModelFile
        A model file with its metrics and rows.
    """
    rows = file.rows or {}
    unseen = unseen_accuracy(file.metrics)
    if unseen is None or not ("group" in rows or "time" in rows):
        return ""
    crossed = (file.metrics.get("cross_validation") or {}).get("accuracy") is not None
    tree = "its tree" if crossed else "the tree"
    parts = []
    if "group" in rows:
        count = count_words(unseen["groups"], "value")
        parts.append(f"on {count} of '{rows['group']['column']}' that {tree} has not seen")
    if "time" in rows:
        parts.append(f"on rows that are later by '{rows['time']['column']}' than those that {tree} learned from")
    return f"Accuracy {' and '.join(parts)}."
