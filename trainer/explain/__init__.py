"""Explain single answers by their path and their smallest change (counterfactual)."""
