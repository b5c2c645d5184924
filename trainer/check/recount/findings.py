"""Finding: one claim of a model file and what became of it; the verdict on the whole file follows from all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from trainer.errors import ModelFileError, TrainerError

TOLERANCE = Fraction(1, 10**9)  # the file writes objectives as rounded decimals
Verdict = Literal["proved", "recounted", "refuted", "cannot be judged"]
Role = Literal["basis", "claim", "optimality", "aside"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim and its verdict.

    `role`: without a `basis` nothing else can be judged; `optimality` is what a proof is needed for; an `aside` does not touch
    the verdict on the whole file unless it is refuted. `top`: the best objective that a proved bound leaves open, not rounded.
    """

    claim: str
    verdict: Verdict
    detail: str
    role: Role = "claim"
    top: Fraction | None = None

    def to_json(self) -> dict[str, str]:
        """The record as a dictionary."""
        return {"claim": self.claim, "verdict": self.verdict, "detail": self.detail}


def recounted(claim: str, holds: bool, detail: str, role: Role = "claim") -> Finding:
    """The finding of a claim that was counted again."""
    return Finding(claim=claim, verdict="recounted" if holds else "refuted", detail=detail, role=role)


def unjudged(claim: str, detail: str, role: Role = "claim") -> Finding:
    """The finding of a claim that nothing is known of."""
    return Finding(claim=claim, verdict="cannot be judged", detail=detail, role=role)


def proof_finding(claim: str, verdict: Verdict, detail: str, top: Fraction | None = None) -> Finding:
    """The finding of a claim that a proof is needed for."""
    return Finding(claim=claim, verdict=verdict, detail=detail, role="optimality", top=top)


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The verdict on the whole file: proved only if every claim holds and what needs a proof was proved again."""
    found = list(findings)
    if any(f.verdict == "refuted" for f in found):
        return "refuted"
    unjudged = [f for f in found if f.verdict == "cannot be judged" and f.role != "aside"]
    if any(f.role == "basis" for f in unjudged):
        return "cannot be judged"
    needed = [f for f in found if f.role == "optimality"]
    if needed and not unjudged and all(f.verdict == "proved" for f in needed):
        return "proved"
    return "recounted"


def refuted(findings: Iterable[Finding]) -> bool:
    """True if any claim is contradicted."""
    return verdict(findings) == "refuted"


def columns_of(split: dict[str, Any]) -> list[str]:
    """The columns that a split asks about."""
    return list(split["features"]) if split["kind"] == "linear" else [split["feature"]]


@contextmanager
def damage() -> Iterator[None]:
    """What is missing or of a wrong type in a model file, as one error that says so."""
    try:
        yield
    except TrainerError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ModelFileError(f"The model file is damaged ({type(error).__name__}: {str(error)[:200]}).") from error
