"""Writers of proof files for the exact search."""
