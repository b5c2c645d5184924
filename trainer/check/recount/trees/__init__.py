"""What the rows say of the tree of a file and of the trees of its folds, counted again."""
