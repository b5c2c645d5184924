"""Decide whether a proof holds: the space of trees that a model is about, and the steps of the proof. Nothing of the trainer is imported."""
