"""Dossiers of models: signed documents made by a job, with their pages and API."""
