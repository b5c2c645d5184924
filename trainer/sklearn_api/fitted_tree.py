"""Rules, picture, explanations and exports of a fitted classifier."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from trainer.convert.sklearn import to_sklearn
from trainer.dtypes import FloatArray
from trainer.explain.flip import Flipper
from trainer.explain.permission import permissions
from trainer.explain.record import explain_row
from trainer.explain.statistics import statistics_of_model
from trainer.tree.describe import rules_text
from trainer.tree.export.forms import export
from trainer.tree.file import ModelFile, write_atomically
from trainer.tree.nodes import Tree


class FittedTree:
    """Methods of a classifier with a fitted `tree_`."""

    classes_: np.ndarray
    tree_: Tree
    _fitted: ModelFile

    @abstractmethod
    def _matrix(self, X: Any) -> FloatArray:
        """Return the rows of X as the tree reads them, float64 (n, columns)."""

    def rules(self) -> str:
        """Return the tree as text: one line per split or leaf, with the training rows of each leaf."""
        check_is_fitted(self)
        return rules_text(self.tree_)

    def plot(self, *, width: float = 1100.0, height: float = 700.0) -> Any:
        """Return the tree as a `plotly.graph_objects.Figure`.

        Parameters
        ----------
        width, height : float
            Size in pixels. Subtrees that would be too small to read start closed.
        """
        check_is_fitted(self)
        return self.tree_.plot(width=width, height=height)

    def explain(self, X: Any, *, wanted: Any = None, change: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Explain the prediction of each row of X, with the smallest change that leads to another one.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            Rows as for `predict`.
        wanted : label, optional
            The answer that the change leads to; by default any other one.
        change : mapping from str to str or list, optional
            Allowed changes by column: "free", "up", "down", "whole", "never", several of them separated by commas, or a
            list of categories.

        Returns
        -------
        list of dict
            The records of `octweb explain --json` (docs/explain.md): `label`, `leaf`, `probabilities`, `path`, and
            `flip`, or `no_flip` with the reason. Changes are measured by the steps and units of `tree_`. Labels are texts.

        Raises
        ------
        ValueError
            If `wanted` is no label of the training.
        ParameterError
            If `change` names an unknown column, or a change that the column cannot take.
        """
        matrix = self._matrix(X)
        code = None if wanted is None else np.flatnonzero(self.classes_ == wanted)
        if code is not None and not len(code):
            raise ValueError(
                f"wanted: {wanted!r} is not a class. The classes are: {', '.join(map(str, self.classes_))}."
            )
        allowed = permissions(self.tree_.schema, change or {})
        flipper = Flipper(self.tree_, statistics_of_model(self.tree_), allowed)
        return [explain_row(flipper, row, i, None if code is None else int(code[0])) for i, row in enumerate(matrix)]

    def flip(self, X: Any, *, wanted: Any = None, **permitted: Any) -> list[dict[str, Any] | None]:
        """Return the smallest change of each row of X that leads to another answer.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            Rows as for `predict`.
        wanted : label, optional
            The answer that the change leads to; by default any other one.
        **permitted : str or list
            Permitted changes by column, as in `explain`: ``tree.flip(X, age="never", income="up")``. `explain` also takes columns
            whose names are no names of Python.

        Returns
        -------
        list of dict or None
            The members `flip` of `explain`; None if no permitted change leads to such an answer.

        Raises
        ------
        ValueError
            If `wanted` is no label of the training.
        ParameterError
            If `permitted` names an unknown column, or a change that the column cannot take.
        """
        return [record.get("flip") for record in self.explain(X, wanted=wanted, change=permitted)]

    def to_sklearn(self) -> DecisionTreeClassifier:
        """Return the tree as a fitted `sklearn.tree.DecisionTreeClassifier`, for tools such as SHAP, dtreeviz and `plot_tree`.

        Returns
        -------
        DecisionTreeClassifier
            It reads X in single precision: a value within about 1e-7 of its size from a threshold may take the other side.

        Raises
        ------
        ConversionError
            If a split weighs several columns or tests categories, or an empty cell is refused, which scikit-learn's trees cannot do.
        """
        check_is_fitted(self)
        return to_sklearn(self.tree_, self.classes_, getattr(self, "feature_names_in_", None))

    def export(self, form: str, path: str | Path | None = None) -> str | bytes:
        """Export the tree as a program or table.

        Parameters
        ----------
        form : str
            One of rules, python, sql, javascript, c, java, r, excel, onnx, pmml and dmn (docs/exports.md).
        path : str or Path, optional
            Also write it to this file.

        Returns
        -------
        str or bytes
            The exported tree; bytes for binary forms such as onnx.

        Raises
        ------
        ParameterError
            If there is no such form, or if the form cannot hold the tree.
        """
        check_is_fitted(self)
        content = export(self._fitted, form, f"A tree for {self._fitted.target}")
        if path is not None:
            write_atomically(Path(path), content.encode() if isinstance(content, str) else content)
        return content
