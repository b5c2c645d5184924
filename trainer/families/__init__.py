"""The families of methods. None imports another; what one takes from another comes through `trainer.solver_common.cross_family`."""
