"""Check the Pareto fronts of accuracy against leaves or coefficients.

A point claims that a tree of its size has a certain number of correct rows, and that none has more. The first is
counted on the tree that it lists. The second follows from a proof. A search of a small space shows both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.check.proof.model import ModelTable
from trainer.check.recount.findings import Finding, proof_finding, recount_finding
from trainer.check.recount.search import small
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import terms, value_of
from trainer.check.recount.trees.listed_tree import check_tree

# pairs of a number of leaves and the most correct rows of trees with at most this many leaves
Claims = list[tuple[int, int]]


def frontier(model: dict[str, Any], part: dict[str, Any], rows: ModelTable, errors: Sequence[int]) -> Finding:
    """Check a frontier; `errors` are lower bounds of a proof for at most 1, 2, … leaves, empty without a proof."""
    kind = str(part["kind"])
    points = part["points"]
    troubles = (_point_trouble(model, part, p, rows) for p in points)
    if trouble := _disorder(part) or next(filter(None, troubles), ""):
        return recount_finding(kind, False, trouble)
    words = f"{len(points)} points are consistent, and agree with their trees."
    least = int(rows.weights.sum())
    open_ = next(
        (t for t, right in _claims(part) if not errors or least - errors[min(t, len(errors)) - 1] > right), None
    )
    bare = next((p["leaves"] for p in points if not p.get("tree")), None)
    if open_ is None and bare is None:
        return proof_finding(kind, "proved", f"{words} Steps: No tree of any size has more rows right than it says.")
    best = small.frontier(model, rows) if kind == "leaf-frontier" else None
    if best is not None:
        return _compare_with_search(part, best, words)
    if not errors:
        return proof_finding(kind, "cannot be judged", f"{words} The bounds were not searched again.")
    why = f"Steps: Nothing proves what it says of {open_} leaves."
    if open_ is None:
        why = f"Steps: No tree has more rows right than it says; no tree of {bare} leaves is listed that has so many."
    return proof_finding(kind, "cannot be judged", why)


def _disorder(part: dict[str, Any]) -> str:
    """Return an error in the order of the points and the unsettled sizes; empty if there is none."""
    points = part["points"]
    by_leaves = part["kind"] == "leaf-frontier"
    listed = [p["leaves"] for p in (*points, *part.get("unsettled", ()))]
    if not all(type(size) is int and size > 0 for size in listed):
        return "Its sizes are not all integers above 0."
    for name in ("leaves" if by_leaves else "coefficients", "correct"):
        values = [p[name] for p in points]
        if values != sorted(set(values)):
            return "Its points do not rise in size and in correct rows."
    if by_leaves and (len(set(listed)) < len(listed) or max(listed, default=0) > int(part["most"])):
        return "It names a size twice, or one above its largest size."
    return ""


def _point_trouble(model: dict[str, Any], part: dict[str, Any], p: dict[str, Any], rows: ModelTable) -> str:
    """Return an error of a point or of its tree; empty if there is none."""
    n = int(rows.weights.sum())
    tree = p.get("tree")
    point = f"The point with {p['leaves']} leaves does not hold"
    if part["n"] != n or not p["correct"] <= p["bound"] <= n or p["proved"] != (p["correct"] == p["bound"]):
        return f"{point}: its numbers contradict each other."
    if p.get("branchings", p["leaves"] - 1) != p["leaves"] - 1:
        return f"{point}: it must have one question less than leaves."
    if not tree:
        return ""
    trouble, counts = check_tree(model, tree, rows)
    if trouble:
        return f"{point}: {trouble}"
    counted = (len(leaves(tree)), value_of(model, tree, counts)[0])
    size = terms(model, tree)
    fits = counted == (p["leaves"], p["correct"]) and p.get("coefficients", size) == size
    return "" if fits else f"{point}: its tree has {counted[0]} leaves and {counted[1]} rows right."


def _compare_with_search(part: dict[str, Any], best: Sequence[int], words: str) -> Finding:
    """Compare a frontier with a search: `best` has the most correct rows with at most 1, 2, … leaves."""
    kind = str(part["kind"])
    top = {p["leaves"]: p["correct"] for p in part["points"]}
    for t, bound in _claims(part):
        right = best[min(t, len(best)) - 1]
        if right > bound:
            return recount_finding(kind, False, f"A tree of {t} leaves has {right} rows right.")
        if top.get(t, 0) > right:
            return recount_finding(kind, False, f"No tree of {t} leaves has more than {right} rows right.")
    return proof_finding(kind, "proved", f"{words} A plain search finds no better trees.")


def _claims(part: dict[str, Any]) -> Claims:
    """Return the most correct rows that a frontier claims for each number of leaves.

    A size without a point is like the one before. Each question has a coefficient, so that c of them make at most c + 1 leaves.
    """
    if part["kind"] == "coefficient-frontier":
        return [(p["coefficients"] + 1, p["bound"]) for p in part["points"]]
    points = {p["leaves"]: p for p in part["points"]}
    open_ = {u["leaves"]: u["bound"] for u in part.get("unsettled", [])}
    claims = []
    correct = 0
    for t in range(1, int(part["most"]) + 1):
        claims.append((t, points[t]["bound"] if t in points else open_.get(t, correct)))
        correct = points[t]["correct"] if t in points else correct
    return claims
