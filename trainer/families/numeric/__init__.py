"""Exact search over all thresholds of numeric columns."""
