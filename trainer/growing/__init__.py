"""Grow trees split by split and prune them, for cart, oc1 and bivariate."""
