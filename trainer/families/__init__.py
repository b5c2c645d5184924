"""Families of methods; one family uses another only through `trainer.solver_common.cross_family`."""
