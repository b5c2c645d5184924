"""Instances of the tree formulations, and the separators that formulations share, one family a file."""
