"""The families of methods. None imports another; what one takes from another comes through `trainer.borrowed`."""
