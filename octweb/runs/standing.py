"""Describe how good a run's best tree is, and how much better one could be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from octweb.core.templatetags.octweb import percent
from octweb.runs.models import TrainingRun
from trainer.certificate import Guarantee
from trainer.goal import balances_classes, count_goal
from trainer.methods.base import AUTO, Method, stated_penalty
from trainer.training.claims import parts_claim
from trainer.tree.numbers import THIN, count_words, number_text, points_text

PROVED = 1e-9  # bound and objective that differ by less count as equal
ROUNDING = 1e-6  # rows by which rounding can change the difference between two objectives
# with one of these parameters, the objective is not correct rows minus a price of leaves
OTHER_AIMS = ("costs", "column_price", "sensitivity", "specificity", "coefficient_penalty", "paper_lambda")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Two sentences about a run's best tree: its correct training rows (or their share of the weight), and possible better trees."""

    right: str
    more: str


def standing(run: TrainingRun, method: Method, latest: Mapping[str, Any] | None) -> Standing:
    """Describe the best tree of a run. `latest` is its newest record with a tree, or None."""
    facts = run.summary
    if facts.get("correct") is not None:
        return _sentences(run, method, facts, rows=int(facts["n"]), bound=facts.get("bound"))
    if latest is None or latest.get("correct") is None:
        return Standing(right="No tree yet." if run.finished is None else "No tree.", more="")
    facts = {"objective": latest.get("incumbent"), "correct": latest["correct"], "leaves": latest.get("leaves")}
    if method.guarantee is Guarantee.SPLITS:
        facts |= _split_counts(latest["tree"])
    return _sentences(run, method, facts, rows=sum(latest["tree"][0]["counts"]), bound=run.progress.get("bound"))


def _sentences(run: TrainingRun, method: Method, facts: Mapping[str, Any], *, rows: int, bound: Any) -> Standing:
    leaves = facts.get("leaves")
    size = f" with {count_words(leaves, 'leaf', 'leaves')}" if leaves else ""
    right = f"Right for {int(facts['correct']):,} of {rows:,} training rows{size}."
    if (
        count_unit(run) != "rows"
    ):  # with weights, both numbers are sums of weights, so they say nothing about the number of rows
        right = (
            f"Right for {points_text(int(facts['correct']) / rows)}{THIN}% of the weight of the training rows{size}."
        )
    if facts.get("cost_per_row") is not None:
        cost = f"{number_text(float(facts['cost_per_row']))} {facts.get('cost_unit') or ''}".strip()
        right = f"Its answers cost {cost} for each training row{size}."
    if method.guarantee is Guarantee.SPLITS:
        parts = parts_claim({**facts, "guarantee": method.guarantee})
        if parts is None or parts.proved == parts.total:
            proved = "Each question is the best for its rows; nothing is proved about the whole tree."
            return Standing(right=right, more=proved)
        return Standing(right=right, more=f"{parts.sentence} Nothing is proved about the whole tree.")
    if method.guarantee is Guarantee.SUBTREES:
        parts = parts_claim({**facts, "guarantee": method.guarantee})
        proved = "Small subtrees are proved at the end of the run." if parts is None else parts.sentence
        return Standing(right=right, more=f"{proved} Nothing is proved about the whole tree.")
    if method.guarantee is not Guarantee.TREE:
        return Standing(right=right, more="How many more are possible is not known: this method proves nothing.")
    objective = facts.get("objective")
    if bound is None or objective is None:
        return Standing(right=right, more=f"How many more are possible is not known{'' if run.finished else ' yet'}.")
    return Standing(right=right, more=_more(run, float(bound) - float(objective), float(objective), rows))


def _split_counts(nodes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of questions of a tree that is still searched, and of those that are proved."""
    branches = [node for node in nodes if "left" in node]
    bounded = [node for node in branches if node.get("impurity_bound") is not None]
    proved = [node for node in bounded if node["impurity"] - node["impurity_bound"] <= PROVED * sum(node["counts"])]
    return {"splits": len(branches), "splits_proved": len(proved)}


def _more(run: TrainingRun, difference: float, objective: float, rows: int) -> str:
    """State how much a better tree could gain. `difference` is between bound and objective."""
    if difference <= PROVED:
        return f"Proved: no tree that was searched {_better(run.parameters)}."
    if run.weight or not counts_rows(run.parameters):
        return f"Could be at most {percent(difference / objective, 2)} better." if objective > 0 else ""
    most = math.floor(difference * rows + ROUNDING)
    # a tree with more leaves may classify more rows correctly and still have a lower objective
    as_few = " without more leaves" if prices_leaves(run.parameters) else ""
    return f"Could be at most {most:,} more{as_few}." if most else f"No tree that was searched gets more right{as_few}."


def _better(parameters: Mapping[str, Any]) -> str:
    """Say what no tree does, since another tree may have more correct rows if the objective counts something else."""
    if parameters.get("costs"):
        return "costs less"
    return "is better" if counts_rows(parameters) else "has a better objective"


def count_unit(run: TrainingRun) -> str:
    """Return the unit of the counts of training rows, to follow a number: "rows", "of weight"; until the end by the settings."""
    if stated := run.summary.get("count_unit"):
        return str(stated)
    return "of weight" if run.weight or balances_classes(run.parameters) else "rows"


def counts_rows(parameters: Mapping[str, Any]) -> bool:
    """Return whether training maximises the number of correct rows minus a price of leaves."""
    weighted = balances_classes(parameters) or str(parameters.get("negative_weight") or "1") != "1"
    return not (weighted or count_goal(parameters) or any(parameters.get(name) for name in OTHER_AIMS))


def prices_leaves(parameters: Mapping[str, Any]) -> bool:
    """Return whether leaves have a price, or may get one that training chooses."""
    return parameters.get("leaf_penalty") == AUTO or stated_penalty(parameters) > 0
