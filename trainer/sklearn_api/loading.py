"""Create fitted classifiers from model files."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from trainer.certificate import Certificate, Guarantee, Status
from trainer.errors import ModelFileError
from trainer.evaluate.verdict import TreeVerdict, read_verdict
from trainer.methods.base import Method
from trainer.sklearn_api.estimators import COMMON_DEFAULTS, ESTIMATORS, TreeClassifier
from trainer.table import ColumnKind, UnknownPolicy
from trainer.tree.file import ModelFile, read_model, write
from trainer.tree.nodes import Tree

STRICTEST_FIRST = (UnknownPolicy.REFUSE, UnknownPolicy.WARN, UnknownPolicy.BRANCH)
NO_CLAIM = "The file states no claim. Its leaves state how many training rows are right."


def _refuse_to_train(*_: Any) -> NoReturn:
    raise ValueError(
        "This tree was read from a file and cannot train. Use the classifier of a method: make_classifier."
    )


READ_ONLY = Method(
    id="saved",
    title="A saved tree",
    summary="A tree of a model file that no method of octweb has trained: imported, drawn by hand or without a claim.",
    paper="",
    guarantee=Guarantee.HEURISTIC,
    splits=(),
    parameters=(),
    solve=_refuse_to_train,
)


class SavedTreeClassifier(TreeClassifier):
    """A classifier of a saved tree that cannot train: it predicts, explains, plots, exports and saves.

    `fit`, `verify`, `prove` and `edit` need the method of the training, which the file does not have.
    """

    _method = READ_ONLY

    def __init__(self, *, missing: Any = COMMON_DEFAULTS["missing"], unknown: Any = COMMON_DEFAULTS["unknown"]) -> None:
        self.missing = missing
        self.unknown = unknown

    def fit(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None, groups: Any = None) -> Self:
        """Raise ValueError: a saved tree cannot train."""
        _refuse_to_train()

    def verify(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> NoReturn:
        """Raise ValueError; the message names the command that checks a file."""
        raise ValueError(
            "The file does not state how this tree was trained, so the rows cannot be read in the same way. Run: octweb verify MODEL.json DATA"
        )

    def save(self, path: str | Path, proof: bool = False) -> None:
        """Write the model file as it was read. Raises ValueError if `proof` is true."""
        if proof:
            self._search_of("save with a proof")
        write(self._fitted, path)

    @property
    def verdict_(self) -> TreeVerdict:
        """Verdict on whether the tree beats one answer for all rows, with the next step."""
        return read_verdict(self._fitted)


def load(path: str | Path) -> TreeClassifier:
    """Load a model file as a fitted classifier with its certificate.

    It predicts, explains, exports, verifies and saves like the classifier that was fitted. Proofs and editing sessions need a search,
    so they need another `fit`.

    Parameters
    ----------
    path : str or Path
        A model file of octweb, of this or an earlier version.

    Returns
    -------
    TreeClassifier
        Of the class of its method, with the parameters of the training. A tree that no method has trained, or without a
        claim, comes as a classifier that only reads. It predicts, explains, plots, exports and saves.

    Raises
    ------
    ModelFileError
        If the file is not a model file, or its certificate is damaged.
    """
    model = read_model(path)
    if model.method in ESTIMATORS and model.certificate:
        estimator = ESTIMATORS[model.method]()
        known = {p.name for p in estimator._method.parameters}
        estimator.set_params(**{name: value for name, value in model.parameters.items() if name in known})
    else:
        estimator = SavedTreeClassifier()
    if policies := {c.unknown for c in model.tree.schema if c.kind is ColumnKind.CATEGORICAL}:
        # the columns keep their own policies until `unknown` is set
        estimator._loaded_unknown = str(min(policies, key=STRICTEST_FIRST.index))
        estimator.set_params(unknown=estimator._loaded_unknown)
    estimator._fitted = model
    estimator._search = None
    estimator.tree_ = model.tree
    estimator.certificate_ = _certificate(model) if model.certificate else _counted(model.tree, model.method)
    estimator.classes_ = model.class_values
    estimator.sizes_ = list((model.sizes or {}).get("tried", []))
    names = [column.name for column in model.tree.schema]
    estimator.n_features_in_ = len(names)
    if names != [f"x{j}" for j in range(len(names))]:  # these names mean that the training array had no column names
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def _counted(tree: Tree, method: str) -> Certificate:
    """Return the certificate of a tree without a claim, with the training rows that its leaves state."""
    n = tree.nodes[0].rows
    correct = sum(int(node.counts[tree.labels[node.id]]) for node in tree.nodes if node.is_leaf)
    return Certificate(
        method=method,
        guarantee=Guarantee.HEURISTIC,
        status=Status.HEURISTIC,
        objective=correct / n if n else 0.0,
        correct=correct,
        n=n,
        leaves=tree.n_leaves,
        depth=tree.depth,
        note=NO_CLAIM,
    )


def _certificate(model: ModelFile) -> Certificate:
    record = {f.name: model.certificate[f.name] for f in fields(Certificate) if f.name in model.certificate}
    try:
        record |= {"guarantee": Guarantee(record["guarantee"]), "status": Status(record["status"])}
        return Certificate(**record | {"evidence": tuple(record.get("evidence", ()))})
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"The certificate of the model file is damaged, or of a later version: {error}. Export the file again, or update octweb."
        ) from error
