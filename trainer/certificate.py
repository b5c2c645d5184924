"""Define limits, progress and certificate of a training run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

OPTIMAL_GAP = 1e-6


class Status(StrEnum):
    """The reason why a run ended, as the JSON of `train` states it."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    CANCELLED = "cancelled"
    HEURISTIC = "heuristic"
    INTERVALS = "secret_counts"  # the search is complete, but suppressed counts leave a gap between objective and bound


class Guarantee(StrEnum):
    """The part of a tree that a method proves optimal if it runs to its end."""

    TREE = "tree"  # the whole tree is optimal in the search space
    SPLITS = "splits"  # every split is optimal for the rows that reach it; nothing is claimed about the tree
    SUBTREES = (
        "subtrees"  # every small subtree is optimal for the rows that reach it; nothing is claimed about the tree
    )
    HEURISTIC = "heuristic"


class Evidence(StrEnum):
    """The `kind` of a part of a certificate's `evidence`; the checker has its own list (docs/model-file.md)."""

    DYNAMIC_PROGRAMMING = "dynamic-programming"
    INTERVAL_PRUNING = "interval-pruning"
    WISHES = "wishes"
    LEAF_FRONTIER = "leaf-frontier"
    COEFFICIENT_FRONTIER = "coefficient-frontier"
    FRONTIER = "frontier"  # Pareto front of sensitivity and specificity
    OPTIMAL_TREES = "optimal-trees"
    PLANES = "planes"  # least errors of rows in planes, from which a bound on every tree follows
    BOUND_MET = "bound-met"  # a known tree already met the bound of `PLANES`, so no solver ran
    CASES = "cases"  # a case analysis proved the optimum, so no solver ran
    MIP = "mip"
    SUBSET_SEARCH = "subset-search"
    SUBTREES = "subtrees"  # height of the small subtrees, and those that are not proved
    TOPOLOGY_CHOICE = "topology-choice"
    GREEDY = "greedy"
    COUNTS = "counts"  # the counts that replaced rows, see trainer.counts
    DISTANCE = "distance"  # margin of the planes to the rows that they classify correctly
    GOAL_SEARCH = "goal-search"  # how many weighted searches found the best F1 or MCC
    PROOF = "proof"  # whether a proof file was written, and the reason if not


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds of wall time, megabytes of resident memory, and threads; None means no limit."""

    time: float | None = None
    memory: int | None = None
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One line of the progress file; objectives lie in [0, 1], minus penalties.

    `t` counts the seconds of the search. `compile_seconds` counts those of compiling, which `t` leaves out.
    """

    t: float
    phase: str
    incumbent: float | None = None
    bound: float | None = None
    gap: float | None = None
    nodes: int = 0
    leaves: int | None = None
    compile_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dictionary for `json.dumps`; unknown values are None, never NaN or infinity."""
        return {key: _finite(value) for key, value in asdict(self).items()}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The claim about a tree, with its evidence.

    Attributes
    ----------
    status : Status
        Why the search ended.
    objective : float
        Objective of the tree: accuracy on the training rows minus penalties, or what `goal` or `costs` state.
    bound : float, optional
        No tree of the search space has a higher objective; None if nothing is proved about the whole tree.
    gap : float, optional
        ``|bound - objective| / |objective|``; None without a bound.
    guarantee : Guarantee
        Whether the claim is about the whole tree, about each split, or about nothing.
    scope : str
        The search space of the claim, in one sentence.
    unproved : str
        The part of the claim that is not proved, even if bound and objective agree.
    note : str
        A sentence for readers of the claim.
    correct, n : int
        Correct training rows, and all of them; weights if rows are weighted.
    leaves, depth : int
        Size of the tree.
    splits_proved, splits : int, optional
        Number of proved splits, and of all splits, if the method proves each split.
    subtrees_proved, subtrees : int, optional
        Proved small subtrees and all of them, if the method proves each small subtree.
    leaf_penalty, coefficient_penalty : str
        Penalties of a leaf and of a coefficient, as decimals.
    seconds : float
        Time of the search.
    nodes, cuts : int, dict
        Size of the search.
    solver, solver_version : str
        The program that searched.
    evidence : tuple of dict
        The parts of the search, as in the model file (docs/model-file.md).
    goal, costs, column_prices, weights, class_weights : dict, optional
        What replaces accuracy, and the units of the counts (docs/model-file.md).
    weight_error : float
        Objective and bound hold for the given weights, which were rounded, up to this number.
    mip_gap : float
        The relative gap at which the search was allowed to stop.
    warm_start_objective : float, optional
        Objective of the tree that the search started from.
    counts : str
        SHA-256 of the counts that the tree was trained from; empty if it was trained from rows.
    """

    method: str
    guarantee: Guarantee
    status: Status
    objective: float
    bound: float | None = None
    gap: float | None = None
    mip_gap: float = 0.0
    scope: str = ""
    splits_proved: int | None = None
    splits: int | None = None
    subtrees_proved: int | None = None
    subtrees: int | None = None
    correct: int = 0
    n: int = 0
    leaves: int = 0
    depth: int = 0
    leaf_penalty: str = "0"
    nodes: int = 0
    cuts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    solver: str = ""
    solver_version: str = ""
    warm_start_objective: float | None = None
    evidence: tuple[dict[str, Any], ...] = ()
    coefficient_penalty: str | None = None  # penalty per coefficient of the splits, subtracted from the objective
    goal: dict[str, Any] | None = None  # what is maximised in place of accuracy, see trainer.goal
    unproved: str = ""
    note: str = ""
    weight_error: float = 0.0
    # what the answers of the tree and of the best constant answer cost, see trainer.training.run
    costs: dict[str, Any] | None = None
    # prices of columns, and what the training rows pay for them on their paths
    column_prices: dict[str, Any] | None = None
    counts: str = ""
    weights: dict[str, Any] | None = None  # the weight column, its step, and the numbers of rows without weights
    # what a row of each class counts, and the numbers of rows without weights
    class_weights: dict[str, Any] | None = None

    @property
    def proved_optimal(self) -> bool:
        """Whether the gap of the whole tree is closed (≤ 1e-6)."""
        return proves(self.status, self.gap)

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as a dictionary for the model file."""
        record = asdict(self)
        record["guarantee"] = str(self.guarantee)
        record["status"] = str(self.status)
        record["evidence"] = list(self.evidence)
        for name in ("weight_error", "note", "costs", "column_prices", "weights", "class_weights", "counts"):
            if not record[name]:
                del record[name]
        for name in ("subtrees_proved", "subtrees"):
            if record[name] is None:
                del record[name]
        return {key: _finite(value) for key, value in record.items()}


def proves(status: str, gap: float | None) -> bool:
    """Return True if the gap of the whole tree is closed; the status "optimal" alone allows a requested gap."""
    return status == Status.OPTIMAL and gap is not None and gap <= OPTIMAL_GAP


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """Return `|bound - objective| / max(|objective|, 1e-10)`, or None if one of the two is unknown or not finite."""
    if objective is None or bound is None or not (math.isfinite(objective) and math.isfinite(bound)):
        return None
    return abs(bound - objective) / max(abs(objective), 1e-10)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
