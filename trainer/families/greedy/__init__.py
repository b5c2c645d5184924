"""Trees grown greedily: CART and OC1, the baselines."""
