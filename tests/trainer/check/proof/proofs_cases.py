"""Cases and oracles of `test_proofs.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import BadProof, ProofSpace

Lines = list[dict[str, Any]]


def never() -> bool:
    return False


def answers(space: ProofSpace) -> np.ndarray:
    """Return the questions of a space as yes/no columns, in the numbering of the format."""
    if space.kind == "questions":
        return space.X.astype(bool)
    made = [x > value for x in space.X.T for value in np.unique(x)[:-1]]
    return np.array(made, bool).reshape(len(made), len(space.X)).T


def cost(space: ProofSpace, unit: int, leaf: int, path: list[int], height: int) -> int:
    """Return the least cost below a path, by plain recursion."""
    X = answers(space)

    @lru_cache(None)
    def best(rows: frozenset[int], left: int) -> int:
        chosen = sorted(rows)
        sizes = np.bincount(space.labels[chosen], space.weights[chosen], space.classes)
        least = leaf + unit * int(sizes.sum() - sizes.max())
        for q in range(X.shape[1] if left else 0):
            yes = frozenset(i for i in chosen if X[i, q])
            no = rows - yes
            if all(side and space.weights[sorted(side)].sum() >= space.min_leaf for side in (yes, no)):
                least = min(least, best(yes, left - 1) + best(no, left - 1))
        return least

    rows = [i for i in range(len(X)) if all(bool(X[i, q // 2]) == bool(q % 2) for q in path)]
    return best(frozenset(rows), height)


def with_header(proof: Any) -> Lines:
    header = {"format": "octweb-proof", "version": 1, "rows": "rows", "scale": proof.scale, "goal": proof.goal}
    return [header, *proof.steps]


def accepted(space: ProofSpace, lines: Lines) -> Fraction | None:
    """Return the bound that a proof proves, or None if it is refused."""
    try:
        return check_proof(iter(list(enumerate(lines))), space).cost
    except BadProof:
        return None


def mutations(step: dict[str, Any]) -> Lines:
    """Return variants of the step: stronger, weaker, another height, another path, another reason."""
    path = step["path"]
    bound = step["bound"]
    changed = [{**step, "bound": bound + d} for d in (-1, 1, 7) if bound + d >= 0]
    changed += [{**step, "height": step["height"] + d} for d in (-1, 1) if step["height"] + d >= 0]
    changed += [{**step, "path": [*path[:k], path[k] ^ 1, *path[k + 1 :]]} for k in range(len(path))]
    changed += [{**step, "path": path[:-1]}] if path else []
    return changed + [{**step, "by": by} for by in ("floor", "count", "split") if by != step["by"]]


def prices(space: ProofSpace, lines: Lines) -> tuple[int, int]:
    scale = lines[0]["scale"]
    return scale * space.penalty.denominator, scale * space.penalty.numerator + (scale > 1)
