"""Search without a proof file: small spaces of trees, lines in two columns, rows in planes."""
