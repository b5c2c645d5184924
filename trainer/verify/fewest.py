"""The line on "fewest leaves": a file with `then_fewest` and the status optimal says that no smaller tree is as good."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import floor, lcm
from pathlib import Path
from typing import Any

from trainer.verify.findings import Finding, asked, shown
from trainer.verify.recount.counts import Counts, penalty, value_of
from trainer.verify.search import small
from trainer.verify.search.planes import ceiling, errors_in_planes
from trainer.verify.space.space import BadProof, NoProof
from trainer.verify.steps.frontier import cost_of
from trainer.verify.steps.planes import check_planes
from trainer.verify.steps.points import plane_space
from trainer.verify.steps.steps import read_proof
from trainer.verify.table.rows import Rows
from trainer.verify.tree import leaves

CLAIM = "fewest leaves"


def fewest(model: dict[str, Any], rows: Rows, counts: Counts, proof: Path | None) -> list[Finding]:
    """Whether each tree with fewer leaves has a lower objective; `counts` are the class counts of the nodes."""
    if not asked(model, "then_fewest") or model["certificate"].get("status") != "optimal":
        return []
    value = value_of(model, model["nodes"], counts)[1]
    most = len(leaves(model["nodes"])) - 1  # leaves of a smaller tree
    if most == 0:
        return [shown(CLAIM, "proved", "No tree has fewer leaves than one.")]
    smaller = model | {"parameters": model["parameters"] | {"max_leaves": most}}
    found, _ = small.best(smaller, rows)
    if found is not None and found.value >= value:
        return [shown(CLAIM, "refuted", f"A search finds a tree of at most {most} leaves that is as good.")]
    words = f"no tree of at most {most} {'leaf' if most == 1 else 'leaves'} is as good."
    if ceiling(smaller, rows, penalty(model), errors_in_planes(model, rows)) < value:
        return [shown(CLAIM, "proved", f"Equal rows share a leaf, t leaves predict t classes: {words}")]
    if proof is not None and _shown(model, smaller, rows, value, proof):
        return [shown(CLAIM, "proved", f"The blocks of the proof show that {words}")]
    return [shown(CLAIM, "cannot be judged", f"Not contradicted; it was not proved again that {words}")]


def _shown(model: dict[str, Any], smaller: dict[str, Any], rows: Rows, value: Fraction, proof: Path) -> bool:
    """Whether the blocks of a proof show that each smaller tree costs more than the tree of `value`, one unit at least."""
    cost, most = (1 - value) * int(rows.weights.sum()), smaller["parameters"]["max_leaves"]
    try:
        lines = read_proof(proof)
        _, header = next(lines, (0, {}))
        if "goals" in header:  # errors for each number of leaves
            space = plane_space(model, rows)
            goals = check_planes(chain([(0, header)], lines), space).errors
            return len(goals) > 0 and cost < cost_of(
                [goals[min(t, len(goals)) - 1] for t in range(1, most + 1)], space.penalty, space.charge
            )
        space = plane_space(smaller, rows)
        unit = lcm(space.penalty.denominator, space.charge.denominator)
        goal = floor(cost * unit) + 1
        few = replace(space, leaves=min(space.leaves, most))
        check_planes(chain([(0, header | {"goal": goal})], lines), few)
    except (NoProof, BadProof):
        return False
    return True
