"""Define the findings of a check, and the verdict on the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from trainer.errors import ModelFileError, TrainerError

TOLERANCE = Fraction(1, 10**9)  # a file rounds objectives to decimals, so equal values may differ by this
Verdict = Literal["proved", "recounted", "refuted", "cannot be judged"]
Role = Literal["basis", "claim", "optimality", "aside"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim and its verdict.

    Attributes
    ----------
    claim : str
        The claim, in a few words.
    verdict : str
        "proved", "recounted", "refuted" or "cannot be judged".
    detail : str
        What was compared, in one sentence.
    role : str
        A `basis` must hold before anything else can be judged. `optimality` needs a proof. An `aside` changes the verdict on the whole
        file only if it is refuted.
    top : Fraction, optional
        The best objective that a proved bound leaves open, not rounded.
    """

    claim: str
    verdict: Verdict
    detail: str
    role: Role = "claim"
    top: Fraction | None = None

    def to_json(self) -> dict[str, str]:
        """Return claim, verdict and detail as a dictionary."""
        return {"claim": self.claim, "verdict": self.verdict, "detail": self.detail}


def recount_finding(claim: str, holds: bool, detail: str, role: Role = "claim") -> Finding:
    """Return the finding of a claim that was counted again: recounted or refuted."""
    return Finding(claim=claim, verdict="recounted" if holds else "refuted", detail=detail, role=role)


def unjudged_finding(claim: str, detail: str, role: Role = "claim") -> Finding:
    """Return the finding of a claim that cannot be judged."""
    return Finding(claim=claim, verdict="cannot be judged", detail=detail, role=role)


def proof_finding(claim: str, verdict: Verdict, detail: str, top: Fraction | None = None) -> Finding:
    """Return the finding of a claim that needs a proof."""
    return Finding(claim=claim, verdict=verdict, detail=detail, role="optimality", top=top)


def verdict(findings: Iterable[Finding]) -> Verdict:
    """Return the verdict on the whole file.

    Parameters
    ----------
    findings : iterable of Finding
        One for each claim.

    Returns
    -------
    str
        "refuted" if a claim is refuted. "cannot be judged" if a basis cannot be judged. "proved" if all claims hold and those that need a
        proof were proved again. Otherwise "recounted".
    """
    all_findings = list(findings)
    if any(f.verdict == "refuted" for f in all_findings):
        return "refuted"
    unjudged = [f for f in all_findings if f.verdict == "cannot be judged" and f.role != "aside"]
    if any(f.role == "basis" for f in unjudged):
        return "cannot be judged"
    optimality = [f for f in all_findings if f.role == "optimality"]
    if optimality and not unjudged and all(f.verdict == "proved" for f in optimality):
        return "proved"
    return "recounted"


def refuted(findings: Iterable[Finding]) -> bool:
    """Return True if any claim is refuted.

    Parameters
    ----------
    findings : iterable of Finding

    Returns
    -------
    bool
    """
    return verdict(findings) == "refuted"


def columns_of(split: dict[str, Any]) -> list[str]:
    """Return the names of the columns of a split."""
    return list(split["features"]) if split["kind"] == "linear" else [split["feature"]]


@contextmanager
def damage() -> Iterator[None]:
    """Raise ModelFileError for members of a model file that are missing or have a wrong type."""
    try:
        yield
    except TrainerError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ModelFileError(f"The model file is damaged ({type(error).__name__}: {str(error)[:200]}).") from error
