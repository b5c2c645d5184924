"""Find the models that trained on stored rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.datasets.models import Dataset
from octweb.registry.document.rows import rows_of
from octweb.registry.models import TreeModel

MAX_MODELS_READ = 20  # models whose rows are read in one call; for others, the use of the rows is unknown


@dataclass(frozen=True, kw_only=True)
class RowUse:
    """Numbers of the given rows that trained a model and that it held out. None if its rows cannot be read."""

    model: TreeModel
    training: int | None
    held_out: int | None

    @property
    def is_known(self) -> bool:
        return self.training is not None

    @property
    def is_trained(self) -> bool:
        """Whether a row trained the model, or may have."""
        return self.training is None or self.training > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.model.pk,
            "name": self.model.family.name,
            "version": self.model.version,
            "state": self.model.state,
            "training": self.training,
            "held_out": self.held_out,
        }


def uses_of(rows: Mapping[Dataset, Collection[int]]) -> list[RowUse]:
    """Return how undeleted models used rows of their data sets, those that trained on them first.

    `rows` are row numbers from 1 for each data set.
    """
    uses: list[RowUse] = []
    for dataset, numbers in rows.items():
        models = dataset.models.kept().select_related("family", "dataset")
        uses += [_use(model, numbers, read=len(uses) + k < MAX_MODELS_READ) for k, model in enumerate(models)]
    return sorted(uses, key=lambda use: (not use.is_trained, str(use.model)))


def _use(model: TreeModel, numbers: Collection[int], *, read: bool) -> RowUse:
    rows = rows_of(model) if read else None
    if rows is None:
        return RowUse(model=model, training=None, held_out=None)
    wanted = np.array(list(numbers))
    training, held_out = (int(np.isin(rows.numbers[part], wanted).sum()) for part in (rows.training, rows.unseen))
    return RowUse(model=model, training=training, held_out=held_out)


def trained_models(uses: Iterable[RowUse]) -> list[RowUse]:
    """Return the uses in which a row trained the model, or may have."""
    return [use for use in uses if use.is_trained]
