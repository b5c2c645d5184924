"""Build the space of trees of a claim: questions, restrictions and wishes in numbers."""
