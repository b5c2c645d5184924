"""Require a share of correct rows of a class: the constraint `recall`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from trainer.constraints import Constraints, recalls
from trainer.dtypes import FloatArray
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import NamedIndices, RelaxedConstraint, SideConstraint, View, correct_rows, scores
from trainer.goal import lowered_recalls_words
from trainer.methods.base import Settings


@dataclass(frozen=True, kw_only=True)
class ClassRecall(SideConstraint):
    """At least `share` of the rows of class `label` are classified correctly: sensitivity, or specificity for the other class."""

    labels: ClassVar[bool] = True
    together: ClassVar[bool] = True
    label: int
    share: Fraction

    def add(self, view: View) -> None:
        """Add sum of the scores of the class ≥ share of its weight; lower scores than the tree's only tighten it."""
        rows = np.flatnonzero(view.instance.y == self.label)
        required = self.share * int(view.instance.weight[rows].sum())
        # the left side counts rows, so the right side may be rounded up
        view.model.add(
            scores(view, rows) >= float(-(-required.numerator // required.denominator)) - 1e-7, "class-recall"
        )

    def holds(self, instance: Instance, tree: ArrayTree) -> bool:
        """Return whether the share of correct rows is reached."""
        in_class = instance.y == self.label
        return int(instance.weight[in_class & correct_rows(instance, tree)].sum()) >= self.share * int(
            instance.weight[in_class].sum()
        )

    @classmethod
    def relax(cls, given_up: Sequence[SideConstraint]) -> RelaxedConstraint:
        """Return the relaxation: all recalls may fall short by the same amount."""
        return RelaxedRecalls(recalls=tuple(c for c in given_up if isinstance(c, cls)))

    def add_to_exact(self, constraints: Constraints, instance: Instance) -> Constraints:
        """Add the minimum recall of the class."""
        return replace(constraints, recalls=(*constraints.recalls, (self.label, self.share)))


@dataclass(frozen=True, kw_only=True)
class RelaxedRecalls(RelaxedConstraint):
    """Recalls that may all fall short by the same amount, the variable `short`."""

    of: ClassVar[str] = "shortfall of the recalls"
    labels: ClassVar[bool] = True
    recalls: tuple[ClassRecall, ...]

    def add(self, view: View) -> None:
        """Add sum of the scores of the class ≥ (share - short) of its weight; maximise -short."""
        inst = view.instance
        short = view.variables["short"] = view.model.continuous("short", ("",))
        for recall in self.recalls:
            rows = np.flatnonzero(inst.y == recall.label)
            size = int(inst.weight[rows].sum())
            view.model.add(scores(view, rows) + size * short[""] >= float(recall.share * size), "class-recall")
        view.model.maximize(-short[""])

    def price(self, instance: Instance, tree: ArrayTree) -> Fraction:
        """Return the largest shortfall of the recalls of a tree."""
        correct = correct_rows(instance, tree)
        missing = [Fraction(0)]
        for recall in self.recalls:
            in_class = instance.y == recall.label
            reached = Fraction(int(instance.weight[in_class & correct].sum()), int(instance.weight[in_class].sum()))
            missing.append(recall.share - reached)
        return max(missing)

    def fill(self, view: View, values: FloatArray, tree: ArrayTree) -> None:
        """Set `short` to the shortfall of the tree."""
        values[view.variables["short"].column("")] = float(self.price(view.instance, tree))

    def sentence(self, price: Fraction) -> str:
        """Return the common shortfall, as a sentence."""
        return lowered_recalls_words(price, len(self.recalls))


def recall_constraints(at: NamedIndices, settings: Settings) -> Iterator[SideConstraint]:
    for name, share in recalls(settings, at.problem.names):
        yield ClassRecall(label=at.label(name, "recall"), share=share)
