"""Optimal trees over categorical columns with a given topology (Günlük et al.): subset search and the mixed-integer model."""
