"""CART as baseline: scikit-learn's greedy Gini tree with minimal cost-complexity pruning, translated to our tree.

Breiman, Friedman, Olshen & Stone (1984). Nothing is claimed about how close the tree is to the best one.
"""

from __future__ import annotations

import numpy as np

from trainer.certificate import Guarantee
from trainer.data.encoding import Encoding, Test
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.lazy_import import defer
from trainer.methods.base import COMMON, DEPTH, LEAF_PENALTY, MIN_LEAF, Method, Parameter, Settings, Solution, having
from trainer.monitor import Monitor
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf
from trainer.tree.splits import Subset, Threshold


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Grow and prune; `pruning` is the complexity α in training error rate per leaf, or chosen by cross-validation."""
    # scikit-learn takes more than a second to import, most of it for statistics and neighbours that no tree needs
    defer("scipy.stats")
    import sklearn

    defer("sklearn.neighbors")
    from sklearn.tree import DecisionTreeClassifier

    monitor.report(phase="grow")
    encoding = problem.numeric
    X, y = encoding.matrix(problem.table), problem.y
    if X.shape[1] == 0 or len(np.unique(y)) < 2:
        return Solution(draft=DraftLeaf(), solver="scikit-learn", solver_version=sklearn.__version__)
    options = {
        "max_depth": settings["depth"] or None,
        # scikit-learn's `min_samples_leaf` counts rows and not their weights; just less, for its rounding
        "min_weight_fraction_leaf": (settings["min_leaf"] - 1e-3) / problem.n,
        "criterion": settings["impurity"],
        "random_state": settings["seed"],
    }
    if settings["depth"] == 0 or 2 * settings["min_leaf"] > problem.n:
        return Solution(draft=DraftLeaf(), solver="scikit-learn", solver_version=sklearn.__version__)
    alpha = _alpha(settings["pruning"])
    if alpha is None:
        monitor.report(phase="choose pruning")
        alpha = _choose_alpha(X, y, problem, options, settings["pruning_folds"], settings["seed"])
    model = DecisionTreeClassifier(**options, ccp_alpha=alpha)
    model.fit(X, y, sample_weight=problem.row_weights)
    return Solution(
        draft=_translate(model, encoding, problem.n_classes, X),
        nodes=int(model.tree_.node_count),
        encoded_features=X.shape[1],
        solver="scikit-learn",
        solver_version=sklearn.__version__,
        evidence=({"kind": "heuristic", "pruning_alpha": alpha},),
    )


def _alpha(text: str) -> float | None:
    if text == "cross-validation":
        return None
    try:
        alpha = float(text)
    except ValueError:
        alpha = -1.0
    if not 0 <= alpha <= 1:
        raise ParameterError({"pruning": f"'{text}' is neither 'cross-validation' nor a number from 0 to 1."})
    return alpha


def _choose_alpha(X: np.ndarray, y: np.ndarray, problem: Problem, options: dict, folds: int, seed: int) -> float:
    """α at the geometric means of the pruning path, smallest mean error, ties to the smaller tree (Breiman et al.)."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier

    weights = problem.row_weights
    path = DecisionTreeClassifier(**options).cost_complexity_pruning_path(X, y, sample_weight=weights).ccp_alphas
    grid = np.sqrt(np.maximum(path[:-1], 0) * np.maximum(path[1:], 0)) if len(path) > 1 else np.zeros(1)
    folds = min(folds, int(np.bincount(y)[np.bincount(y) > 0].min()))
    if folds < 2:
        return float(grid[0])
    wrong = np.zeros(len(grid))
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y):
        for g, alpha in enumerate(grid):
            fold = DecisionTreeClassifier(**options, ccp_alpha=float(alpha))
            fold.fit(X[train], y[train], sample_weight=weights[train])
            wrong[g] += weights[test][fold.predict(X[test]) != y[test]].sum()
    return float(grid[np.flatnonzero(wrong == wrong.min())[-1]])


def _translate(model: object, encoding: Encoding, n_classes: int, X: np.ndarray) -> Draft:
    """scikit-learn's tree as a draft; it compares float32 values, so thresholds are moved between the float64 values."""
    tree = model.tree_  # type: ignore[attr-defined]

    def visit(v: int, rows: np.ndarray) -> Draft:
        if tree.children_left[v] < 0:
            return DraftLeaf()
        h, cut = int(tree.feature[v]), float(tree.threshold[v])
        feature = encoding.features[h]
        values = X[rows, h]
        left = values.astype(np.float32) <= cut
        low, high = visit(tree.children_left[v], rows[left]), visit(tree.children_right[v], rows[~left])
        if feature.test is Test.LEVEL:
            return DraftBranch(split=Subset(feature=feature.column, codes=(feature.level,)), left=high, right=low)
        if not left.all() and left.any():
            below, above = float(values[left].max()), float(values[~left].min())
            if not below <= cut < above:
                cut = below + (above - below) / 2
        return DraftBranch(split=Threshold(feature=feature.column, threshold=cut), left=low, right=high)

    return visit(0, np.arange(len(X)))


METHOD = Method(
    id="cart",
    title="CART",
    summary="The classic greedy tree: at each step the one question that separates the classes best.",
    paper="Breiman, Friedman, Olshen & Stone (1984)",
    guarantee=Guarantee.HEURISTIC,
    splits=("threshold", "subset"),
    size_hint="Millions of rows, hundreds of columns, in seconds.",
    claim="Heuristic: built step by step, nothing is proved.",
    parameters=(
        having(DEPTH, default=4),
        having(LEAF_PENALTY, advanced=True),
        MIN_LEAF,
        Parameter(
            name="pruning", type="text", default="0", label="Pruning",
            help="Cost-complexity α: training error rate that a leaf must save. 0 keeps the tree, "
            "'cross-validation' chooses α.",
        ),
        Parameter(
            name="pruning_folds", type="integer", default=5, minimum=2, maximum=50, label="Pruning folds",
            help="Folds of the cross-validation that chooses α.", advanced=True,
        ),
        Parameter(
            name="impurity", type="choice", default="gini", choices=("gini", "entropy"), label="Impurity",
            help="What a split lowers.", advanced=True,
        ),
        *COMMON,
    ),
    solve=solve,
)  # fmt: skip
