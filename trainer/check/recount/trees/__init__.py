"""Count the tree of a file and the trees of its folds again."""
