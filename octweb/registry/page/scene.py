"""Hold the model, user, tree and rows of a model page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from octweb.core.ownership import may_change
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import DatasetRows, rows_of
from octweb.registry.models import TreeModel
from trainer.dtypes import CodeArray
from trainer.errors import TrainerError
from trainer.evaluate.intervals import Interval, of_rows
from trainer.registry import editable_ids
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Node, Tree

TRAINING = "training"
UNSEEN = "unseen"


@dataclass(frozen=True, kw_only=True)
class ModelScene:
    """A model as one user sees it. All parts of the model page work on it.

    `inside` says whether the user may see the rows. `query` has the parameters of the URL. `typed` has the values of a
    submitted row by field name, which never come from a URL.
    """

    model: TreeModel
    user: Any
    inside: bool
    query: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, str] | None = None

    @cached_property
    def can_change(self) -> bool:
        """Whether the user may change the model."""
        return self.user is not None and may_change(self.user, self.model)

    @cached_property
    def can_read_records(self) -> bool:
        """Whether the user may read the records of the model's decisions."""
        return self.user is not None and TreeModel.objects.with_records_for(self.user).filter(pk=self.model.pk).exists()

    @cached_property
    def file(self) -> ModelFile:
        return model_file(self.model)

    @property
    def tree(self) -> Tree:
        return self.file.tree

    @cached_property
    def rows(self) -> DatasetRows | None:
        """The rows. None if they are deleted, too many, or not visible to the user."""
        try:
            return rows_of(self.model) if self.inside else None
        except TrainerError:
            return None

    @cached_property
    def can_be_searched(self) -> bool:
        """Whether a workbench can search trees like this one: over its rows, or over the counts of a source."""
        counted = self.inside and self.model.dataset is not None and bool(self.model.dataset.counts)
        return self.model.method in editable_ids() and (counted or self.rows is not None)

    @cached_property
    def leaf_of(self) -> CodeArray:
        """Leaf of each row, (n,)."""
        return self.tree.apply(self.rows.matrix) if self.rows is not None else np.zeros(0, np.int32)

    @cached_property
    def predicted(self) -> CodeArray:
        """Predicted class of each row, (n,)."""
        return self.tree.labels[self.leaf_of]

    def part(self, name: str) -> np.ndarray:
        """Return the positions of the training rows or of the held-out rows."""
        if self.rows is None:
            return np.zeros(0, np.int64)
        return self.rows.unseen if name == UNSEEN else self.rows.training

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts that have rows, unseen rows first."""
        return tuple(name for name in (UNSEEN, TRAINING) if len(self.part(name)))

    def below(self, node: int) -> np.ndarray:
        """Return for each node whether it is at or below `node`, bool (nodes,)."""
        is_below = np.zeros(len(self.tree.nodes), bool)
        is_below[node] = True
        for v in self.tree.branches:  # parents precede their children, so one pass suffices
            if is_below[v.id]:
                is_below[[v.left, v.right]] = True
        return is_below

    def reaching(self, node: int, part: str) -> np.ndarray:
        """Return the positions of the rows of a part that reach `node`."""
        positions = self.part(part)
        return positions[self.below(node)[self.leaf_of[positions]]] if self.rows is not None else positions

    @cached_property
    def unseen_counts(self) -> np.ndarray:
        """Sums of the weights of held-out rows (1 by default) by node and actual class, int64 (nodes, classes)."""
        counts = np.zeros((len(self.tree.nodes), len(self.tree.classes)), np.int64)
        if self.rows is not None:
            unseen = self.rows.unseen
            np.add.at(counts, (self.leaf_of[unseen], self.rows.codes[unseen]), self.rows.weights_of(unseen))
            for v in reversed(self.tree.branches):
                counts[v.id] = counts[v.left] + counts[v.right]
        return counts

    def unseen_of(self, v: Node) -> tuple[int, int]:
        """Return the numbers of correct and of all held-out rows that reach a node, weighted."""
        counts = self.unseen_counts[v.id]
        return int(counts[v.label]), int(counts.sum())

    def interval_of(self, correct: np.ndarray, at: np.ndarray) -> Interval | None:
        """Return the 95 % interval of a share of rows. `correct` is bool, for the rows at the positions `at`."""
        if self.rows is None or not len(at):
            return None
        weights, groups = (None if column is None else column[at] for column in (self.rows.weights, self.rows.groups))
        return of_rows(correct, weights, groups)

    def unseen_interval_of(self, v: Node) -> Interval | None:
        """Return the 95 % interval of the share of a node's class among the held-out rows that reach it."""
        if self.rows is None:
            return None
        at = self.reaching(v.id, UNSEEN)
        return self.interval_of(self.rows.codes[at] == v.label, at)

    @cached_property
    def node(self) -> Node:
        """The selected node, by default the root."""
        text = self.query.get("node", "")
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
        return self.tree.nodes[number if number < len(self.tree.nodes) else 0]
