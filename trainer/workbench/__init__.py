"""Requests of the workbench: the best tree under constraints, and all good trees."""
