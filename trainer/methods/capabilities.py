"""Define the capabilities of a method beyond training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ProofKind(StrEnum):
    """Writer of the steps that prove the bound of a method's trees (docs/proof-format.md)."""

    OWN = "own"  # the search itself
    SAME_TREES = "same trees"  # the exact search over binary features, which has the same trees
    HYPERPLANES = "hyperplanes"  # the prover for trees with linear splits
    NONE = "none"  # nobody: the method has no proof steps


class Group(StrEnum):
    """Heading under which the form lists a method."""

    RECOMMENDED = "Recommended"
    OTHERS = "Others"
    BASELINES = "Baselines"


class Asks(StrEnum):
    """The columns that one split of a method's trees tests."""

    ONE = "one"
    TWO = "two"
    MANY = "many"
    GROUPS = "groups"


class Role(StrEnum):
    """A task for which the application chooses the method; each role has one method.

    The first eight correspond to choices in the form: the kind of split, and whether the tree must be proved.
    """

    ONE_PROVED = "one proved"  # default of forms and of the workbench
    ONE_QUICK = "one quick"
    TWO_PROVED = "two proved"
    TWO_QUICK = "two quick"
    MANY_PROVED = "many proved"
    MANY_QUICK = "many quick"
    GROUPS_PROVED = "groups proved"
    GROUPS_QUICK = "groups quick"
    ALL_THRESHOLDS = "all thresholds"  # proves trees over every threshold


class Penalty(StrEnum):
    """A leaf penalty that an experiment computes from the number of rows."""

    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Settings that an experiment tries; a value `Penalty` becomes a number for the table."""

    parameters: Mapping[str, Any]
    needs_numbers: bool = False  # if set, the candidate is left out for tables without numeric columns


@dataclass(frozen=True, kw_only=True)
class Example:
    """The tree on a method's page: slug of a sample, and options of `train`."""

    sample: str = "iris"
    options: tuple[str, ...] = ("--depth", "2", "--leaf-penalty", "0.01")


USUAL_EXAMPLE = Example()


def _no_check(settings: Any) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class WorkbenchSupport:
    """Editing of a method's trees in the workbench.

    Parameters
    ----------
    build : callable
        Returns the `trainer.editing.bench.Bench` of a problem and settings.
        Raises ParameterError for limits that the rows cannot meet.
    check : callable
        Raises ParameterError for settings whose trees cannot be edited.
    overrides : mapping
        Settings that replace those of a model whose tree is edited.
    groups_categories : bool
        Whether a split may keep several categories together.
    good_trees : bool
        Whether all good trees (the Rashomon set) are counted.
    """

    build: Callable[[Any, Any], Any]
    check: Callable[[Any], None] = _no_check
    overrides: Mapping[str, Any] = field(default_factory=dict)
    groups_categories: bool = False
    good_trees: bool = False
