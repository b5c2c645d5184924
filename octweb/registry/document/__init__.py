"""Read a stored model: its file, its claims, its columns and its rows."""
