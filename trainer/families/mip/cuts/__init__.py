"""Separators that the formulations share, one family of cuts per file."""
