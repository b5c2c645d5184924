"""Provide scikit-learn classifiers, with input, saving and notebook display."""
