"""Check proofs without importing the trainer: spaces of trees, and proof steps."""
