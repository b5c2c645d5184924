"""Predict files of rows, and save trees as MLflow models."""
