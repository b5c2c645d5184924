"""Local search over deep trees, whose subtrees exact searches replace."""
