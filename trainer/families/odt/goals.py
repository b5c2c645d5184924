"""Search ODT trees for class weights or required sensitivity and specificity.

Günlük et al., equations (15) and (16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.certificate import Evidence, Status
from trainer.data.problem import Problem, SettingNames
from trainer.errors import InfeasibleError, ParameterError, SolverError
from trainer.families.odt.grouping import predict_labels, relabel
from trainer.families.odt.groups import Groups
from trainer.families.odt.pareto import RateFrontierSearch, RatePoint
from trainer.families.odt.topology import Shape
from trainer.goal import Goal, Maximised, downwards, needed_rows, required_text, share
from trainer.methods.base import Parameter, Restricts, Sentences, Settings, exact_fraction
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import Draft
from trainer.tree.numbers import percent_text

MAX_POSITIVE = 100_000  # limit on the weight of the positive rows, which is the number of entries of a frontier


def parse_goal(settings: Settings, names: SettingNames) -> tuple[str, dict[str, str], Fraction | None] | None:
    """Return the positive class, the required shares, and the weight of the other class (None: balanced).

    Returns None if the settings maximise plain accuracy. Raises ParameterError for settings that no training set allows.
    """
    required = {name: settings[name] for name in ("sensitivity", "specificity") if settings[name] is not None}
    positive = names.label(settings["positive"].strip() or names.classes[-1], "positive")
    text = settings["negative_weight"].strip() or "1"
    weight = None if text == "balanced" else _weight(text)
    if not required and text == "1" and not settings["frontier"]:
        return None
    if len(names.classes) != 2:
        parameters = required or ({"frontier": True} if settings["frontier"] else {"negative_weight": text})
        raise ParameterError(
            {
                name: f"needs two classes, but the target has {len(names.classes)}. Leave it out, or choose another target."
                for name in parameters
            }
        )
    if len(required) == 1 and text != "1":
        raise ParameterError(
            {"negative_weight": "has no effect if one share is required and the other is maximised. Leave it at 1."}
        )
    return positive, {name: str(exact_fraction(least)) for name, least in required.items()}, weight


def _weight(text: str) -> Fraction:
    try:
        weight = exact_fraction(text)
    except ValueError:
        raise ParameterError(
            {
                "negative_weight": f"'{text[:80]}' is neither a number nor 'balanced'. Write a number from 0 to 1000, or 'balanced'."
            }
        ) from None
    if not 0 <= weight <= 1000:
        raise ParameterError({"negative_weight": f"{text[:80]} is not from 0 to 1000. Write a number in this range."})
    if not weight and Fraction(text):
        raise ParameterError(
            {"negative_weight": f"{text[:80]} is too small to be distinguished from 0. Use at most twelve decimals."}
        )
    return weight


def _restrict_share(name: str) -> Restricts:
    return lambda s: [] if s[name] is None else [f"{name} ≥ {s[name]}"]


def _minimum_parameter(name: str) -> Sentences:
    return lambda v: [] if v.get(name) is None else [f"The {name} is at least {percent_text(float(v[name]))}."]


GOALS = (
    Parameter(
        name="sensitivity", counts_rows=True, type="number", default=None, minimum=0, maximum=1, label="Least sensitivity",
        help="Minimum share of the positive rows that are classified correctly. The specificity is then maximised. Empty "
        "means no minimum.",
        restricts=_restrict_share("sensitivity"), sentences=_minimum_parameter("sensitivity"),
    ),
    Parameter(
        name="specificity", counts_rows=True, type="number", default=None, minimum=0, maximum=1, label="Least specificity",
        help="Minimum share of the other rows that are classified correctly. The sensitivity is then maximised; with both "
        "given, the accuracy.",
        restricts=_restrict_share("specificity"), sentences=_minimum_parameter("specificity"),
    ),
    Parameter(
        name="positive", type="text", default="", label="Positive class",
        help="The class that sensitivity refers to; empty means the last class.", check=parse_goal,
    ),
    Parameter(
        name="negative_weight", counts_rows=True, type="text", default="1", label="Weight of the other class",
        help="The weight of a correct row of the other class; a positive row counts 1. 'balanced' gives both classes the same total.",
        advanced=True,
    ),
    Parameter(
        name="frontier", counts_rows=True, type="boolean", default=False, label="Whole frontier",
        help="Also find every reachable pair of sensitivity and specificity that no other pair dominates; the model then "
        "has a slider to choose one. For two classes.",
    ),
)  # fmt: skip


def make_goal(problem: Problem, settings: Settings) -> Goal | None:
    """Return the goal of the settings; None if they maximise plain accuracy."""
    parsed = parse_goal(settings, problem.names)
    if parsed is None:
        return None
    positive, required, weight = parsed
    sensitivity = required.get("sensitivity")
    specificity = required.get("specificity")
    if len(required) == 1:
        maximise: Maximised = "specificity" if sensitivity else "sensitivity"
        return Goal(positive=positive, maximise=maximise, sensitivity=sensitivity, specificity=specificity)
    factor = _balancing_weight(problem, positive) if weight is None else weight
    return Goal(positive=positive, weight=str(factor), sensitivity=sensitivity, specificity=specificity)


def _balancing_weight(problem: Problem, positive: str) -> Fraction:
    is_positive = problem.y == problem.labels.classes.index(positive)
    w = problem.row_weights
    return Fraction(int(w[is_positive].sum()), max(1, int(w[~is_positive].sum())))


def orient_classes(problem: Problem, groups: Groups, goal: Goal) -> tuple[Groups, tuple[int, ...]]:
    """Return groups in which class 1 is positive, and the original classes of the labels 0 and 1."""
    k = problem.labels.classes.index(goal.positive)
    if k == 1:
        return groups, (0, 1)
    return replace(groups, y=(1 - groups.y).astype(np.int32)), (1, 0)


def apply_class_weight(groups: Groups, goal: Goal) -> tuple[Groups, Fraction]:
    """Return groups with integer row weights in the goal's proportion, and the number of rows per unit of weight.

    Class 1 of the groups is the positive class.
    """
    weight = Fraction(goal.weight)
    factor = np.where(groups.y == 1, weight.denominator, weight.numerator).astype(np.int64)
    return replace(groups, w=groups.w * factor), Fraction(1, weight.denominator)


class RateGoalSearch:
    """A frontier search for a goal, with progress in the unit of the goal and the best tree that the goal admits."""

    def __init__(
        self, problem: Problem, groups: Groups, shape: Shape | None, goal: Goal, monitor: Monitor, *, all_entries: bool
    ) -> None:
        self.goal = goal
        self.monitor = monitor
        oriented, self.classes = orient_classes(problem, groups, goal)
        # to maximise sensitivity, search with the classes exchanged
        self.mirrored = goal.maximise == "sensitivity" and not all_entries
        if self.mirrored:
            oriented = replace(oriented, y=(1 - oriented.y).astype(np.int32))
            self.classes = self.classes[::-1]
        self.positives, self.negatives = (int(oriented.w[oriented.y == k].sum()) for k in (1, 0))
        if self.positives > MAX_POSITIVE:
            raise ParameterError(
                {
                    "sensitivity": f"The rows of the positive class weigh {self.positives:,}, but the limit is {MAX_POSITIVE:,}. Use fewer rows, or lower weights."
                }
            )
        least = needed_rows(goal.specificity if self.mirrored else goal.sensitivity, self.positives)
        single = goal.maximise != "accuracy" and not all_entries
        # one entry decides whether both required shares are feasible, and it is often proved long before the others
        self.both = not all_entries and goal.sensitivity is not None and goal.specificity is not None
        self.search = RateFrontierSearch(
            groups=oriented,
            root=shape,
            predict=lambda draft: predict_labels(draft, problem.matrix),
            required_positives=least if single or self.both else None,
            stopped=monitor.stopped,
            flag=monitor.flag,
            on_progress=self._report,
        )

    def _counts(self, pair: RatePoint, tn: int | None = None) -> tuple[int, int, int, int]:
        """Return the correct positives, all positives, the correct negatives and all negatives of the goal's positive class."""
        negatives = pair.tn if tn is None else tn
        if self.mirrored:
            return negatives, self.negatives, pair.tp, self.positives
        return pair.tp, self.positives, negatives, self.negatives

    def best(self) -> RatePoint | None:
        """Return the best pair so far that the goal admits. Ties are broken by more correct rows."""
        admitted = [p for p in self.search.pairs() if self.goal.admits(*self._counts(p))]
        return max(admitted, key=lambda p: (self.goal.value(*self._counts(p)), p.tp + p.tn), default=None)

    def bound(self) -> Fraction | None:
        """Return an upper bound on the goal's value; None if no tree can be admitted."""
        top: Fraction | None = None
        for t, tn in enumerate(self.search.bound.tolist()):
            pair = RatePoint(tp=t, tn=max(tn, 0), bound=max(tn, 0))
            if tn >= 0 and self.goal.admits(*self._counts(pair)):
                value = self.goal.value(*self._counts(pair))
                top = value if top is None else max(top, value)
        return top

    def _report(self, search: RateFrontierSearch) -> None:
        pair = self.best()
        bound = self.bound()
        draft = None if pair is None else search.known_tree(pair.tp)
        self.monitor.report(
            phase="frontier",
            nodes=search.nodes,
            draft=None if draft is None else relabel(draft, self.classes),
            incumbent=None if pair is None else float(self.goal.value(*self._counts(pair))),
            bound=None if bound is None else float(bound),
        )

    def solve(self) -> tuple[Draft, Fraction]:
        """Return the best tree and a bound. Raises InfeasibleError, with the best reachable share, if no tree is admitted."""
        self.search.solve()
        if self.both and self.search.finished:
            self._raise_if_unreachable()
            self.search = self.search.search_all_entries()
            self.search.solve()
        pair = self.best()
        bound = self.bound()
        if pair is None:
            self._raise_if_unreachable()
            raise SolverError(
                "The search ended before it found a tree with the required shares. Allow more time, or relax one of them."
            )
        assert bound is not None
        return relabel(self.search.tree(pair.tp), self.classes), max(bound, self.goal.value(*self._counts(pair)))

    def _raise_if_unreachable(self) -> None:
        """Raise InfeasibleError if the bounds prove that no tree reaches both shares."""
        least_p = needed_rows(self.goal.sensitivity, self.positives)
        least_n = needed_rows(self.goal.specificity, self.negatives)
        if self.search.bound[least_p] >= least_n:
            return
        best = share(self.search.at(least_p).tn, self.negatives)
        prefix = "" if self.search.at(least_p).proved else "at least "
        raise InfeasibleError(
            f"With a sensitivity of at least {required_text(self.goal.sensitivity or '0')}, no tree reaches a specificity of "
            f"{required_text(self.goal.specificity or '0')}: the best is {prefix}{downwards(best)}. "
            "Relax one of them, or allow a larger topology.",
            best=float(best),
            of="specificity",
        )

    def evidence(self) -> dict[str, Any]:
        """Return the frontier as a record of the model file.

        `pairs` are correct positives, correct negatives and a bound of the latter. `proved` states for each pair
        whether it is proved that no tree dominates it. `finished` means that no pair is missing. Otherwise `status` is
        the reason and `bounds` are the proved
        `steps`.
        """
        pairs = thin(self.search.pairs())
        finished = self.search.finished
        reason = self.monitor.reason
        return {
            "kind": Evidence.FRONTIER,
            "positive": self.goal.positive,
            "positives": self.positives,
            "negatives": self.negatives,
            "pairs": [[p.tp, p.tn, p.bound] for p in pairs],
            "proved": [p.proved for p in pairs],
            "finished": finished,
            "status": str(Status.OPTIMAL if finished else reason or Status.TIME_LIMIT),
            "bounds": [] if finished else steps(self.search.most()),
        }


def steps(most: np.ndarray, limit: int = 2000) -> list[list[int]]:
    """Return a step function of bounds as pairs [t, b].

    No tree has more than b correct negatives if its correct positives are at most t and above those of the pair before. Steps are
    merged to about `limit` pairs, with the highest bound of each.
    """
    ends = np.flatnonzero(np.append(most[1:] < most[:-1], True))
    ends = ends[::-1][:: len(ends) // limit + 1][::-1]
    starts = np.append(0, ends[:-1] + 1)
    return [[int(t), int(most[s])] for s, t in zip(starts, ends, strict=True)]


def thin(pairs: Sequence[RatePoint], most: int = 2000) -> list[RatePoint]:
    """Keep about `most` pairs, evenly spaced, including both ends."""
    step = len(pairs) // most + 1
    return [p for i, p in enumerate(pairs) if i % step == 0 or i == len(pairs) - 1]
