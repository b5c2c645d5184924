"""Search trees under wishes, for any method: words, recursion over a partial tree, prices and conflicts."""
