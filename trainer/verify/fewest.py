"""The line on "fewest leaves": a file with `then_fewest` and the status optimal says that no smaller tree is as good."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import floor, lcm
from pathlib import Path
from typing import Any

from trainer.verify import search
from trainer.verify.findings import Finding, Verdict, asked
from trainer.verify.planes import ceiling
from trainer.verify.proof_planes import check_planes
from trainer.verify.proof_points import plane_space
from trainer.verify.proof_space import BadProof, NoProof
from trainer.verify.proof_steps import read_proof
from trainer.verify.recount import Counts, penalty, value_of
from trainer.verify.rows import Rows

CLAIM = "fewest leaves"


def fewest(model: dict[str, Any], rows: Rows, counts: Counts, proof: Path | None) -> list[Finding]:
    """Whether each tree with fewer leaves has a lower objective; `counts` are the class counts of the nodes."""
    if not asked(model, "then_fewest") or model["certificate"].get("status") != "optimal":
        return []
    value = value_of(model, model["nodes"], counts)[1]
    most = sum("split" not in v for v in model["nodes"]) - 1  # leaves of a smaller tree
    if most == 0:
        return [_line("proved", "No tree has fewer leaves than one.")]
    smaller = model | {"parameters": model["parameters"] | {"max_leaves": most}}
    found, _ = search.best(smaller, rows)
    if found is not None and found.value >= value:
        return [_line("refuted", f"A search finds a tree of at most {most} leaves that is as good.")]
    words = f"no tree of at most {most} {'leaf' if most == 1 else 'leaves'} is as good."
    if ceiling(smaller, rows, penalty(model)) < value:
        return [_line("proved", f"Equal rows share a leaf, t leaves predict t classes: {words}")]
    if proof is not None and _shown(smaller, rows, value, proof):
        return [_line("proved", f"The blocks of the proof show that {words}")]
    return [_line("cannot be judged", f"Not contradicted; it was not proved again that {words}")]


def _shown(smaller: dict[str, Any], rows: Rows, value: Fraction, proof: Path) -> bool:
    """Whether the blocks of a proof show that each smaller tree costs more than the tree of `value`, one unit at least."""
    try:
        space = plane_space(smaller, rows)
        unit = lcm(space.penalty.denominator, space.charge.denominator)
        goal = floor((1 - value) * int(rows.weights.sum()) * unit) + 1
        lines = read_proof(proof)
        _, header = next(lines, (0, {}))
        few = replace(space, leaves=min(space.leaves, smaller["parameters"]["max_leaves"]))
        # the blocks of a frontier show the one goal that is asked for here as well
        single = {name: value for name, value in header.items() if name != "goals"}
        single |= {"goal": goal} | ({"version": 3} if header.get("version") == 4 else {})
        check_planes(chain([(0, single)], lines), few)
    except (NoProof, BadProof):
        return False
    return True


def _line(verdict: Verdict, detail: str) -> Finding:
    return Finding(claim=CLAIM, verdict=verdict, detail=detail, role="optimality")
