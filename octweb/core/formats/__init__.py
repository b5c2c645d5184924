"""Date formats for Django's own output, as in the administration: the same as on pages."""
