"""Cases and oracles of `test_proof_within.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tests.trainer.check.proof.proofs_cases import Lines, accepted, mutations
from trainer.check.proof.subject import ProofSpace
from trainer.data.problem import Problem
from trainer.families.exact.editing.fronts import TreeLimits

INFINITE_COST = 1 << 60


def lines(space: ProofSpace, steps: list[dict[str, Any]], goal: int) -> list[dict[str, Any]]:
    return [{"format": "octweb-proof", "version": 2, "rows": "rows", "scale": 1, "goal": goal}, *steps]


def document(problem: Problem, depth: int, limits: TreeLimits | None, texts: list[str]) -> dict[str, Any]:
    """Return the parts of a model file from which the checker builds its space."""
    names = problem.table.names
    given: dict[str, Any] = {"depth": depth, "binarise": "all-thresholds", "bins": 5}
    if limits is not None:
        c = limits.constraints
        pairs = {tuple(sorted((a, b))) for a, others in limits.pairs.items() for b in others}
        given |= {"max_leaves": c.max_leaves, "max_columns": c.max_columns}
        given["recall"] = "; ".join(f"{problem.labels.classes[k]}: {share}" for k, share in c.recalls)
        given["forbidden_pairs"] = "; ".join(f"{names[a]} + {names[b]}" for a, b in pairs)
    columns = [
        {"name": c.schema.name, "kind": str(c.schema.kind), "categories": list(c.schema.categories)}
        for c in problem.table.columns
    ]
    claim = {"leaf_penalty": str(problem.leaf_penalty), "wishes": [{"wish": text} for text in texts]}
    return {
        "method": "exact", "classes": list(problem.labels.classes), "columns": columns, "parameters": given, "certificate": claim,
    }  # fmt: skip


def with_taller(proof: Lines, deepest: int = INFINITE_COST) -> Lines:
    """Return the proof with another step after each one on vectors.

    The added steps are about taller trees, with a larger bound and a vector that says nothing. From `deepest` on, a
    height says as much as any other.
    """
    width = next((len(v) for step in proof for v in step.get("vectors", [])), 0)
    found = []
    for step in proof:
        found.append(step)
        if width and step.get("by") == "within" and step["path"] and step["height"] < deepest:
            found.append({**step, "height": step["height"] + 1, "bound": step["bound"] + 1, "vectors": [[0] * width]})
    return found


def judge_changes(space: ProofSpace, proof: Lines, optimum: Fraction, most: int = 100) -> None:
    """Check that no change of a proof makes it prove something false."""
    scale = proof[0]["scale"]
    assert accepted(space, [{**proof[0], "goal": proof[0]["goal"] + scale}, *proof[1:]]) is None
    higher = [
        {**line, name: line[name] + scale} for line, name in zip(proof, ["goal", *["bound"] * len(proof)], strict=False)
    ]
    assert accepted(space, higher) is None
    for k in np.random.default_rng(0).permutation(np.arange(1, len(proof)))[:most].tolist():
        step = proof[k]
        changed: list[dict[str, Any] | None] = [
            None,
            *mutations(step),
            {**step, "by": "within"},
            {**step, "classes": [0, 0]},
        ]
        for name in ("vectors", "columns", "with"):
            own = step.get(name, [])
            changed += [{**step, name: own[:i] + own[i + 1 :]} for i in range(min(len(own), 3))]
            changed += [{**step, name: [*own[:-1], [x + 1 for x in own[-1]]]}] if own and name == "vectors" else []
        for one in changed:
            for goal in (proof[0]["goal"], proof[0]["goal"] + scale):
                lines = [{**proof[0], "goal": goal}, *proof[1:k], *([one] if one else []), *proof[k + 1 :]]
                shown = accepted(space, lines)
                assert shown is None or shown <= optimum
