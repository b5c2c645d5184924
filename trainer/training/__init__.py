"""One training from rows to a model file with its proof, and its recovery after a kill."""
