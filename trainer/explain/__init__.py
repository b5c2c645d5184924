"""Explain single answers: the path of a row with its distances, and the proved smallest change (counterfactual)."""
