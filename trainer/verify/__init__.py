"""Independent check of model files: imports nothing of the trainer but its errors."""

from trainer.verify.check import verify
from trainer.verify.findings import Finding, Verdict, refuted, verdict

__all__ = ["Finding", "Verdict", "refuted", "verdict", "verify"]
