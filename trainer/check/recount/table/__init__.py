"""Read the rows of the training: table, fingerprint, held-out rows, folds and weights."""
