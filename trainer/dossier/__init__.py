"""The dossier of a model: everything that an auditor reads about it, worked out from the model file, its rows and its proof."""

from trainer.dossier.facts import FORMAT, FORMAT_VERSION, dossier

__all__ = ["FORMAT", "FORMAT_VERSION", "dossier"]
