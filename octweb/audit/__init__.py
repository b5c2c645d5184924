"""The chain of recorded decisions: records that are only added, each with the hash of the previous one."""
