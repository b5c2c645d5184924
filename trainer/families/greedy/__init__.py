"""Grow trees greedily: the baselines CART and OC1."""
