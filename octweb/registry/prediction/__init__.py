"""Answer rows with a model: parse bodies, predict, record, and write responses."""
