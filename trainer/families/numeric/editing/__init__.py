"""The workbench of `exact-numeric`: wishes with prices and proofs over all thresholds."""
