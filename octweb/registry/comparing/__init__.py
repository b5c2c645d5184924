"""Compare the models of one data set."""
