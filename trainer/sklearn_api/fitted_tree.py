"""Add rules, pictures, explanations, exports, proofs and editing to fitted classifiers."""

from __future__ import annotations

import math
import tempfile
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from trainer.certificate import Certificate
from trainer.check.recount import Finding, verify
from trainer.convert.sklearn import to_sklearn
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.editing.bench import Alternative, Bench
from trainer.explain.flip import Flipper
from trainer.explain.permission import permissions
from trainer.explain.record import explain_row
from trainer.explain.statistics import statistics_of_model
from trainer.families.exact.stability import Change, Stability
from trainer.methods.base import Method, Settings
from trainer.sklearn_api.saving import PROOF_ENDING, FitRecord, save_fitted, write_rows
from trainer.solver_common.problem_setup import searched_settings
from trainer.table import Labels, Table
from trainer.tree.describe import rules_text
from trainer.tree.export.forms import export
from trainer.tree.file import ModelFile, write_atomically
from trainer.tree.nodes import Tree
from trainer.workbench.requests import bench_of
from trainer.workbench.stability import stability_of


class FittedTree:
    """Mixin with the methods of classifiers that have a fitted `tree_`."""

    classes_: np.ndarray
    tree_: Tree
    certificate_: Certificate
    _fitted: ModelFile
    _method: Method
    _search: FitRecord | None

    @abstractmethod
    def _problem(
        self, X: Any, y: Any, sample_weight: Any, costs: Any = None, groups: Any = None, edits: bool = False
    ) -> tuple[Problem, Settings]:
        """Return problem, settings and rounded weights of `fit`."""

    @abstractmethod
    def _matrix(self, X: Any) -> FloatArray:
        """Return the rows of X as the tree reads them, float64 (n, columns)."""

    def rules(self) -> str:
        """Return the tree as text: one line per split or leaf, with the training rows, or weights, of each leaf."""
        check_is_fitted(self)
        certificate = getattr(self, "certificate_", None)  # a loaded file may claim nothing
        return rules_text(self.tree_, None if certificate is None else certificate.to_json())

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
            If `wanted` is not a label of the training.
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
            whose names are not Python identifiers.

        Returns
        -------
        list of dict or None
            The members `flip` of `explain`; None if no permitted change leads to such an answer.

        Raises
        ------
        ValueError
            If `wanted` is not a label of the training.
        ParameterError
            If `permitted` names an unknown column, or a change that the column cannot take.
        """
        return [record.get("flip") for record in self.explain(X, wanted=wanted, change=permitted)]

    def to_sklearn(self) -> DecisionTreeClassifier:
        """Return the tree as a fitted `sklearn.tree.DecisionTreeClassifier`, for tools such as SHAP, dtreeviz
        and `plot_tree`.

        Returns
        -------
        DecisionTreeClassifier
            It reads X in single precision: a value within about 1e-7 of its size from a threshold may take the other side.

        Raises
        ------
        ConversionError
            If a split uses several columns or tests categories, or an empty cell is refused, which scikit-learn's trees cannot do.
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

    def verify(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> list[Finding]:
        """Let the independent checker judge every claim about the tree on its training rows.

        Parameters
        ----------
        X, y, sample_weight, costs : array
            The arguments of `fit`.

        Returns
        -------
        list of Finding
            One for each claim; `trainer.check.recount.verdict` gives the verdict on all of them.

        Raises
        ------
        ValueError, DataError
            If the rows cannot be read.
        """
        check_is_fitted(self)
        problem, _ = clone(self)._problem(X, y, sample_weight, costs)
        return self._check(problem.table, problem.labels, None)

    def prove(self, path: str | Path | None = None) -> list[Finding]:
        """Write the proof of the bound, and let the independent checker judge it and all other claims on the training rows.

        Parameters
        ----------
        path : str or Path, optional
            The proof is written to this file, for `octweb verify --proof`.

        Returns
        -------
        list of Finding
            One for each claim, as `verify` returns them.

        Raises
        ------
        ValueError
            If the estimator was pickled, loaded or fitted to counts, so that it has no search.

        Warns
        -----
        ModelFileWarning
            If there is no proof, with the reason.
        """
        search = self._search_of("prove")
        return self._check(search.problem.table, search.problem.labels, search, path)

    @available_if(lambda self: self._method.workbench is not None)
    def edit(self) -> Bench:
        """Return an editing session over the training rows, as `workbench` does from rows.

        Returns
        -------
        Bench
            It completes partial trees and prices constraints.

        Raises
        ------
        ValueError
            If the estimator was pickled, loaded or fitted to counts, or has costs: then call `workbench` with the rows.
        """
        search = self._search_of("edit")
        if search.problem.costs is not None:
            raise ValueError("A session with costs needs the rows. Call workbench(X, y, costs=...).")
        self._method.check(search.settings, search.problem.names)
        return bench_of(self._method, search.problem.searched, searched_settings(search.problem, search.settings))

    @available_if(lambda self: self._method.workbench is not None and self._method.workbench.good_trees)
    def good_trees(self, **choice: Any) -> Any:
        """Count all trees that are nearly as good as the best one: `edit().good_trees(...)`.

        Parameters
        ----------
        **choice
            The arguments of `Workbench.good_trees`: ``slack``, ``slack_rows``, filters and limits.

        Returns
        -------
        GoodTrees
            Counts, the trees in order of cost, and the use of columns.
        """
        bench: Any = self.edit()
        return bench.good_trees(**choice)

    @available_if(lambda self: self._method.workbench is not None)
    def alternatives(self, node: int = 0, *, time_limit: float | None = None) -> list[Alternative]:
        """Return each possible split of a node with its price, the cheapest first.

        Parameters
        ----------
        node : int
            The id of a node of `tree_`, by default the root. The splits above it stay.
        time_limit : float, optional
            In seconds; prices that are not proved by then are lower bounds.

        Returns
        -------
        list of Alternative

        Raises
        ------
        ValueError
            If the tree has no such node, or as for `edit`.
        """
        if not 0 <= node < len(self.tree_.nodes):
            raise ValueError(f"node: the tree has no node {node}. Its nodes are 0 to {len(self.tree_.nodes) - 1}.")
        return list(self.edit().alternatives(self.tree_, node, time_limit=time_limit))

    @available_if(lambda self: self._method.workbench is not None and self._method.workbench.good_trees)
    def stability(
        self,
        scope: Literal["root", "tree"] = "root",
        *,
        row: int | None = None,
        change: Change = "remove",
        time_limit: float | None = None,
    ) -> Stability:
        """Certify how many training rows must change before another tree is as good as this one.

        Parameters
        ----------
        scope : str
            Which tree counts as another: "root" (another first split), or "tree" (another answer for a training row).
        row : int, optional
            The position of a training row. Then the trees with another answer for it count, whatever `scope` is.
        change : str
            Whether rows are removed or relabelled: "remove" or "relabel".
        time_limit : float, optional
            In seconds.

        Returns
        -------
        Stability
            The bounds, equal if the number is known, and rows that are enough.

        Raises
        ------
        ValueError
            If the training has no such row, or as for `edit`.
        ParameterError
            If a parameter of the training is not supported.
        DataError
            If the tree is not optimal.
        """
        search = self._search_of("stability")
        table = search.problem.table
        if row is not None and not 0 <= row < len(table):
            raise ValueError(f"row: the training has no row {row}. Its rows are 0 to {len(table) - 1}.")
        end = math.inf if time_limit is None else time.monotonic() + time_limit
        return stability_of(
            self._method,
            search.problem,
            search.settings,
            self.tree_,
            scope=scope,
            row=None if row is None else table.take(np.array([row])),
            change=change,
            stop=lambda: time.monotonic() > end,
        )

    def _search_of(self, use: str) -> FitRecord:
        check_is_fitted(self)
        if self._search is None:
            raise ValueError(
                f"This estimator has no search for '{use}': it was pickled, loaded, or fitted to counts. Fit it again."
            )
        return self._search

    def _check(
        self, table: Table, labels: Labels, search: FitRecord | None, keep: str | Path | None = None
    ) -> list[Finding]:
        """Return the findings of the checker about the model file that `save` would write."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            save_fitted(self._fitted, self.certificate_, path, search)
            proof = path.with_name(f"model.{PROOF_ENDING}")
            if keep is not None and proof.exists():
                write_atomically(Path(keep), proof.read_bytes())
            rows = write_rows(table, replace(labels, name=self._fitted.target), Path(folder) / "rows.parquet")
            return verify(path, rows, proof if proof.exists() else None)
