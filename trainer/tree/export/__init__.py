"""Export trees as programs, formulas and tables.

Each form makes the tests of the prediction kernel in the same order.
"""
