"""Build the scikit-learn classifier of each method from the method's declaration.

`make_classifier("bivariate", depth=3)` equals `BivariateTreeClassifier(depth=3)`. Constructor arguments are the declared
parameters; `fit` checks them, as scikit-learn requires.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from trainer.certificate import Certificate
from trainer.counts.folder import read_counts
from trainer.counts.train import METHOD as COUNTED
from trainer.counts.train import train_counts
from trainer.data.costs import EACH_ROW
from trainer.data.inspection import mark_identifiers, tree_warnings
from trainer.data.problem import Problem
from trainer.data.row_weights import weights_in_steps
from trainer.dtypes import CodeArray, FloatArray
from trainer.editing.bench import Bench
from trainer.errors import ParameterError, list_names
from trainer.evaluate.verdict import TreeVerdict, read_verdict, training_base_words
from trainer.methods.base import Method, Parameter, Settings
from trainer.registry import METHODS, get
from trainer.sklearn_api.argument_names import SKLEARN_NAMES, translate_names
from trainer.sklearn_api.estimator_input import (
    MISSING_HELP,
    UNKNOWN_HELP,
    apply_policy,
    read_groups,
    read_row_costs,
    read_rows,
    read_table,
    refuse_empty,
    typed_labels,
    unknown_policy,
    warn_of_changed_forms,
)
from trainer.sklearn_api.fitted_tree import FittedTree
from trainer.sklearn_api.notebook import watch_training
from trainer.sklearn_api.saving import CountedFit, FitRecord, fitted_file, save_counted, save_fitted, target_name
from trainer.solver_common.problem_setup import limits_of, pose, searched_settings
from trainer.table import ClassType, Labels, RowWeights, with_unknown
from trainer.training.claims import claim_words, cost_sentence, goal_sentence, limit_warning, price_sentence
from trainer.training.run import fit as run_fit
from trainer.training.size_choice import settle_size
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree
from trainer.tree.render.html import tree_html
from trainer.workbench.requests import bench_of

# parameters that every classifier has in addition to its method's
COMMON_DEFAULTS = {"missing": "learn", "unknown": "warn"}


class TreeClassifier(FittedTree, ClassifierMixin, BaseEstimator):
    """Base class of the classifiers; each subclass adds a constructor with the parameters of its method.

    Attributes
    ----------
    tree_ : Tree
        The fitted tree.
    certificate_ : Certificate
        Objective, bound, gap, status, seconds, nodes and cuts of the search.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : object array of shape (n_features_in_,)
        Column names of X, if it was a data frame with text as column names.
    sizes_ : list of dict
        The numbers of leaves among which `fit` chose, as in the member `sizes` of the model file (docs/model-file.md).
        Empty if the parameters state the leaf penalty.
    """

    _method: Method

    classes_: np.ndarray
    n_features_in_: int
    tree_: Tree
    certificate_: Certificate
    sizes_: list[dict[str, Any]]
    _fitted: ModelFile
    _search: FitRecord | None
    _counted: CountedFit | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None, groups: Any = None) -> Self:
        """Train a tree on rows and labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, p)
            Numbers; in a data frame, columns may also hold text. A sparse matrix is read as an array.
        y : array of shape (n,)
            Labels.
        sample_weight : array of shape (n,), optional
            Row weights. Integers and decimals with a small common denominator are exact. Others are rounded to integers
            that add up to 2^28; objective and bound then hold for the given weights up to
            `certificate_.weight_error`, a proved number. With costs, the
            cost of a row is multiplied by its weight. Rows of weight 0 are left out. `class_weight`, where a method has it,
            may be a dictionary from labels to factors of these weights.
        costs : float array of shape (n, n_classes), str or dict, optional
            Cost of each answer in each row, in the order of the sorted labels, or a value of the parameter `costs`. The
            search minimises the cost. The model file lists the array for `verify`.
        groups : array of shape (n,), optional
            Group of each row, such as a person. Folds inside the training never split a group. A missing value is a group
            of its own.

        Returns
        -------
        TreeClassifier
            This estimator.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If a limit on time or memory ends the search with a gap, or with splits that are not proved.
        UserWarning
            If the tree uses a column that names or counts the rows, or if classes look alike, such as Yes and yes.
        """
        problem, settings = self._problem(X, y, sample_weight, costs, groups)
        with watch_training(self._method.id, limits_of(settings)) as monitor:
            problem, settings, size = settle_size(self._method, problem, settings, monitor)
            tree, self.certificate_, solution = run_fit(self._method, problem, settings, monitor)
        self.sizes_ = size.get("tried", [])
        tree = mark_identifiers(tree, problem.table)
        fitted = fitted_file(self._method, tree, problem, settings, weighted=problem.table.weights is not None)
        self._fitted = replace(fitted, sizes=size or None)
        self.tree_ = fitted.tree  # unlike `tree`, this one has the training range of each column
        self._counted = None
        self._search = FitRecord(method=self._method, problem=problem, settings=settings, solution=solution)
        if message := limit_warning(self.certificate_, limits_of(settings)):
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        for message in tree_warnings(self.tree_):
            warnings.warn(message, UserWarning, stacklevel=2)
        return self

    def fit_counts(self, folder: str | Path) -> Self:
        """Train on a folder of counts written by `octweb count`, without reading rows (docs/counts.md).

        Parameters
        ----------
        folder : str or Path
            The folder. Its columns become `feature_names_in_`, its classes `classes_`.

        Returns
        -------
        TreeClassifier
            This estimator.

        Raises
        ------
        ParameterError
            If the method is not `exact`, or a parameter needs rows.
        DataError
            If the folder is damaged.
        """
        if self._method.id != COUNTED:
            raise ParameterError(
                {
                    "method": f"'{self._method.id}' needs rows, and counts have none. Use the classifier of '{COUNTED}', or fit to rows."
                }
            )
        values = {p.name: getattr(self, p.name) for p in self._method.parameters}
        changed = {p.name: values[p.name] for p in self._method.parameters if values[p.name] != p.default}
        counts = read_counts(folder)
        training = train_counts(counts, changed)
        self._counted = CountedFit(counts, changed)
        self._fitted = training.model
        self._search = None
        self.sizes_ = []
        self.tree_ = training.model.tree
        self.certificate_ = training.certificate
        self.classes_ = training.model.class_values
        self.feature_names_in_ = np.array([column.name for column in self.tree_.schema], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def save(self, path: str | Path, proof: bool = False) -> None:
        """Write the model file with its certificate, for `octweb verify`.

        Parameters
        ----------
        path : str or Path
            The model file.
        proof : bool
            Whether to write the proof of the bound beside it, as "model.proof.jsonl.gz" for "model.json". If there is no
            proof, the model file states the reason, and a ModelFileWarning is issued.

        Warns
        -----
        ModelFileWarning
            If there is no proof, or if a table cannot hold a category or class, such as "NA".

        Raises
        ------
        ValueError
            If `proof` is true, and the estimator was pickled since `fit`, so that it has no search.
        """
        check_is_fitted(self)
        if proof and self._counted is not None:
            save_counted(self._counted, Path(path))
            return
        save_fitted(
            self._fitted, self.certificate_, Path(path), self._search_of("save with a proof") if proof else None
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also by scikit-learn's names, and return the estimator. Raises ValueError for unknown names."""
        parameters = self.get_params(deep=False)
        known = {name: value for name, value in params.items() if SKLEARN_NAMES.get(name, name) in parameters}
        others = {name: value for name, value in params.items() if name not in known}
        return super().set_params(**others, **translate_names(type(self).__name__, parameters, known))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"_search": None, "_counted": None} if "_search" in state else state

    def _problem(
        self, X: Any, y: Any, sample_weight: Any, costs: Any = None, groups: Any = None, edits: bool = False
    ) -> tuple[Problem, Settings]:
        """Return problem and settings of `fit`; set `classes_` and the names and number of features.

        `edits`: for a workbench, see `RowCosts.neutral`; good trees count rows (`RowCosts.even`).
        """
        parameters = self.get_params(deep=False)
        policy = parameters.pop("missing")
        unknown = unknown_policy(parameters.pop("unknown"))
        by_class = parameters.get("class_weight") if isinstance(parameters.get("class_weight"), Mapping) else None
        if "class_weight" in parameters and (by_class is not None or parameters["class_weight"] is None):
            parameters["class_weight"] = "none"
        if costs is not None:
            parameters["costs"] = _read_costs_parameter(costs, parameters.get("costs"))
        _refuse_texts(self._method, parameters)
        settings = self._method.settings(parameters)
        target = getattr(y, "name", None)
        table, y = read_table(self, X, y)
        row_costs = read_row_costs(costs, y) if settings.get("costs") == EACH_ROW and costs is not None else None
        # take all classes, because with costs a class without remaining rows may still label a leaf
        classes = np.unique(y)
        table, training_rows = apply_policy(table, policy)
        table = table.with_schema(with_unknown(table.schema, {"": unknown}))
        if groups is not None:
            table = replace(table, groups=read_groups(groups, len(training_rows)).take(training_rows))
        if not training_rows.all():
            row_costs = None if row_costs is None else row_costs[training_rows]
            y = y[training_rows]
            if sample_weight is not None:
                sample_weight = _check_sample_weight(
                    sample_weight, np.empty((len(training_rows), 1)), dtype=np.float64
                )[training_rows]
        target = target_name(target, [column.name for column in table.schema])
        check_classification_targets(y)
        if by_class is not None:
            sample_weight = _apply_class_weights(by_class, y, sample_weight, settings)
        if row_costs is None:
            classes = np.unique(y)
        weights = _row_weights(sample_weight, len(table))
        if weights is not None:
            row_costs = None if row_costs is None else row_costs[weights.counted]
            y = y[weights.counted]
            table = replace(
                table.take(weights.counted), weights=replace(weights, counted=np.ones(len(weights.values), bool))
            )
        # as in scikit-learn, a class without weight is still a class; only two-class methods require two classes with
        # weight
        self.classes_ = np.unique(y) if self._method.two_classes and len(classes) > 2 else classes
        codes = np.searchsorted(self.classes_, y)
        if self._method.two_classes and len(self.classes_) > 2:
            # scikit-learn's own tests look for the first sentence
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"it has {len(self.classes_)} classes, and the method '{self._method.id}' takes two."
            )
        labels = Labels(
            name=target,
            classes=_class_names(self.classes_),
            codes=codes.astype(np.int32),
            type=_class_type(self.classes_),
        )
        even = edits and self._method.workbench is not None and self._method.workbench.good_trees
        problem = pose(table, labels, settings, given_costs=row_costs, even=even, neutral=edits)
        return problem, settings

    @available_if(lambda self: self._method.workbench is not None)
    def workbench(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> Bench:
        """Return an editing session for this estimator's search space.

        It completes partial trees, prices constraints and counts good trees. Limits on leaves, recalls, pairs and numbers
        of columns bind completions and prices; good trees cannot be counted within them. With costs, the session counts the
        weight of copies of the rows: `Bench.cost` and `Bench.price` convert to the unit of the costs.

        Parameters
        ----------
        X, y, sample_weight, costs : array
            Rows, labels, weights and costs as in `fit`.

        Returns
        -------
        Bench
            The session. Only the classifier of `exact` counts good trees.
        """
        # work on a copy, so that the fitted state of this estimator stays
        problem, settings = clone(self)._problem(X, y, sample_weight, costs, edits=True)
        self._method.check(settings, problem.names)
        return bench_of(self._method, problem.searched, searched_settings(problem, settings))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            Rows with the columns of the training.

        Returns
        -------
        array of shape (n,)
            Labels, of the type of the training labels.
        """
        matrix = self._matrix(X)
        return self.classes_[self.tree_.predict(matrix)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on X and y, weighted by `sample_weight`."""
        return float(super().score(X, typed_labels(y), sample_weight))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class shares of the training rows in each row's leaf.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            Rows with the columns of the training.

        Returns
        -------
        float64 array of shape (n, n_classes)
            Shares in the order of `classes_`.
        """
        matrix = self._matrix(X)
        return self.tree_.predict_proba(matrix)

    def apply(self, X: Any) -> CodeArray:
        """Return the leaf of each row, int32 of shape (n,), as a node id of `tree_`."""
        matrix = self._matrix(X)
        return self.tree_.apply(matrix)

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes on each row's path from root to leaf, as a CSR indicator matrix of shape (n, n_nodes)."""
        matrix = self._matrix(X)
        paths = self.tree_.decision_path(matrix)
        visited = paths >= 0
        starts = np.concatenate(([0], np.cumsum(visited.sum(axis=1))))
        indices = paths[visited]
        shape = (len(paths), len(self.tree_.nodes))
        return csr_matrix((np.ones(len(indices), np.int64), indices, starts), shape=shape)

    @property
    def verdict_(self) -> TreeVerdict:
        """Verdict on whether the tree beats one answer for all rows, with the next step; see `trainer.evaluate.verdict`."""
        check_is_fitted(self)
        return read_verdict(replace(self._fitted, certificate=self.certificate_.to_json()))

    @property
    def feature_importances_(self) -> FloatArray:
        """Usage of each column by the training rows, float64 of shape (n_features_in_,), with sum 1.

        A split counts with its number of training rows, divided equally among its columns. All zeros for a single leaf.
        """
        check_is_fitted(self)
        weights = np.zeros(self.n_features_in_)
        for node in self.tree_.branches:
            assert node.split is not None
            columns = list(dict.fromkeys(node.split.used))
            weights[columns] += node.rows / len(columns)
        return weights / weights.sum() if weights.any() else weights

    def get_depth(self) -> int:
        """Return the depth: the largest number of splits on a path."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def _html_repr(self) -> str:
        """Return the fitted tree with its claim, for a notebook; before `fit`, scikit-learn's usual display."""
        if not hasattr(self, "tree_"):
            return str(super()._html_repr())
        certificate = self.certificate_
        tree = self.tree_
        counts = f"{certificate.correct:,} of {certificate.n:,} training rows are right"
        summary = f"{counts}, {tree.n_leaves} leaves, depth {tree.depth}. {training_base_words(tree)}"
        costs = certificate.costs
        cost = "" if costs is None else cost_sentence(costs, priced=bool(certificate.column_prices))
        goal = goal_sentence(certificate.to_json(), self._fitted.parameters)
        lines = [
            repr(self),
            claim_words(certificate.to_json()),
            certificate.scope and f"Searched: {certificate.scope}.",
            cost,
            price_sentence(certificate.to_json()),
            goal,
            summary,
        ]
        return tree_html(tree, [line for line in lines if line])

    def _matrix(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        rows = read_rows(self, X, self.tree_.schema)
        refuse_empty(rows.matrix, self.tree_)
        warn_of_changed_forms(self, X, rows, self.tree_)
        return rows.matrix

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._method.two_classes
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = False  # text needs a data frame, so an array of text is refused
        return tags


def _refuse_texts(method: Method, parameters: Mapping[str, Any]) -> None:
    """Raise ParameterError if a text was given for a number, as command lines and forms do."""
    words = {"auto": "automatic", "none": "unlimited"}
    wrong = {
        p.name: f"'{value}' is a text. Give the number itself, without quotation marks."
        for p in method.parameters
        if p.type in ("integer", "number") and isinstance(value := parameters.get(p.name), str)
        if not getattr(p, words.get(value, ""), False)
    }
    if wrong:
        raise ParameterError(wrong)


def make_classifier(method: str, **parameters: Any) -> TreeClassifier:
    """Create the classifier of a method.

    Parameters
    ----------
    method : str
        Id of the method, such as "exact" (docs/which-method.md).
    **parameters
        Constructor arguments of its class.

    Returns
    -------
    TreeClassifier
        The classifier, not fitted.

    Raises
    ------
    ParameterError
        If there is no such method or parameter.
    """
    get(method)
    cls = ESTIMATORS[method]
    declared = cls._method.parameters
    known = {*COMMON_DEFAULTS, *(p.name for p in declared)}
    unknown = [name for name in parameters if SKLEARN_NAMES.get(name, name) not in known]
    if unknown:
        names = ", ".join([*(p.name for p in declared), *COMMON_DEFAULTS])
        raise ParameterError(dict.fromkeys(unknown, f"the method '{method}' has no such parameter. It takes: {names}."))
    return cls(**parameters)


def estimator_class(method: Method) -> type[TreeClassifier]:
    """Build the class of a method; scikit-learn reads the signature of its constructor (`get_params`, `clone`, `repr`)."""
    defaults = {p.name: p.default for p in method.parameters} | COMMON_DEFAULTS
    name = method.estimator

    def __init__(self: TreeClassifier, **parameters: Any) -> None:
        for key, value in (defaults | translate_names(name, defaults, parameters)).items():
            setattr(self, key, value)

    keyword = inspect.Parameter.KEYWORD_ONLY
    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    options = [inspect.Parameter(key, keyword, default=default) for key, default in defaults.items()]
    __init__.__signature__ = inspect.Signature([self_parameter, *options])  # type: ignore[attr-defined]
    __init__.__doc__ = "Store the parameters; `fit` checks them."
    members = {"_method": method, "__init__": __init__, "__module__": __name__, "__doc__": _docstring(method)}
    return type(name, (TreeClassifier,), members)


def _docstring(method: Method) -> str:
    """Return the numpydoc text of a classifier; `docs.classifiers` copies it into the stub."""
    paragraphs = [method.summary, f"{method.claim or method.title} {method.size_hint}".strip()]
    lines = ["\n\n".join(_fill(text) for text in paragraphs), "", "Parameters", "----------"]
    for p in method.parameters:
        lines += [f"{p.name} : {_type_words(p)}, default {p.default!r}", _fill(p.help, indent="    ")]
    lines += [
        "missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'",
        _fill(MISSING_HELP, indent="    "),
    ]
    lines += ["unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'", _fill(UNKNOWN_HELP, indent="    ")]
    theirs = ", ".join(
        f"`{name}` for `{argument}`" for name, argument in SKLEARN_NAMES.items() if method.parameter(argument)
    )
    lines += [
        "",
        "Notes",
        "-----",
        _fill(f"Names of scikit-learn are accepted: {theirs}. `get_params` returns the names above."),
    ]
    return "\n".join([*lines, "", "References", "----------", _fill(f"{method.paper}.")])


def _type_words(parameter: Parameter) -> str:
    """Return type and range of a parameter, as numpydoc writes them."""
    if parameter.type == "choice":
        return "{" + ", ".join(map(repr, parameter.choices)) + "}"
    names = {"integer": "int", "number": "float", "boolean": "bool", "text": "str"}
    words = names[parameter.type]
    if parameter.minimum is not None and parameter.maximum is not None:
        words = f"{words} from {parameter.minimum:,.10g} to {parameter.maximum:,.10g}"
    return words + " or 'auto'" * parameter.automatic + " or None" * parameter.unlimited


def _fill(text: str, indent: str = "") -> str:
    return fill(text, width=112, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _read_costs_parameter(costs: Any, parameter: Any) -> Any:
    """Return the value of the parameter `costs` for an argument `costs` of `fit`."""
    if parameter:
        raise ParameterError({"costs": "both fit and the constructor have costs. Leave out one of them."})
    return costs if isinstance(costs, str | Mapping) else EACH_ROW


def _class_names(classes: np.ndarray) -> tuple[str, ...]:
    names = tuple(str(c) for c in classes)
    if len(set(names)) < len(names):
        raise ValueError(f"Two classes have the same text: {', '.join(sorted(names))}. Rename one of them.")
    return names


def _class_type(classes: np.ndarray) -> ClassType:
    kinds = {"b": ClassType.BOOL, "i": ClassType.INT, "u": ClassType.INT, "f": ClassType.FLOAT}
    return kinds.get(np.array(classes.tolist()).dtype.kind, ClassType.TEXT)


def _apply_class_weights(
    by_class: Mapping[Any, float], y: np.ndarray, sample_weight: Any, settings: Settings
) -> np.ndarray:
    """Return the row weights, float64 (n,), multiplied by the class weights; a class that is not named has weight 1."""
    if int(settings.get("min_leaf") or 1) > 1:
        raise ParameterError({"min_leaf": "must be 1 with class weights. Set it to 1, or leave class_weight out."})
    classes, codes = np.unique(y, return_inverse=True)
    unknown = [repr(label) for label in by_class if label not in set(classes.tolist())]
    if unknown:
        raise ParameterError(
            {
                "class_weight": f"no training row has the label {list_names(unknown)}. The labels are: {list_names([repr(c) for c in classes.tolist()])}."
            }
        )
    try:
        factors = np.array([float(by_class.get(label, 1)) for label in classes.tolist()])
    except (TypeError, ValueError):
        factors = np.full(len(classes), np.nan)
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ParameterError({"class_weight": "class weights must be finite and not negative."})
    row_weights = _check_sample_weight(sample_weight, np.empty((len(y), 1)), dtype=np.float64, ensure_non_negative=True)
    return row_weights * factors[codes]


def _row_weights(sample_weight: Any, n: int) -> RowWeights | None:
    """Return the weights in steps, or None if there are none."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Every sample weight is 0, so there is no row to train on. Give some rows a positive weight.")
    return weights_in_steps(weights)


ESTIMATORS: dict[str, type[TreeClassifier]] = {method.id: estimator_class(method) for method in METHODS}
_BY_NAME = {cls.__name__: cls for cls in ESTIMATORS.values()}


def __getattr__(name: str) -> Any:
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
