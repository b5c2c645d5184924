"""Independent check of model files: imports nothing of the trainer but its errors."""

from trainer.verify.check import refuted, verify

__all__ = ["refuted", "verify"]
