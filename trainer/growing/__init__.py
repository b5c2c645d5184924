"""Trees grown from the root, split by split, and pruned: what cart, oc1 and bivariate share."""
