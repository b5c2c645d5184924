"""Compiled kernels that families share, and their decorator `kernel`."""
