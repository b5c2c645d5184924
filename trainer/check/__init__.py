"""The independent checker: proofs, everything else that a model file claims, and the checker as one file."""
