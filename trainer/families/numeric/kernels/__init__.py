"""Compiled kernels of the family; each is declared by `trainer.kernels.compiled.kernel`."""
