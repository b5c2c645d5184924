"""Torture: kills, floods, a locked database, a full disk and a moved clock against real processes; then the books are checked."""
