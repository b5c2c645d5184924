"""Exact search over trees of binary questions by dynamic programming with bounds."""
