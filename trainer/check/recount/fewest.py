"""Check the claim that no smaller tree is as good (`then_fewest`)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import floor, lcm
from pathlib import Path
from typing import Any

from trainer.check.proof.model import ModelTable, active_parameter
from trainer.check.proof.space.planes import plane_space
from trainer.check.proof.steps.lines import Lines, Record, cost_of, read_proof
from trainer.check.proof.steps.planes import check_planes
from trainer.check.proof.subject import BadProof, NoProof, PlaneSpace
from trainer.check.recount.findings import Finding, proof_finding
from trainer.check.recount.search import small
from trainer.check.recount.search.planes import errors_in_planes, objective_bound
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import Counts, penalty, value_of

CLAIM = "fewest leaves"


def check_fewest_leaves(model: dict[str, Any], rows: ModelTable, counts: Counts, proof: Path | None) -> list[Finding]:
    """Check that each tree with fewer leaves has a lower objective; `counts` are the class counts of the nodes."""
    if not active_parameter(model, "then_fewest") or model["certificate"].get("status") != "optimal":
        return []
    value = value_of(model, model["nodes"], counts)[1]
    most = len(leaves(model["nodes"])) - 1  # largest number of leaves of a smaller tree
    if most == 0:
        return [proof_finding(CLAIM, "proved", "No tree has fewer leaves than one.")]
    smaller = model | {"parameters": model["parameters"] | {"max_leaves": most}}
    searched, _ = small.best(smaller, rows)
    if searched is not None and searched.value >= value:
        return [proof_finding(CLAIM, "refuted", f"A search finds a tree of at most {most} leaves that is as good.")]
    words = f"no tree of at most {most} {'leaf' if most == 1 else 'leaves'} is as good."
    if objective_bound(smaller, rows, penalty(model), errors_in_planes(model, rows)) < value:
        return [proof_finding(CLAIM, "proved", f"Equal rows share a leaf, t leaves predict t classes: {words}")]
    if proof is not None and _proof_shows(model, rows, value, most, proof):
        return [proof_finding(CLAIM, "proved", f"The blocks of the proof show that {words}")]
    return [proof_finding(CLAIM, "cannot be judged", f"Not contradicted; it was not proved again that {words}")]


def _proof_shows(model: dict[str, Any], rows: ModelTable, value: Fraction, most: int, proof: Path) -> bool:
    """Return True if the blocks of a proof show that each smaller tree costs more than the tree of `value`."""
    cost = (1 - value) * int(rows.weights.sum())
    try:
        return _smaller_trees_cost_more(read_proof(proof), plane_space(model, rows), cost, most)
    except (NoProof, BadProof):
        return False


def _smaller_trees_cost_more(lines: Lines, space: PlaneSpace, cost: Fraction, most: int) -> bool:
    """Return True if a proof shows that trees of at most `most` leaves cost more than `cost` rows; raise BadProof."""
    _, header = next(lines, (0, Record()))
    if "goals" in header:  # this proof gives the least errors for each number of leaves
        goals = check_planes(chain([(0, header)], lines), space).errors
        return cost < cost_of([goals[min(t, len(goals)) - 1] for t in range(1, most + 1)], space.penalty, space.charge)
    goal_header = header | {"goal": floor(cost * lcm(space.penalty.denominator, space.charge.denominator)) + 1}
    check_planes(chain([(0, goal_header)], lines), replace(space, leaves=min(space.leaves, most)))
    return True
