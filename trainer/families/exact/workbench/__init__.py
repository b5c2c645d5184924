"""The workbench: wishes with prices and proofs, and all good trees counted, over the questions of the exact search."""
