"""The workbench of the exact search: the best tree under edit constraints, with prices."""
