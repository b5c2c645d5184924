"""The checker of proofs: it decides whether the steps of a proof file show what they say of a space of trees."""
