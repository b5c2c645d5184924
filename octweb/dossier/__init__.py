"""Dossiers of models: documents with a signature, made by a job, and the pages and addresses that give them out."""
