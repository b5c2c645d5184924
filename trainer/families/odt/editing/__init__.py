"""Edit trees of `odt` under constraints over subsets of categories."""
