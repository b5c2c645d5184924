"""Copy rows of arrays by a loop, which LLVM inlines.

numba's assignment of an array to a slice adds a message for different sizes to each kernel, 1,150 instructions that never run.
"""

from __future__ import annotations

from trainer.kernels.compiled import kernel


@kernel
def copy_row(source, target):
    """Write the entries of a row into the first ones of another."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def add_row(sign, source, target):
    """Add a row to another (sign 1), or subtract it (-1)."""
    for i in range(len(source)):
        target[i] += sign * source[i]
