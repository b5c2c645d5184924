"""The workbench of `odt`: wishes with prices and proofs over subsets of categories."""
