"""scikit-learn classifiers, the input they accept, and what a notebook shows."""
