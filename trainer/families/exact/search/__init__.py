"""The exact search: memo, bounds, constraints and the frontier of accuracy against leaves."""
