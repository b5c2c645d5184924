"""What a fitted classifier says about its tree: rules, a picture, reasons for an answer, and the tree in other forms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trainer.dtypes import FloatArray
from trainer.explain.flip import Flipper
from trainer.explain.permission import permissions
from trainer.explain.record import explained
from trainer.explain.statistics import statistics_of_model
from trainer.tree.describe import rules_text
from trainer.tree.export.forms import export
from trainer.tree.file import ModelFile, write_atomically
from trainer.tree.nodes import Tree


class FittedTree:
    """Methods of a classifier that has `tree_`."""

    classes_: np.ndarray
    tree_: Tree
    _fitted: ModelFile

    @abstractmethod
    def _matrix(self, X: Any) -> FloatArray:
        """Return rows as the tree reads them, float64 (n, columns)."""

    def rules(self) -> str:
        """Return the questions and answers of the tree in words, one line each, with the training rows of each answer."""
        check_is_fitted(self)
        return rules_text(self.tree_)

    def plot(self, *, width: float = 1100.0, height: float = 700.0) -> Any:
        """Return the tree as a `plotly.graph_objects.Figure`, as much of it open as can be read in so many pixels."""
        check_is_fitted(self)
        return self.tree_.plot(width=width, height=height)

    def explain(self, X: Any, *, wanted: Any = None, change: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return for each row of X its answer with the way to it, and the smallest change that gives another one.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            Rows as for `predict`.
        wanted : label, optional
            The answer that the change leads to; by default any other one.
        change : mapping from str to str or list, optional
            By column what may change: "free", "up", "down", "whole", "never", several with commas, or a list of categories.

        Returns
        -------
        list of dict
            The records of `octweb explain --json` (docs/explain.md): `label`, `leaf`, `probabilities`, `path`, and `flip`, or `no_flip` with the
            reason why there is none. Changes are measured by the steps and units of `tree_`. Labels are texts.

        Raises
        ------
        ValueError
            If `wanted` is no label of the training.
        ParameterError
            If `change` names no column, or says what the column cannot take.
        """
        matrix = self._matrix(X)
        code = None if wanted is None else np.flatnonzero(self.classes_ == wanted)
        if code is not None and not len(code):
            raise ValueError(f"wanted: {wanted!r} is no class. The classes are: {', '.join(map(str, self.classes_))}.")
        allowed = permissions(self.tree_.schema, change or {})
        flipper = Flipper(self.tree_, statistics_of_model(self.tree_), allowed)
        return [explained(flipper, row, i, None if code is None else int(code[0])) for i, row in enumerate(matrix)]

    def export(self, form: str, path: str | Path | None = None) -> str | bytes:
        """Return the tree as a program or table, and write it to a file.

        Parameters
        ----------
        form : str
            One of rules, python, sql, javascript, c, java, r, excel, onnx, pmml and dmn (docs/exports.md).
        path : str or Path, optional
            The file. None: nothing is written.

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
