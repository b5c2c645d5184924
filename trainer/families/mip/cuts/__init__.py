"""Separators that the formulations share, one family of cuts a file."""
