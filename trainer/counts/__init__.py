"""Exact trees from counts: rows are counted where they lie, and files of counts add up (docs/counts.md)."""
