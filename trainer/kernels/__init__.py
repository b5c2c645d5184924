"""Compiled kernels that several families share, and `kernel`, the decorator that declares each kernel."""
