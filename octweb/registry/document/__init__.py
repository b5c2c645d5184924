"""Read a stored model: its file, claims, columns and rows."""
