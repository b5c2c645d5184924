"""Date formats of Django's own output, the same as on pages."""
