"""Dossiers of models: signed documents, their jobs, pages and API."""
