"""The certificate: status, gap and what is said to be optimal, line by line."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from trainer.verify import search, wishes
from trainer.verify.findings import TOLERANCE, Finding, Verdict, exact, recounted
from trainer.verify.planes import ceiling, disputed, groups
from trainer.verify.recount import penalty
from trainer.verify.rows import Rows
from trainer.verify.structure import METHODS

CLOSED = Fraction(1, 10**6)  # a gap that is called closed
STATUSES = {"optimal", "time_limit", "memory_limit", "cancelled", "heuristic"}
ASIDE = "solver solver_version seconds nodes cuts warm_start_objective"


def status(model: dict[str, Any]) -> Finding:
    """Whether the status is one that this method, bound and gap may have."""
    certificate = model["certificate"]
    own, bound, gap = (certificate.get(name) for name in ("status", "bound", "gap"))
    guarantee = METHODS[model["method"]][0]
    wanted = exact(certificate.get("mip_gap") or 0)
    trouble = ""
    if own not in STATUSES:
        trouble = f"There is no status '{str(own)[:40]}'."
    elif wanted != exact(model["parameters"].get("mip_gap") or 0):
        trouble = f"A gap of {certificate['mip_gap']} was not what the parameters ask for."
    elif own == "optimal" and guarantee != "tree":
        trouble = f"'{model['method']}' proves no tree optimal."
    elif own == "optimal" and (bound is None or gap is None):
        trouble = "'optimal' is said without a bound and a gap."
    elif own == "optimal" and certificate.get("unproved"):
        trouble = "'optimal' is said although a part of the claim is open."
    elif guarantee != "tree" and (bound is not None or gap is not None):
        trouble = f"'{model['method']}' has no bound for the whole tree."
    words = f"'{own}'" + (f", a gap of {certificate['mip_gap']} being asked for" if wanted else "")
    return recounted("status", not trouble, trouble or words)


def gap(certificate: dict[str, Any]) -> list[Finding]:
    """The gap is that of bound and objective; "optimal" needs a closed one, or one that was asked for."""
    bound, objective = certificate.get("bound"), certificate.get("objective")
    if bound is None or objective is None:
        return [recounted("gap", False, "There is a gap and no bound.")] if certificate.get("gap") is not None else []
    size = max(abs(exact(objective)), Fraction(1, 10**10))
    own = abs(exact(bound) - exact(objective)) / size
    claimed, words = certificate.get("gap"), f"recomputed {float(own):.6g}, claimed {certificate.get('gap')}"
    rounding = TOLERANCE * max(own, Fraction(1)) + Fraction(1, 10**15) / size
    if claimed is None or abs(exact(claimed) - own) > rounding:
        return [recounted("gap", False, words)]
    if certificate.get("status") == "optimal" and own > max(CLOSED, exact(certificate.get("mip_gap") or 0)) + rounding:
        return [recounted("gap", False, f"'optimal' is said of a gap of {float(own):.6g}.")]
    return [recounted("gap", True, words)]


def optimal(model: dict[str, Any], bound: list[Finding]) -> list[Finding]:
    """The line on "optimal", which is as good as that on the bound: objective and gap were recounted."""
    if model["certificate"].get("status") != "optimal":
        return []
    shown: Verdict = next((f.verdict for f in bound if f.claim == "bound"), "cannot be judged")
    words = "It rests on the bound, which the tree meets" + (
        " up to the gap." if model["certificate"].get("mip_gap") else "."
    )
    return [Finding(claim="optimal", verdict=shown, detail=words, role="optimality")]


def bound(model: dict[str, Any], rows: Rows) -> list[Finding]:
    """The bound beside what is known of every tree, beside trees that are found here, and beside a plain search."""
    certificate = model["certificate"]
    if certificate.get("bound") is None:
        return []
    claimed, method = exact(certificate["bound"]), model["method"]
    sizes = np.bincount(rows.labels, rows.weights, minlength=len(model["classes"]))
    single = Fraction(int(sizes.max()), int(sizes.sum())) - penalty(model)
    if claimed < exact(certificate["objective"]) - TOLERANCE:
        return [_bound("refuted", "It lies below the objective of the tree itself.")]
    if certificate.get("wishes"):
        return _with_wishes(model, rows, claimed)
    if method in search.SAME_OBJECTIVE | search.OBLIQUE and claimed < single - TOLERANCE:
        return [_bound("refuted", "It lies below the objective of a single leaf.")]
    if method in search.OBLIQUE:
        if disputed(model, rows.columns, rows.labels):
            return [
                _bound(
                    "refuted", "The errors that it names for rows in a plane are not those that can be counted there."
                )
            ]
        if (proof := ceiling(model, rows.columns, rows.labels, penalty(model))) <= claimed + TOLERANCE:
            words = "Equal rows share a leaf, t leaves predict t classes"
            words += ", errors on disjoint sets of rows add up" if groups(model) else ""
            return [_bound("proved", f"{words}: no tree exceeds {float(proof):.12g}.")]
    found, why = search.best(model, rows)
    if found is None:
        return [_bound("cannot be judged", f"Not contradicted; not solved again: {why}.")]
    words = f"A plain search {'' if found.whole else 'of a part of the space '}finds {float(found.value):.12g}"
    if claimed < found.value - TOLERANCE:
        return [_bound("refuted", f"{words}, which is better.")]
    if not found.whole:
        return [_bound("cannot be judged", f"Not contradicted: {words.lower()}; {why}.")]
    return [_bound("proved", f"{words} at best.")]


def _with_wishes(model: dict[str, Any], rows: Rows, claimed: Fraction) -> list[Finding]:
    """The bound beside a plain search among the trees that keep the wishes."""
    best, why = wishes.best(model, rows)
    if best is None:
        return [_bound("cannot be judged", f"Not contradicted; not solved again: {why}.")]
    words = f"A plain search with these wishes finds {float(best):.12g}"
    if claimed < best - TOLERANCE:
        return [_bound("refuted", f"{words}, which is better.")]
    return [_bound("proved", f"{words} at best.")]


def _bound(verdict: Verdict, detail: str) -> Finding:
    return Finding(claim="bound", verdict=verdict, detail=detail, role="optimality")


def provenance(model: dict[str, Any]) -> list[Finding]:
    """What the file tells of its making, which no check of rows can confirm."""
    told = [name for name in ASIDE.split() if model["certificate"].get(name) not in (None, "", {}, 0)]
    words = f"Told, not checked: {', '.join(told)}."
    return [Finding(claim="how it was made", verdict="cannot be judged", detail=words, role="aside")] if told else []
