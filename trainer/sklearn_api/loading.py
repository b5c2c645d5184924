"""Make a fitted classifier from a model file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from trainer.certificate import Certificate, Guarantee, Status
from trainer.errors import ModelFileError
from trainer.sklearn_api.estimators import ESTIMATORS, TreeClassifier
from trainer.tree.file import ModelFile, read_model


def load(path: str | Path) -> TreeClassifier:
    """Return the classifier of a model file, fitted, with its certificate.

    It predicts, explains, exports, verifies and saves like the classifier that was fitted. Proofs and editing sessions need a search,
    so they need another `fit`.

    Parameters
    ----------
    path : str or Path
        A model file of octweb, of this or an earlier version.

    Returns
    -------
    TreeClassifier
        Of the class of its method, with the parameters of the training.

    Raises
    ------
    ModelFileError
        If the file is no model file, or states no method and no claim; `Tree.load` reads such a tree.
    """
    model = read_model(path)
    if model.method not in ESTIMATORS or not model.certificate:
        method = f"the method '{model.method}'" if model.method else "no method"
        raise ModelFileError(
            f"{path} has {method} and {'a' if model.certificate else 'no'} claim, so no classifier has made it. Read its tree with Tree.load."
        )
    estimator = ESTIMATORS[model.method]()
    known = {p.name for p in estimator._method.parameters}
    estimator.set_params(**{name: value for name, value in model.parameters.items() if name in known})
    estimator._fitted = model
    estimator._search = None
    estimator.tree_ = model.tree
    estimator.certificate_ = _certificate(model)
    estimator.classes_ = model.class_values
    estimator.sizes_ = list((model.sizes or {}).get("tried", []))
    names = [column.name for column in model.tree.schema]
    estimator.n_features_in_ = len(names)
    if names != [f"x{j}" for j in range(len(names))]:  # the names of an array without names
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def _certificate(model: ModelFile) -> Certificate:
    record = {f.name: model.certificate[f.name] for f in fields(Certificate) if f.name in model.certificate}
    record |= {"guarantee": Guarantee(record["guarantee"]), "status": Status(record["status"])}
    return Certificate(**record | {"evidence": tuple(record.get("evidence", ()))})
