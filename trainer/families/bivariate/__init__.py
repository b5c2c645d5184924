"""Grow trees with optimal splits over two columns (Bollwein & Westphal)."""
