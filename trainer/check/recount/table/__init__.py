"""The rows as the training had them: readers of tables, the fingerprint, held-out rows, folds and weights."""
