"""Search under rules that couple the leaves of a tree."""
