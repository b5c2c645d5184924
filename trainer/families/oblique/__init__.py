"""Find optimal trees of hyperplanes: CUT-H, CUT_w-H, S-OCT, OCT-H."""
