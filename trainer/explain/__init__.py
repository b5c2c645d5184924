"""One answer explained: the way of a row with its distances, and the smallest change that gives another answer, proved."""
