"""Wishes on a tree, whatever method searches: their words, the recursion over a partial tree, prices and conflicts."""
