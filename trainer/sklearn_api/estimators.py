"""One scikit-learn classifier per method, made from the method's declaration.

`make_classifier("bivariate", depth=3)` and `BivariateTreeClassifier(depth=3)` are the same. Constructor arguments are the
declared parameters; they are checked in `fit`, as scikit-learn wants it.
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
from trainer.data.inspection import identifiers_in, tree_warnings
from trainer.data.integer_weights import WholeWeights, whole_weights
from trainer.data.problem import Problem
from trainer.dtypes import CodeArray, FloatArray
from trainer.errors import ParameterError, list_names
from trainer.evaluate.verdict import TreeVerdict, read_verdict, training_base_words
from trainer.methods.base import Method, Parameter, Settings
from trainer.registry import METHODS, get
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
from trainer.sklearn_api.notebook import watched
from trainer.sklearn_api.saving import FitRecord, fitted_file, save_fitted, target_name
from trainer.solver_common.problem_setup import limits_of, pose
from trainer.table import ClassType, Labels, with_unknown
from trainer.training.claims import claim_words, cost_sentence, goal_sentence, limit_warning, price_sentence
from trainer.training.run import fit as run_fit
from trainer.training.size_choice import settle_size
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree
from trainer.tree.render.html import tree_html
from trainer.workbench.requests import Bench, bench_of

OWN_DEFAULTS = {"missing": "learn", "unknown": "warn"}  # parameters of every classifier beside those of its method


class TreeClassifier(FittedTree, ClassifierMixin, BaseEstimator):
    """Base of the classifiers: everything but the constructor, which each method's parameters give.

    After `fit`: `tree_` (Tree), `certificate_` (Certificate: objective, bound, gap, status, seconds, nodes, cuts), `classes_`,
    `n_features_in_`, and `feature_names_in_` for data frames with text as column names.

    `sizes_` lists the numbers of leaves among which `fit` chose, as the member `sizes` of the model file does (docs/model-file.md).
    It is empty where the parameters state the leaf penalty.
    """

    _method: Method

    classes_: np.ndarray
    n_features_in_: int
    tree_: Tree
    certificate_: Certificate
    sizes_: list[dict[str, Any]]
    _fitted: ModelFile
    _search: FitRecord | None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None, groups: Any = None) -> Self:
        """Train on X (n, p), an array of numbers or a data frame, and labels y (n,).

        Integer weights count rows exactly, and so do decimals with a small common denominator. Other weights are rounded to whole
        numbers that add up to 2^28: objective and bound then hold for the weights as given up to `certificate_.weight_error`, a proved
        number (`trainer.data.integer_weights`). Rows of weight 0 are left out. Methods with `class_weight` also take a dictionary from labels
        to weights, which multiply the weights of the rows, or None; a label that does not occur is an error.

        `costs`, an array (n, classes), is what each answer costs in each row, in the order of the sorted labels. It may also be what
        the parameter `costs` takes: a text, or a dictionary. The tree of least cost is searched. The model file lists the array, so
        that `verify` counts with it.

        `groups`, n values of any kind, names the person or thing of each row. Folds inside the training, which choose a pruning or a
        topology, never split a group. A missing value is a group of its own.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If a limit on time or memory ends the search with a gap, or with splits that are not proved.
        UserWarning
            If the tree asks a column that names or counts the rows, or if classes look alike, such as Yes and yes.
        """
        problem, settings, counted = self._problem(X, y, sample_weight, costs, groups)
        with watched(self._method.id, limits_of(settings)) as monitor:
            problem, settings, size = settle_size(self._method, problem, settings, monitor)
            tree, certificate, solution = run_fit(self._method, problem, settings, monitor)
        self.sizes_ = size.get("tried", [])
        self.certificate_ = certificate if counted is None else replace(certificate, weight_error=counted.error)
        fitted = fitted_file(self._method, tree, problem, settings, weighted=counted is not None)
        self._fitted = replace(fitted, sizes=size or None)
        self.tree_ = fitted.tree  # its columns have their training range
        self._search = FitRecord(method=self._method, problem=problem, settings=settings, solution=solution)
        if message := limit_warning(self.certificate_, limits_of(settings)):
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        asked = [self.tree_.schema[j].name for j in self.tree_.used_columns]
        for message in tree_warnings(self.tree_, identifiers_in(problem.table, asked)):
            warnings.warn(message, UserWarning, stacklevel=2)
        return self

    def fit_counts(self, folder: str | Path) -> Self:
        """Train on a folder of counts that `octweb count` has written; no row is read (docs/counts.md).

        Parameters
        ----------
        folder : str or Path
            The folder. Its columns become `feature_names_in_`, its classes `classes_`.

        Raises
        ------
        ParameterError
            If the method is not `exact`, or a parameter asks for what counts do not tell.
        DataError
            If the folder is damaged.
        """
        if self._method.id != COUNTED:
            raise ParameterError({"method": f"'{self._method.id}' needs rows. From counts: {COUNTED}."})
        given = {p.name: getattr(self, p.name) for p in self._method.parameters}
        changed = {p.name: given[p.name] for p in self._method.parameters if given[p.name] != p.default}
        found = train_counts(read_counts(folder), changed)
        self._fitted = found.model
        self._search = None
        self.sizes_ = []
        self.tree_ = found.model.tree
        self.certificate_ = found.certificate
        self.classes_ = found.model.class_values
        self.feature_names_in_ = np.array([column.name for column in self.tree_.schema], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def save(self, path: str | Path, proof: bool = False) -> None:
        """Write the model file with its certificate, and the proof of its bound beside it.

        `octweb verify` reads the file, and the table of the training with the columns of the file and its target.

        Parameters
        ----------
        path : str or Path
            The model file.
        proof : bool
            Whether to write the proof to a file beside it, "model.proof.jsonl.gz" for "model.json". Where there is no proof, the model
            file says why, and a ModelFileWarning is issued.

        Warns
        -----
        ModelFileWarning
            If there is no proof, or if a table of rows cannot hold a category or class, such as "NA".

        Raises
        ------
        ValueError
            If `proof` is true for an estimator that was pickled since `fit` or fitted to counts: it has no search.
        """
        check_is_fitted(self)
        if proof and self._search is None:
            raise ValueError(
                "There is nothing to prove with: a pickled estimator does not keep its search, and counts are checked without one. "
                "Fit again, or save with proof=False."
            )
        save_fitted(self._fitted, self.certificate_, Path(path), self._search if proof else None)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"_search": None} if "_search" in state else state

    def _problem(
        self, X: Any, y: Any, sample_weight: Any, costs: Any = None, groups: Any = None
    ) -> tuple[Problem, Settings, WholeWeights | None]:
        """What `fit` trains on; sets `classes_` and the names and number of features."""
        given = self.get_params(deep=False)
        policy = given.pop("missing")
        unknown = unknown_policy(given.pop("unknown"))
        by_class = given.get("class_weight") if isinstance(given.get("class_weight"), Mapping) else None
        if "class_weight" in given and (by_class is not None or given["class_weight"] is None):
            given["class_weight"] = "none"
        if costs is not None:
            given["costs"] = _costs_parameter(costs, given.get("costs"))
        settings = self._method.settings(given)
        target = getattr(y, "name", None)
        table, y = read_table(self, X, y)
        given_costs = read_row_costs(costs, y) if settings.get("costs") == EACH_ROW and costs is not None else None
        known = np.unique(y)  # with costs, a class whose rows are all left out may still be the answer
        table, kept = apply_policy(table, policy)
        table = table.with_schema(with_unknown(table.schema, {"": unknown}))
        if groups is not None:
            table = replace(table, groups=read_groups(groups, len(kept)).take(kept))
        if not kept.all():
            given_costs = None if given_costs is None else given_costs[kept]
            y = y[kept]
            if sample_weight is not None:
                sample_weight = _check_sample_weight(sample_weight, np.empty((len(kept), 1)), dtype=np.float64)[kept]
        target = target_name(target, [column.name for column in table.schema])
        check_classification_targets(y)
        if by_class is not None:
            sample_weight = _times_class_weights(by_class, y, sample_weight, settings)
        counted = _integer_weights(sample_weight, len(table))
        if settings.get("costs"):
            _check_weights_beside_costs(sample_weight, counted)
        weights = None if counted is None else counted.weights
        if given_costs is None:
            known = np.unique(y)
        if weights is not None and (weights == 0).any():
            kept = weights > 0
            given_costs = None if given_costs is None else given_costs[kept]
            table = table.take(kept)
            y = y[kept]
            weights = weights[kept]
        # a class without weight is still one that is known, as in scikit-learn; a method of two classes needs two with weight
        self.classes_ = np.unique(y) if self._method.two_classes and len(known) > 2 else known
        codes = np.searchsorted(self.classes_, y)
        if self._method.two_classes and len(self.classes_) > 2:
            # the first sentence is the one that scikit-learn's checks look for
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
        problem = pose(table, labels, settings, weights=weights, given_costs=given_costs)
        return problem, settings, counted

    @available_if(lambda self: self._method.workbench is not None)
    def workbench(self, X: Any, y: Any, sample_weight: Any = None) -> Bench:
        """The trees of this estimator's settings on these rows, to argue with: wishes with their prices, and all good trees.

        Rows, labels and weights as in `fit`. The classifiers of `exact`, `exact-numeric` and `odt` have it; good trees are counted by the
        one of `exact` alone. Limits on leaves, recalls, pairs and numbers of columns bind completions and prices, but good trees cannot be
        counted within them. Raises ParameterError where answers have costs: `complete --cost` and the pages keep wishes at least cost.
        """
        problem, settings, _ = clone(self)._problem(X, y, sample_weight)  # what was fitted stays as it is
        if problem.costs is not None:
            words = "wishes and good trees count errors here. Leave the costs out, or use `complete --cost`."
            raise ParameterError({"costs": words})
        self._method.check(settings, problem.names)
        return bench_of(self._method, problem, settings)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, shape (n,), of the type of the training labels."""
        matrix = self._matrix(X)
        return self.classes_[self.tree_.predict(matrix)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the rows of X that get their class in y."""
        return float(super().score(X, typed_labels(y), sample_weight))

    def predict_proba(self, X: Any) -> FloatArray:
        """The class shares of the training rows in each row's leaf, shape (n, classes), in the order of `classes_`."""
        matrix = self._matrix(X)
        return self.tree_.predict_proba(matrix)

    def apply(self, X: Any) -> CodeArray:
        """The leaf that each row reaches, int32 of shape (n,): a node id of `tree_`."""
        matrix = self._matrix(X)
        return self.tree_.apply(matrix)

    def decision_path(self, X: Any) -> csr_matrix:
        """The nodes on each row's way from the root to its leaf, a CSR indicator matrix of shape (n, nodes)."""
        matrix = self._matrix(X)
        paths = self.tree_.decision_path(matrix)
        visited = paths >= 0
        starts = np.concatenate(([0], np.cumsum(visited.sum(axis=1))))
        indices = paths[visited]
        shape = (len(paths), len(self.tree_.nodes))
        return csr_matrix((np.ones(len(indices), np.int64), indices, starts), shape=shape)

    @property
    def verdict_(self) -> TreeVerdict:
        """Whether the fitted tree is better than one answer for all rows, with the next step; see `trainer.evaluate.verdict`."""
        check_is_fitted(self)
        return read_verdict(replace(self._fitted, certificate=self.certificate_.to_json()))

    @property
    def feature_importances_(self) -> FloatArray:
        """How often training rows meet each column on their way, shape (features,), adding up to 1; zeros for a single leaf.

        A split counts with the rows that reach it, in equal parts for the columns that it weighs together.
        """
        check_is_fitted(self)
        met = np.zeros(self.n_features_in_)
        for node in self.tree_.branches:
            assert node.split is not None
            columns = list(dict.fromkeys(node.split.used))
            met[columns] += node.rows / len(columns)
        return met / met.sum() if met.any() else met

    def get_depth(self) -> int:
        """The largest number of branchings on a path of the tree."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """The number of leaves of the tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def _html_repr(self) -> str:
        """What a notebook shows: the fitted tree with its claim; before `fit` what scikit-learn shows of every estimator."""
        if not hasattr(self, "tree_"):
            return str(super()._html_repr())
        said = self.certificate_
        tree = self.tree_
        right = f"{said.correct:,} of {said.n:,} training rows are right, {tree.n_leaves} leaves, depth {tree.depth}."
        right = f"{right} {training_base_words(tree)}"
        cost = "" if said.costs is None else cost_sentence(said.costs, priced=bool(said.column_prices))
        goal = goal_sentence(said.to_json(), self._fitted.parameters)
        lines = [
            repr(self),
            claim_words(said.to_json()),
            said.scope and f"Searched: {said.scope}.",
            cost,
            price_sentence(said.to_json()),
            goal,
            right,
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
        tags.input_tags.string = False  # text is read from the columns of a data frame, not from an array
        return tags


def make_classifier(method: str, **parameters: Any) -> TreeClassifier:
    """The classifier of the method with this id; raises ParameterError for an unknown method or parameter name."""
    get(method)
    cls = ESTIMATORS[method]
    known = cls._method.parameters
    unknown = [name for name in parameters if name not in OWN_DEFAULTS and cls._method.parameter(name) is None]
    if unknown:
        names = ", ".join([*(p.name for p in known), *OWN_DEFAULTS])
        raise ParameterError(dict.fromkeys(unknown, f"the method '{method}' has no such parameter. It takes: {names}."))
    return cls(**parameters)


def estimator_class(method: Method) -> type[TreeClassifier]:
    """The class of a method, with a constructor whose signature scikit-learn reads (`get_params`, `clone`, `repr`)."""
    defaults = {p.name: p.default for p in method.parameters} | OWN_DEFAULTS
    name = method.estimator

    def __init__(self: TreeClassifier, **parameters: Any) -> None:
        for unknown in parameters.keys() - defaults.keys():
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{unknown}'")
        for key, default in defaults.items():
            setattr(self, key, parameters.get(key, default))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    options = [inspect.Parameter(key, keyword, default=default) for key, default in defaults.items()]
    __init__.__signature__ = inspect.Signature([own, *options])  # type: ignore[attr-defined]
    __init__.__doc__ = "Keep the parameters as they are; `fit` checks them."
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
    return "\n".join([*lines, "", "References", "----------", _fill(f"{method.paper}.")])


def _type_words(parameter: Parameter) -> str:
    """Return type and range of a parameter, as numpydoc writes them."""
    if parameter.type == "choice":
        return "{" + ", ".join(map(repr, parameter.choices)) + "}"
    names = {"integer": "int", "number": "float", "boolean": "bool", "text": "str"}
    words = names[parameter.type]
    if parameter.minimum is not None and parameter.maximum is not None:
        words = f"{words} from {parameter.minimum:,.10g} to {parameter.maximum:,.10g}"
    return f"{words} or 'auto'" if parameter.automatic else words


def _fill(text: str, indent: str = "") -> str:
    return fill(text, width=112, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _costs_parameter(costs: Any, parameter: Any) -> Any:
    """Return what the parameter `costs` becomes where `fit` gets costs."""
    if parameter:
        raise ParameterError({"costs": "fit and the constructor both give costs. Leave one of the two out."})
    return costs if isinstance(costs, str | Mapping) else EACH_ROW


def _class_names(classes: np.ndarray) -> tuple[str, ...]:
    names = tuple(str(c) for c in classes)
    if len(set(names)) < len(names):
        raise ValueError(f"Two classes have the same text: {', '.join(sorted(names))}. Rename one of them.")
    return names


def _class_type(classes: np.ndarray) -> ClassType:
    kinds = {"b": ClassType.BOOL, "i": ClassType.INT, "u": ClassType.INT, "f": ClassType.FLOAT}
    return kinds.get(np.array(classes.tolist()).dtype.kind, ClassType.TEXT)


def _times_class_weights(
    by_class: Mapping[Any, float], y: np.ndarray, sample_weight: Any, settings: Settings
) -> np.ndarray:
    """Row weights, float64 (n,), multiplied by the weights of the classes; a class that is not named counts once."""
    if int(settings.get("min_leaf") or 1) > 1:
        raise ParameterError({"min_leaf": "leaves are counted in weights, so it must be 1 with class weights."})
    classes, codes = np.unique(y, return_inverse=True)
    unknown = [repr(label) for label in by_class if label not in set(classes.tolist())]
    if unknown:
        raise ParameterError(
            {
                "class_weight": f"no training row has the label {list_names(unknown)}; known: {list_names([repr(c) for c in classes.tolist()])}."
            }
        )
    try:
        factors = np.array([float(by_class.get(label, 1)) for label in classes.tolist()])
    except (TypeError, ValueError):
        factors = np.full(len(classes), np.nan)
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ParameterError({"class_weight": "the weights of classes must be finite numbers that are not negative."})
    own = _check_sample_weight(sample_weight, np.empty((len(y), 1)), dtype=np.float64, ensure_non_negative=True)
    return own * factors[codes]


def _check_weights_beside_costs(sample_weight: Any, counted: WholeWeights | None) -> None:
    """Raise ParameterError unless the weights are integers: others are scaled, and totals would be scaled with them."""
    if counted is not None and not (np.asarray(sample_weight, np.float64) == counted.weights).all():
        raise ParameterError(
            {"sample_weight": "weights must be whole numbers with costs. Multiply other weights into the costs."}
        )


def _integer_weights(sample_weight: Any, n: int) -> WholeWeights | None:
    """Weights as whole numbers, or None for equal weights of 1."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Every sample weight is 0: there is no row to train on.")
    return whole_weights(weights)


ESTIMATORS: dict[str, type[TreeClassifier]] = {method.id: estimator_class(method) for method in METHODS}
_BY_NAME = {cls.__name__: cls for cls in ESTIMATORS.values()}


def __getattr__(name: str) -> Any:
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
