"""Check the steps of a proof file about a space of trees."""
