"""Find optimal trees of a topology over categorical columns (Günlük et al.)."""
