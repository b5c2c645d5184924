"""Share tree models, warm starts and searches between families."""
