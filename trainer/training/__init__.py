"""Train a model file with its proof, and recover a killed training."""
