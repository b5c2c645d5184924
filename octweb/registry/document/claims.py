"""Build a model's badges, and the claim sent with its predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from octweb.core import badges
from octweb.core.faults import DamagedDocument
from octweb.registry.document.model_files import model_file
from octweb.registry.models import Doubt, TreeModel
from trainer.data.inspection import tree_warnings
from trainer.evaluate.verdict import BaseRate, TreeVerdict, read_verdict, training_base_rate
from trainer.training.claims import Claim, parts_claim, read_claim, weight_sentence

DOUBTS = {
    Doubt.PENDING: "a fault of the search, which is mended, may have made this claim; a check of the model decides",
    Doubt.REFUTED: "a check of this model found something in its file that is not true; see the check on its page",
    Doubt.OPEN: "a fault of the search, which is mended, may have made this claim, and a check could not decide",
}


@dataclass(frozen=True, kw_only=True)
class ClaimBadge:
    """A badge about a model. `kind` is a key of `badges.LOOK`, `words` are shown, and `tip` explains them."""

    kind: str
    words: str
    tip: str


def claim_badges(model: TreeModel) -> list[ClaimBadge]:
    """Return the badges of a model. The first is about the whole tree."""
    try:
        certificate = model_file(model).certificate
    except DamagedDocument as error:
        return [ClaimBadge(kind="damaged", words="Damaged", tip=str(error))]
    claim = claim_of(model)
    parts = parts_claim(certificate)
    if parts is None:
        return [ClaimBadge(kind=claim.kind, words=claim.words, tip=claim.tip)]
    return [
        ClaimBadge(kind=claim.kind, words=claim.words, tip=badges.HEURISTIC_TIP),
        ClaimBadge(
            kind="proved" if parts.proved == parts.total else "gap",
            words=parts.words,
            tip=f"{parts.tip} Scope: {claim.scope.rstrip('.')}." if claim.scope else parts.tip,
        ),
    ]


def warnings_of(model: TreeModel) -> list[str]:
    """Return warnings about a tree, for example that it uses an identifier. [] for a damaged document."""
    try:
        tree = model_file(model).tree
    except DamagedDocument:
        return []
    columns = [] if model.dataset is None else model.dataset.columns
    return tree_warnings(tree, [c["name"] for c in columns if c.get("identifier")])


def verdict_of(model: TreeModel) -> TreeVerdict | None:
    """Compare the model with a constant answer. None for a damaged document."""
    try:
        return read_verdict(model_file(model))
    except DamagedDocument:
        return None


def training_base_of(model: TreeModel) -> BaseRate | None:
    """Return the accuracy of one answer for all training rows. None without counts, or for a damaged document."""
    try:
        return training_base_rate(model_file(model))
    except DamagedDocument:
        return None


def weights_of(model: TreeModel) -> str:
    """Describe the weights of training rows. "" without weights, or for a damaged document."""
    try:
        return weight_sentence(model_file(model).certificate)
    except DamagedDocument:
        return ""


def claim_of(model: TreeModel) -> Claim:
    """Return the claim about the whole tree, weakened if it is in doubt. Raises DamagedDocument."""
    claim = read_claim(model_file(model).certificate)
    if not model.doubt:
        return claim
    doubt = Doubt(model.doubt)
    return replace(claim, kind="gap", words=str(doubt.label), explanation=DOUBTS[doubt])


def certificate_status(model: TreeModel) -> dict[str, Any]:
    """Return the short claim sent with predictions. Constraints and their price are included only if there are any."""
    claim = claim_of(model)
    status: dict[str, Any] = {
        "guarantee": model.guarantee,
        "status": model.status,
        "gap": model.gap,
        "proved_optimal": claim.proved_optimal,
    }
    if claim.wishes:
        status["wishes"] = [wish["words"] for wish in claim.wishes]
        status["price_rows"] = claim.price_rows
    return status


def certificate_parameters(model: TreeModel) -> dict[str, str | float | bool]:
    """Return the short claim as parameters of the Open Inference Protocol: strings, numbers and booleans."""
    parameters = certificate_status(model)
    if "wishes" in parameters:
        parameters["wishes"] = "; ".join(parameters["wishes"])
    return {name: value for name, value in parameters.items() if value is not None}
