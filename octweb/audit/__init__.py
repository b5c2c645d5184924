"""Append-only audit chain: each record has the hash of the previous one."""
