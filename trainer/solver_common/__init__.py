"""Shared parts of families: tree models under a back end, warm starts, and cross-family lookup."""
