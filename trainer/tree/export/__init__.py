"""A tree as a program in other languages, and as tables: the tests of the prediction kernel in the same order, leaf by leaf."""
