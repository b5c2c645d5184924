"""Every claim of a model file counted again from the rows; what nothing is better than is left to `trainer.check.proof`, which checks proofs."""

from trainer.check.recount.check import verify
from trainer.check.recount.findings import Finding, Verdict, refuted, verdict

__all__ = ["Finding", "Verdict", "refuted", "verdict", "verify"]
