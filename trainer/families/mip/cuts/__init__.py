"""Separate the cuts of the formulations, one family per file."""
