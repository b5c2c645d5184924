"""Count every claim of a model file again from the rows; `trainer.check.proof` checks the proofs."""

from trainer.check.recount.check import verify
from trainer.check.recount.findings import Finding, Verdict, refuted, verdict

__all__ = ["Finding", "Verdict", "refuted", "verdict", "verify"]
