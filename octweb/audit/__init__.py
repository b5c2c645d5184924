"""Append-only audit chain: each record contains the hash of the previous one."""
