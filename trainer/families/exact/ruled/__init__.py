"""Proofs within rules that bind leaves to each other: monotone columns, and rates of groups that must be near."""
