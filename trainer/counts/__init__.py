"""Train exact trees from counts of rows (docs/counts.md).

Rows are counted where they are stored, and folders of counts add up.
"""
