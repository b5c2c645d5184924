"""Compiled kernels; each is declared by `trainer.kernels.compiled.kernel`."""
