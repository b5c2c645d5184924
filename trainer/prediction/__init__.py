"""Files of rows become files of predictions; trees become MLflow models."""
