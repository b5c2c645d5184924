"""Compiled kernels that several families share, and `kernel`, by which every kernel is declared."""
