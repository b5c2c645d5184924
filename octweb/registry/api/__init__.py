"""REST API of models, below `/api/v1/`."""
