"""What is claimed about a model, in the words of its badge; a claim is always exact and always names its scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octweb.core import badges
from octweb.core.faults import Damaged
from octweb.core.templatetags.octweb import percent, significant
from octweb.registry.models import TreeModel
from octweb.registry.parsed import model_file
from trainer.certificate import OPTIMAL_GAP, Guarantee, proves


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A badge: `kind` is proved, gap, heuristic, splits or damaged; `words` are shown, `tip` explains."""

    kind: str
    words: str
    tip: str


def claims(model: TreeModel) -> list[Claim]:
    """The badges of a model, the one about the whole tree first."""
    try:
        certificate = model_file(model).certificate
    except Damaged as error:
        return [Claim(kind="damaged", words="Damaged", tip=str(error))]
    found = [_whole_tree(model, dict(certificate))]
    splits, proved = certificate.get("splits"), certificate.get("splits_proved")
    if model.guarantee == Guarantee.SPLITS and isinstance(splits, int) and splits:
        proved = proved if isinstance(proved, int) else 0
        found.append(
            Claim(
                kind="proved" if proved == splits else "gap",
                words=badges.splits_words(proved, splits),
                tip=f"{badges.SPLITS_TIP}{badges.scope_words(str(certificate.get('scope') or ''))}",
            )
        )
    return found


def is_proved(model: TreeModel) -> bool:
    """True where the whole tree is proved optimal."""
    return model.guarantee == Guarantee.TREE and proves(model.status, model.gap)


def certificate_status(model: TreeModel) -> dict[str, Any]:
    """The short form that goes with every prediction."""
    return {
        "guarantee": model.guarantee,
        "status": model.status,
        "gap": model.gap,
        "proved_optimal": is_proved(model),
    }


def _whole_tree(model: TreeModel, certificate: Mapping[str, Any]) -> Claim:
    named = str(certificate.get("scope") or "")
    scope = badges.scope_words(named)
    if is_proved(model):
        return Claim(kind="proved", words=badges.PROVED, tip=badges.proved_tip(named))
    unproved = str(certificate.get("unproved") or "")
    if model.guarantee == Guarantee.TREE and model.gap is not None and unproved and model.gap <= OPTIMAL_GAP:
        return Claim(
            kind="gap",
            words="Objective proved",
            tip=f"No tree of the search space has a better objective. Not proved: {unproved}.{scope}",
        )
    if model.guarantee == Guarantee.TREE and model.gap is not None:
        return Claim(
            kind="gap",
            words=badges.gap_words(percent(model.gap)),
            tip="The search ended before the proof was complete. A better tree may exist; "
            f"its objective cannot exceed {significant(model.bound)}.{scope}",
        )
    if model.guarantee == Guarantee.TREE:
        return Claim(
            kind="heuristic", words=badges.NO_BOUND, tip=f"The search ended before anything was proved.{scope}"
        )
    return Claim(
        kind="heuristic",
        words=badges.HEURISTIC,
        tip=badges.HEURISTIC_TIP + ("" if model.guarantee == Guarantee.SPLITS else scope),
    )
