"""Trees whose nodes ask for the best line over two columns (Bollwein & Westphal): branch and bound for each pair."""
