"""Build the record of a training for `train --json`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trainer.certificate import Certificate, Evidence
from trainer.data.folds import SET_ASIDE
from trainer.data.problem import Problem
from trainer.methods.base import Solution
from trainer.training import single_leaf
from trainer.training.claims import read_claim
from trainer.training.metrics import unseen_accuracy
from trainer.tree.describe import counted_words
from trainer.tree.file import ModelFile


def summary_of(model: ModelFile, certificate: Certificate, problem: Problem, solution: Solution) -> dict[str, Any]:
    """Return the record that `train --json` prints."""
    claim = read_claim(model.certificate)
    return (
        {
            "method": certificate.method,
            "status": str(certificate.status),
            "claim": claim.words,
            "proved_optimal": claim.proved_optimal,
            "objective": certificate.objective,
            "bound": certificate.bound,
            "gap": certificate.gap,
            "mip_gap": certificate.mip_gap,
            "unproved": certificate.unproved,
            "scope": certificate.scope,
            "note": certificate.note,
            "distance": next((e for e in certificate.evidence if e["kind"] == Evidence.DISTANCE), None),
            "train_accuracy": Fraction(certificate.correct, certificate.n).__float__(),
            "correct": certificate.correct,
            "n": certificate.n,
            "count_unit": counted_words(model.certificate),
            "features": len(problem.table.columns),
            "missing": {column.name: str(column.missing) for column in problem.table.schema},
            "encoded_features": solution.encoded_features,
            "classes": list(problem.labels.classes),
            "depth": certificate.depth,
            "leaves": certificate.leaves,
            "single_leaf": single_leaf.reason(model) or None,
            "seconds": certificate.seconds,
            "nodes": certificate.nodes,
            "solver": certificate.solver,
            "solver_version": certificate.solver_version,
            "warm_start_objective": certificate.warm_start_objective,
            "cuts": certificate.cuts,
            "splits": certificate.splits,
            "splits_proved": certificate.splits_proved,
            "subtrees": certificate.subtrees,
            "subtrees_proved": certificate.subtrees_proved,
            "metrics": {name: {k: v for k, v in m.items() if k != "confusion"} for name, m in model.metrics.items()},
            "proof": next((e for e in model.certificate["evidence"] if e["kind"] == Evidence.PROOF), None),
            "version": model.version,
        }
        | dependence_summary(model)
        | ({} if model.sizes is None else {"sizes": dict(model.sizes)})
        | cost_summary(certificate)
        | ({} if certificate.weights is None else {"weight": certificate.weights | {"error": certificate.weight_error}})
    )


def dependence_summary(model: ModelFile) -> dict[str, Any]:
    """Return the members of `train --json` about groups, times, folds by both, and unseen accuracy, if they apply."""
    rows = model.rows or {}
    signs = rows.get("held_out") or ""
    summary: dict[str, Any] = {}
    for name in ("group", "time"):
        if name in rows:
            summary[name] = {"column": rows[name]["column"]}
    by_fold = (model.metrics.get("cross_validation") or {}).get("by_fold")
    if summary and by_fold:
        summary |= {"by_fold": by_fold}
    if summary and SET_ASIDE in signs:
        summary |= {"set_aside": signs.count(SET_ASIDE)}
    unseen = unseen_accuracy(model.metrics)
    return summary if unseen is None else summary | {"unseen_accuracy": unseen}


def cost_summary(certificate: Certificate) -> dict[str, Any]:
    """Return the members of `train --json` about costs; empty without costs."""
    costs = certificate.costs
    if costs is None:
        return {}
    costs_record = {"cost_unit": costs["unit"]}
    return costs_record | {
        name: costs[name] for name in ("cost", "cost_per_row", "best_constant", "least", "rounding_error")
    }
