"""Trees of hyperplanes: CUT-H, CUT_w-H (Alston, Validi & Hicks), S-OCT, OCT-H."""
