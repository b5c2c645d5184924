"""Torture campaigns against real processes: kills, floods, a locked database, a full disk, a moved clock."""
