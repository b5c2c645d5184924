"""Build the dossier that auditors read about a model.

It is computed from the model file, its rows and its proof.
"""

from trainer.dossier.bootstraps import DossierLimits
from trainer.dossier.facts import FORMAT, FORMAT_VERSION, dossier

__all__ = ["FORMAT", "FORMAT_VERSION", "DossierLimits", "dossier"]
