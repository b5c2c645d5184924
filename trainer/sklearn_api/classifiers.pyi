"""Signatures of the classifiers for editors and type checkers. Made by `python -m docs.classifiers`: do not edit."""

from collections.abc import Mapping
from typing import Any, Literal

from trainer.sklearn_api.estimators import TreeClassifier

class CartClassifier(TreeClassifier):
    """The classic greedy tree: at each step the one question that separates the classes best.

    Heuristic: the tree is built step by step, and nothing is proved. Millions of rows, hundreds of columns, in
    seconds.

    Parameters
    ----------
    depth : int from 0 to 20, default 4
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the reported objective for every leaf, to compare it with other methods. The tree does not
        depend on it; set the pruning to remove leaves that do not pay.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    pruning : str, default '0'
        Cost-complexity α: the training error rate that each leaf must save. 0 keeps the whole tree,
        'cross-validation' chooses α.
    pruning_folds : int from 2 to 50, default 5
        Number of folds of the cross-validation that chooses α.
    impurity : {'gini', 'entropy', 'error'}, default 'gini'
        The measure that a split reduces: Gini, entropy, or classification error.
    min_node : int from 2 to 1,000,000,000, default 2
        A node with fewer training rows than this becomes a leaf.
    min_gain : float from 0 to 1, default 0.0
        A split must reduce the impurity by at least this share of the training rows; 0 allows splits without gain.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Breiman, Friedman, Olshen & Stone (1984).
    """

    def __init__(
        self,
        *,
        depth: int = 4,
        leaf_penalty: float = 0.0,
        min_leaf: int = 1,
        pruning: str | Mapping[str, Any] = "0",
        pruning_folds: int = 5,
        impurity: Literal["gini", "entropy", "error"] = "gini",
        min_node: int = 2,
        min_gain: float = 0.0,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class OC1Classifier(TreeClassifier):
    """A greedy tree whose questions weigh many columns at once, found by random search.

    Heuristic: hyperplanes are found by random search, and nothing is proved. Thousands of rows, tens of columns.

    Parameters
    ----------
    depth : int from 0 to 20, default 4
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the reported objective for every leaf, to compare it with other methods. The tree does not
        depend on it; set the pruning to remove leaves that do not pay.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    pruning : str, default '0'
        Cost-complexity α: the training error rate that each leaf must save. 0 keeps the whole tree,
        'cross-validation' chooses α.
    pruning_folds : int from 2 to 50, default 5
        Number of folds of the cross-validation that chooses α.
    impurity : {'gini', 'entropy', 'error'}, default 'gini'
        The measure that a split reduces: Gini, entropy, or classification error.
    min_node : int from 2 to 1,000,000,000, default 2
        A node with fewer training rows than this becomes a leaf.
    min_gain : float from 0 to 1, default 0.0
        A split must reduce the impurity by at least this share of the training rows; 0 allows splits without gain.
    restarts : int from 0 to 1,000, default 20
        Number of random hyperplanes to start from, besides the best threshold.
    jumps : int from 0 to 1,000, default 5
        Number of random directions to try when no single coefficient improves the split.
    cycle : {'sequential', 'best', 'random'}, default 'sequential'
        Which coefficient is changed next: each in order, the one that helps most, or fifty at random.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Murthy, Kasif & Salzberg (1994).
    """

    def __init__(
        self,
        *,
        depth: int = 4,
        leaf_penalty: float = 0.0,
        min_leaf: int = 1,
        pruning: str | Mapping[str, Any] = "0",
        pruning_folds: int = 5,
        impurity: Literal["gini", "entropy", "error"] = "gini",
        min_node: int = 2,
        min_gain: float = 0.0,
        restarts: int = 20,
        jumps: int = 5,
        cycle: Literal["sequential", "best", "random"] = "sequential",
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class BivariateTreeClassifier(TreeClassifier):
    """A greedy tree whose questions compare two columns, each proved to be the best such question.

    Every split is proved optimal on at most two columns; the tree as a whole is built step by step. Tens of
    thousands of rows, tens of columns; the time grows with the square of the columns.

    Parameters
    ----------
    depth : int from 0 to 20, default 4
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the reported objective for every leaf, to compare it with other methods. The tree does not
        depend on it; set the pruning to remove leaves that do not pay.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    pruning : str, default '0'
        Cost-complexity α: the training error rate that each leaf must save. 0 keeps the whole tree,
        'cross-validation' chooses α.
    pruning_folds : int from 2 to 50, default 5
        Number of folds of the cross-validation that chooses α.
    impurity : {'gini', 'entropy', 'error'}, default 'gini'
        The measure that a split reduces: Gini, entropy, or classification error.
    min_node : int from 2 to 1,000,000,000, default 2
        A node with fewer training rows than this becomes a leaf.
    min_gain : float from 0 to 1, default 0.0
        A split must reduce the impurity by at least this share of the training rows; 0 allows splits without gain.
    split_gap : float from 0 to 0.99, default 0.0
        A split may be worse than the best one by this share of its impurity; the proved share is reported.
    split_time_limit : float from 0 to 604,800, default None
        After this time a node takes the best split found, with its bound; empty means that only the run's limit
        counts.
    bound : {'theorem4', 'paper', 'assignment'}, default 'assignment'
        'theorem4' and 'paper' (Theorems 5 and 6) are the bounds of the paper; 'assignment' is at least as strong.
    branching : {'1', '2'}, default '2'
        Where a box is divided: in the middle (1), or at the mean of the lines of its points (2).
    order : {'depth-first', 'best-first'}, default 'depth-first'
        Which box is searched next: the newest, or the one with the lowest bound.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Bollwein & Westphal.
    """

    def __init__(
        self,
        *,
        depth: int = 4,
        leaf_penalty: float = 0.0,
        min_leaf: int = 1,
        pruning: str | Mapping[str, Any] = "0",
        pruning_folds: int = 5,
        impurity: Literal["gini", "entropy", "error"] = "gini",
        min_node: int = 2,
        min_gain: float = 0.0,
        split_gap: float = 0.0,
        split_time_limit: float | None = None,
        bound: Literal["theorem4", "paper", "assignment"] = "assignment",
        branching: Literal["1", "2"] = "2",
        order: Literal["depth-first", "best-first"] = "depth-first",
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class LocalSearchClassifier(TreeClassifier):
    """A deep tree in which exact searches replace small subtrees until no replacement helps.

    Proves for each small subtree that no other small tree in its place is better; the tree as a whole is not
    proved. Thousands of rows, tens of columns, many classes.

    Parameters
    ----------
    depth : int from 0 to 20, default 10
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999 or 'auto', default 'auto'
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
        'auto' chooses it by folds inside the training rows, so that the tree has as many leaves as help on unseen
        rows. 0 allows every leaf, so the tree may learn noise.
    height : int from 1 to 3, default 2
        Subtrees with at most this many questions on a path are replaced by the best ones for their rows. 3 takes
        much longer.
    starts : int from 1 to 1,000, default 3
        The search starts from this many greedy trees and keeps the best result.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    class_weight : {'none', 'balanced'}, default 'none'
        'balanced' gives every class the same total weight, in exact integers: the objective is then mean recall.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Dunn (2018); Carreira-Perpiñán & Tavallali (2018).
    """

    def __init__(
        self,
        *,
        depth: int = 10,
        leaf_penalty: float | Literal["auto"] = "auto",
        height: int = 2,
        starts: int = 3,
        min_leaf: int = 1,
        class_weight: Literal["none", "balanced"] | Mapping[Any, float] | None = "none",
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class ExactTreeClassifier(TreeClassifier):
    """The best tree of a small depth, proved: dynamic programming with branch and bound over yes/no questions.

    Proves that no tree of this depth, or of any depth without a limit, over the same questions has a higher
    objective. Depth 3 with hundreds of thousands of rows or hundreds of questions, depth 4 with hundreds of
    questions.

    Parameters
    ----------
    depth : int from 0 to 20 or None, default 3
        The largest number of questions between the root and a leaf. 'none' sets no limit; leaf_penalty must then be
        a number above 0.
    leaf_penalty : float from 0 to 0.999 or 'auto', default 'auto'
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
        'auto' chooses it by folds inside the training rows, so that the tree has as many leaves as help on unseen
        rows. 0 allows every leaf, so the tree may learn noise.
    max_leaves : int from 1 to 1,048,576, default None
        The tree may have at most this many leaves; empty means as many as the depth allows.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    forbidden : str, default ''
        Columns that no question may use, separated by semicolons, for example 'age; sex'.
    class_weight : {'none', 'balanced'}, default 'none'
        'balanced' gives every class the same total weight, in exact integers: the objective is then mean recall.
    optimal_trees : int from 0 to 1,000, default 0
        Count all trees with the best objective and the fewest leaves, and list up to this many; 0 means neither.
    max_columns : int from 0 to 10,000, default None
        The tree may use at most this many different columns; empty means no limit.
    recall : str, default ''
        The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9;
        no: 0.8'.
    fairness : {'none', 'parity', 'opportunity'}, default 'none'
        Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that
        class (opportunity).
    fairness_column : str, default ''
        The column whose values form the groups that are compared.
    fairness_class : str, default ''
        The predicted class whose rates are compared; empty means the last class.
    fairness_delta : float from 0 to 1, default 0.05
        The largest allowed difference between the rates of two groups.
    forbidden_pairs : str, default ''
        Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.
    monotone : str, default ''
        Columns along which the predicted class may only rise or only fall (classes in their order), for example
        'age up; price down'. Questions whether a cell is empty are not restricted.
    binarise : {'quantile-thresholds', 'quantile-buckets', 'all-thresholds', 'none'}, default 'quantile-thresholds'
        Yes/no questions: x > quantile (thresholds), x within two quantiles (buckets), or x > every value (all).
    bins : int from 2 to 1,000 or 'auto', default 'auto'
        k quantiles give each numeric column k − 1 thresholds, or k buckets. 'auto': all thresholds, or 32, 16, 8 or
        4 per column with those of a CART tree of the same depth, as many as a search of 10 s should prove.
    extra_thresholds : str, default ''
        Thresholds beside the quantiles, as JSON lists by column, for example {"age": [31.5, 40]}.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    column_price : str, default ''
        Price of testing a column in one row, for example 'lab_test=12.5; scan=40'. A row pays once if its path
        tests the column. The unit is that of the costs, or one error without costs.
    goal : {'auto', 'accuracy', 'costs', 'balanced', 'f1', 'mcc'}, default 'auto'
        What is optimised: 'accuracy' the share of correct rows, 'costs' the costs of answers, 'balanced' mean
        recall, 'f1' F1 of the positive class, 'mcc' Matthews' coefficient. 'auto' is costs if there are any, else
        accuracy.
    positive : str, default ''
        The class whose F1 is optimised. Empty means the class with fewer training rows.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Demirović et al. (2022); van der Linden, de Weerdt & Demirović (2023); Aglin, Nijssen & Schaus (2020).
    """

    def __init__(
        self,
        *,
        depth: int | None = 3,
        leaf_penalty: float | Literal["auto"] = "auto",
        max_leaves: int | None = None,
        min_leaf: int = 1,
        forbidden: str | Mapping[str, Any] = "",
        class_weight: Literal["none", "balanced"] | Mapping[Any, float] | None = "none",
        optimal_trees: int = 0,
        max_columns: int | None = None,
        recall: str | Mapping[str, Any] = "",
        fairness: Literal["none", "parity", "opportunity"] = "none",
        fairness_column: str | Mapping[str, Any] = "",
        fairness_class: str | Mapping[str, Any] = "",
        fairness_delta: float = 0.05,
        forbidden_pairs: str | Mapping[str, Any] = "",
        monotone: str | Mapping[str, Any] = "",
        binarise: Literal["quantile-thresholds", "quantile-buckets", "all-thresholds", "none"] = "quantile-thresholds",
        bins: int | Literal["auto"] = "auto",
        extra_thresholds: str | Mapping[str, Any] = "",
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        column_price: str | Mapping[str, Any] = "",
        goal: Literal["auto", "accuracy", "costs", "balanced", "f1", "mcc"] = "auto",
        positive: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class ExactNumericClassifier(TreeClassifier):
    """The best tree of depth two or three over every threshold of numeric columns, proved, without binarisation.

    Proves that no tree of this depth, whatever its thresholds, has a higher objective. Depth 2 with tens of
    thousands of rows, depth 3 with hundreds to a few thousand.

    Parameters
    ----------
    depth : int from 0 to 4, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    forbidden : str, default ''
        Columns that no question may use, separated by semicolons, for example 'age; sex'.
    class_weight : {'none', 'balanced'}, default 'none'
        'balanced' gives every class the same total weight, in exact integers: the objective is then mean recall.
    optimal_trees : int from 0 to 1,000, default 0
        Count all trees with the best objective and the fewest leaves, and list up to this many; 0 means neither.
    max_columns : int from 0 to 10,000, default None
        The tree may use at most this many different columns; empty means no limit.
    recall : str, default ''
        The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9;
        no: 0.8'.
    fairness : {'none', 'parity', 'opportunity'}, default 'none'
        Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that
        class (opportunity).
    fairness_column : str, default ''
        The column whose values form the groups that are compared.
    fairness_class : str, default ''
        The predicted class whose rates are compared; empty means the last class.
    fairness_delta : float from 0 to 1, default 0.05
        The largest allowed difference between the rates of two groups.
    forbidden_pairs : str, default ''
        Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.
    monotone : str, default ''
        Columns along which the predicted class may only rise or only fall (classes in their order), for example
        'age up; price down'. Questions whether a cell is empty are not restricted.
    mip_gap : float from 0 to 1, default 0.0
        From depth 3 on, the search may stop at this relative gap; 0 asks for a full proof.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    column_price : str, default ''
        Price of testing a column in one row, for example 'lab_test=12.5; scan=40'. A row pays once if its path
        tests the column. The unit is that of the costs, or one error without costs.
    goal : {'auto', 'accuracy', 'costs', 'balanced', 'f1', 'mcc'}, default 'auto'
        What is optimised: 'accuracy' the share of correct rows, 'costs' the costs of answers, 'balanced' mean
        recall, 'f1' F1 of the positive class, 'mcc' Matthews' coefficient. 'auto' is costs if there are any, else
        accuracy.
    positive : str, default ''
        The class whose F1 is optimised. Empty means the class with fewer training rows.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Briţa, van der Linden & Demirović (2025).
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        max_leaves: int | None = None,
        min_leaf: int = 1,
        forbidden: str | Mapping[str, Any] = "",
        class_weight: Literal["none", "balanced"] | Mapping[Any, float] | None = "none",
        optimal_trees: int = 0,
        max_columns: int | None = None,
        recall: str | Mapping[str, Any] = "",
        fairness: Literal["none", "parity", "opportunity"] = "none",
        fairness_column: str | Mapping[str, Any] = "",
        fairness_class: str | Mapping[str, Any] = "",
        fairness_delta: float = 0.05,
        forbidden_pairs: str | Mapping[str, Any] = "",
        monotone: str | Mapping[str, Any] = "",
        mip_gap: float = 0.0,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        column_price: str | Mapping[str, Any] = "",
        goal: Literal["auto", "accuracy", "costs", "balanced", "f1", "mcc"] = "auto",
        positive: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class FlowOCTClassifier(TreeClassifier):
    """The best tree of a given depth as one mixed-integer program in which correct rows flow to their leaves.

    Optimal: no tree of this depth over the encoded questions is better. Hundreds of rows, tens of yes/no questions,
    depth 2.

    Parameters
    ----------
    depth : int from 0 to 8, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    paper_lambda : float from 0 to 0.999, default None
        Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the leaf
        penalty; empty means that the leaf penalty is used.
    strengthening : bool, default False
        Use the paper's cuts (4), for rows of different classes on the same side of a split.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    max_columns : int from 0 to 10,000, default None
        The tree may use at most this many different columns; empty means no limit.
    recall : str, default ''
        The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9;
        no: 0.8'.
    fairness : {'none', 'parity', 'opportunity'}, default 'none'
        Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that
        class (opportunity).
    fairness_column : str, default ''
        The column whose values form the groups that are compared.
    fairness_class : str, default ''
        The predicted class whose rates are compared; empty means the last class.
    fairness_delta : float from 0 to 1, default 0.05
        The largest allowed difference between the rates of two groups.
    forbidden_pairs : str, default ''
        Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.
    monotone : str, default ''
        Columns along which the predicted class may only rise or only fall (classes in their order), for example
        'age up; price down'. Questions whether a cell is empty are not restricted.
    first_tree : {'auto', 'cart', 'exact', 'none'}, default 'auto'
        The tree that the search starts from: a pruned greedy tree (cart), the tree and the bound of the exact
        search (which satisfies the side constraints that it supports), or none. auto: exact if columns have empty
        cells, else cart.
    exact_seconds : float from 0 to 86,400, default 5.0
        How long the exact search may look for the first tree and a bound, with first_tree=exact or auto.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    binarise : {'quantile-thresholds', 'quantile-buckets', 'all-thresholds', 'none'}, default 'quantile-thresholds'
        Yes/no questions: x > quantile (thresholds), x within two quantiles (buckets), or x > every value (all).
    bins : int from 2 to 1,000, default 5
        k quantiles give each numeric column k − 1 thresholds, or k buckets.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `n_jobs` for `threads`, `random_state` for `seed`.
    `get_params` returns the names above.

    References
    ----------
    Aghaei, Gomez & Vayanos, Strong optimal classification trees.
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        paper_lambda: float | None = None,
        strengthening: bool = False,
        max_leaves: int | None = None,
        max_columns: int | None = None,
        recall: str | Mapping[str, Any] = "",
        fairness: Literal["none", "parity", "opportunity"] = "none",
        fairness_column: str | Mapping[str, Any] = "",
        fairness_class: str | Mapping[str, Any] = "",
        fairness_delta: float = 0.05,
        forbidden_pairs: str | Mapping[str, Any] = "",
        monotone: str | Mapping[str, Any] = "",
        first_tree: Literal["auto", "cart", "exact", "none"] = "auto",
        exact_seconds: float = 5.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        binarise: Literal["quantile-thresholds", "quantile-buckets", "all-thresholds", "none"] = "quantile-thresholds",
        bins: int = 5,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class BendOCTClassifier(TreeClassifier):
    """The best tree of a given depth by mixed-integer programming, with rows added while it is searched.

    Optimal: no tree of this depth over the encoded questions is better. Hundreds of rows, tens of yes/no questions,
    depth 2; bendoct-accelerated goes further.

    Parameters
    ----------
    depth : int from 0 to 8, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    paper_lambda : float from 0 to 0.999, default None
        Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the leaf
        penalty; empty means that the leaf penalty is used.
    root_cuts : bool, default False
        Look for minimum cuts at the root relaxation too, not only at trees.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    max_columns : int from 0 to 10,000, default None
        The tree may use at most this many different columns; empty means no limit.
    recall : str, default ''
        The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9;
        no: 0.8'.
    fairness : {'none', 'parity', 'opportunity'}, default 'none'
        Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that
        class (opportunity).
    fairness_column : str, default ''
        The column whose values form the groups that are compared.
    fairness_class : str, default ''
        The predicted class whose rates are compared; empty means the last class.
    fairness_delta : float from 0 to 1, default 0.05
        The largest allowed difference between the rates of two groups.
    forbidden_pairs : str, default ''
        Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.
    monotone : str, default ''
        Columns along which the predicted class may only rise or only fall (classes in their order), for example
        'age up; price down'. Questions whether a cell is empty are not restricted.
    first_tree : {'auto', 'cart', 'exact', 'none'}, default 'auto'
        The tree that the search starts from: a pruned greedy tree (cart), the tree and the bound of the exact
        search (which satisfies the side constraints that it supports), or none. auto: exact if columns have empty
        cells, else cart.
    exact_seconds : float from 0 to 86,400, default 5.0
        How long the exact search may look for the first tree and a bound, with first_tree=exact or auto.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    binarise : {'quantile-thresholds', 'quantile-buckets', 'all-thresholds', 'none'}, default 'quantile-thresholds'
        Yes/no questions: x > quantile (thresholds), x within two quantiles (buckets), or x > every value (all).
    bins : int from 2 to 1,000, default 5
        k quantiles give each numeric column k − 1 thresholds, or k buckets.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `n_jobs` for `threads`, `random_state` for `seed`.
    `get_params` returns the names above.

    References
    ----------
    Aghaei, Gomez & Vayanos, Strong optimal classification trees.
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        paper_lambda: float | None = None,
        root_cuts: bool = False,
        max_leaves: int | None = None,
        max_columns: int | None = None,
        recall: str | Mapping[str, Any] = "",
        fairness: Literal["none", "parity", "opportunity"] = "none",
        fairness_column: str | Mapping[str, Any] = "",
        fairness_class: str | Mapping[str, Any] = "",
        fairness_delta: float = 0.05,
        forbidden_pairs: str | Mapping[str, Any] = "",
        monotone: str | Mapping[str, Any] = "",
        first_tree: Literal["auto", "cart", "exact", "none"] = "auto",
        exact_seconds: float = 5.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        binarise: Literal["quantile-thresholds", "quantile-buckets", "all-thresholds", "none"] = "quantile-thresholds",
        bins: int = 5,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class OCTClassifier(TreeClassifier):
    """The first mixed-integer program for optimal trees, with large constants; kept as a baseline.

    Optimal: no tree of this depth over the encoded questions is better. A hundred rows, depth 2.

    Parameters
    ----------
    depth : int from 0 to 8, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    paper_lambda : float from 0 to 0.999, default None
        Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the leaf
        penalty; empty means that the leaf penalty is used.
    thresholds : {'questions', 'variables'}, default 'questions'
        One variable per question, or, as in the original, one per column and its threshold as a variable.
    single_features : bool, default False
        Write the routing rows for each question separately, as in the original; the relaxation is weaker.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    max_columns : int from 0 to 10,000, default None
        The tree may use at most this many different columns; empty means no limit.
    recall : str, default ''
        The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9;
        no: 0.8'.
    fairness : {'none', 'parity', 'opportunity'}, default 'none'
        Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that
        class (opportunity).
    fairness_column : str, default ''
        The column whose values form the groups that are compared.
    fairness_class : str, default ''
        The predicted class whose rates are compared; empty means the last class.
    fairness_delta : float from 0 to 1, default 0.05
        The largest allowed difference between the rates of two groups.
    forbidden_pairs : str, default ''
        Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.
    monotone : str, default ''
        Columns along which the predicted class may only rise or only fall (classes in their order), for example
        'age up; price down'. Questions whether a cell is empty are not restricted.
    first_tree : {'auto', 'cart', 'exact', 'none'}, default 'auto'
        The tree that the search starts from: a pruned greedy tree (cart), the tree and the bound of the exact
        search (which satisfies the side constraints that it supports), or none. auto: exact if columns have empty
        cells, else cart.
    exact_seconds : float from 0 to 86,400, default 5.0
        How long the exact search may look for the first tree and a bound, with first_tree=exact or auto.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    binarise : {'quantile-thresholds', 'quantile-buckets', 'all-thresholds', 'none'}, default 'quantile-thresholds'
        Yes/no questions: x > quantile (thresholds), x within two quantiles (buckets), or x > every value (all).
    bins : int from 2 to 1,000, default 5
        k quantiles give each numeric column k − 1 thresholds, or k buckets.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `n_jobs` for `threads`, `random_state` for `seed`.
    `get_params` returns the names above.

    References
    ----------
    Bertsimas & Dunn, Optimal classification trees.
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        paper_lambda: float | None = None,
        thresholds: Literal["questions", "variables"] = "questions",
        single_features: bool = False,
        max_leaves: int | None = None,
        max_columns: int | None = None,
        recall: str | Mapping[str, Any] = "",
        fairness: Literal["none", "parity", "opportunity"] = "none",
        fairness_column: str | Mapping[str, Any] = "",
        fairness_class: str | Mapping[str, Any] = "",
        fairness_delta: float = 0.05,
        forbidden_pairs: str | Mapping[str, Any] = "",
        monotone: str | Mapping[str, Any] = "",
        first_tree: Literal["auto", "cart", "exact", "none"] = "auto",
        exact_seconds: float = 5.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        binarise: Literal["quantile-thresholds", "quantile-buckets", "all-thresholds", "none"] = "quantile-thresholds",
        bins: int = 5,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class BinOCTClassifier(TreeClassifier):
    """The most accurate complete tree of a given depth, one large row for each node and question; a baseline.

    Optimal: no tree of this depth over the encoded questions classifies more training rows correctly. A hundred
    rows, depth 2. There is no leaf penalty.

    Parameters
    ----------
    depth : int from 0 to 8, default 2
        The largest number of questions between the root and a leaf.
    thresholds : {'questions', 'bits'}, default 'questions'
        One variable per question, or, as in the original, one per column, and bits that search for its threshold.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    max_columns : int from 0 to 10,000, default None
        The tree may use at most this many different columns; empty means no limit.
    recall : str, default ''
        The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9;
        no: 0.8'.
    fairness : {'none', 'parity', 'opportunity'}, default 'none'
        Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that
        class (opportunity).
    fairness_column : str, default ''
        The column whose values form the groups that are compared.
    fairness_class : str, default ''
        The predicted class whose rates are compared; empty means the last class.
    fairness_delta : float from 0 to 1, default 0.05
        The largest allowed difference between the rates of two groups.
    forbidden_pairs : str, default ''
        Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.
    monotone : str, default ''
        Columns along which the predicted class may only rise or only fall (classes in their order), for example
        'age up; price down'. Questions whether a cell is empty are not restricted.
    first_tree : {'auto', 'cart', 'exact', 'none'}, default 'auto'
        The tree that the search starts from: a pruned greedy tree (cart), the tree and the bound of the exact
        search (which satisfies the side constraints that it supports), or none. auto: exact if columns have empty
        cells, else cart.
    exact_seconds : float from 0 to 86,400, default 5.0
        How long the exact search may look for the first tree and a bound, with first_tree=exact or auto.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    binarise : {'quantile-thresholds', 'quantile-buckets', 'all-thresholds', 'none'}, default 'quantile-thresholds'
        Yes/no questions: x > quantile (thresholds), x within two quantiles (buckets), or x > every value (all).
    bins : int from 2 to 1,000, default 5
        k quantiles give each numeric column k − 1 thresholds, or k buckets.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `n_jobs` for `threads`, `random_state` for `seed`.
    `get_params` returns the names above.

    References
    ----------
    Verwer & Zhang, Learning optimal classification trees using a binary linear program formulation.
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        thresholds: Literal["questions", "bits"] = "questions",
        max_leaves: int | None = None,
        max_columns: int | None = None,
        recall: str | Mapping[str, Any] = "",
        fairness: Literal["none", "parity", "opportunity"] = "none",
        fairness_column: str | Mapping[str, Any] = "",
        fairness_class: str | Mapping[str, Any] = "",
        fairness_delta: float = 0.05,
        forbidden_pairs: str | Mapping[str, Any] = "",
        monotone: str | Mapping[str, Any] = "",
        first_tree: Literal["auto", "cart", "exact", "none"] = "auto",
        exact_seconds: float = 5.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        binarise: Literal["quantile-thresholds", "quantile-buckets", "all-thresholds", "none"] = "quantile-thresholds",
        bins: int = 5,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class AcceleratedBendOCTClassifier(TreeClassifier):
    """BendOCT with bounds from best subtrees; proves trees of depth 3 in seconds on an open solver.

    Optimal: no tree of this depth over the encoded questions is better. Thousands of rows, a hundred yes/no
    questions, depth 3; depth 4 with fewer.

    Parameters
    ----------
    depth : int from 0 to 8, default 3
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    polishing : bool, default True
        Replace the lowest two levels of every tree that is found by the best two levels for its rows.
    path_bounds : bool, default True
        Bound the subtree below a fixed path by the best subtree of depth two.
    negative_samples : bool, default True
        Write path bounds over the rows that the best subtree misclassifies.
    structure : bool, default True
        Let path bounds also fix the best subtree itself.
    endpoints_only : bool, default False
        Add path bounds only at the end of each path, not along it.
    at_integral : bool, default True
        Check path bounds at whole trees too, not only at fractional points.
    objective_form : bool, default False
        Write path bounds in the form that holds for every tree, also with side constraints.
    split_bounds : bool, default True
        Bound each split three levels above the lowest leaves by its two best subtrees.
    exact_bounds : bool, default False
        From depth 5 on, bound the subtree below a fixed path by the exact search, for at most ten seconds in total.
    equivalent_points : {'none', 'basic', 'chain', 'recursive'}, default 'recursive'
        Rows that agree on most questions end in the same leaf unless the tree asks one of the others.
    separated : bool, default True
        Equivalent points: add rows only where they are violated, instead of writing all of them beforehand.
    disaggregated : bool, default True
        Equivalent points: one inequality per node instead of their sum.
    group_selection : bool, default True
        Equivalent points: choose which class of each set may be classified correctly.
    split_set : int from 0 to 3, default 2
        Equivalent points: the largest number of questions on which a set may differ.
    set_limit : int from 0 to 100,000, default 5000
        Equivalent points: the largest number of sets; those with the largest loss come first.
    strengthened : bool, default False
        Use Benders cuts that also look at the sibling of a leaf.
    root_cuts : bool, default False
        Look for minimum cuts at the root relaxation too, not only at trees.
    cache : bool, default True
        Remember the best subtree of every set of rows that has been solved.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    max_columns : int from 0 to 10,000, default None
        The tree may use at most this many different columns; empty means no limit.
    recall : str, default ''
        The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9;
        no: 0.8'.
    fairness : {'none', 'parity', 'opportunity'}, default 'none'
        Predict a class equally often in all groups: among all rows (parity, two classes) or among the rows of that
        class (opportunity).
    fairness_column : str, default ''
        The column whose values form the groups that are compared.
    fairness_class : str, default ''
        The predicted class whose rates are compared; empty means the last class.
    fairness_delta : float from 0 to 1, default 0.05
        The largest allowed difference between the rates of two groups.
    forbidden_pairs : str, default ''
        Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.
    monotone : str, default ''
        Columns along which the predicted class may only rise or only fall (classes in their order), for example
        'age up; price down'. Questions whether a cell is empty are not restricted.
    first_tree : {'auto', 'cart', 'exact', 'none'}, default 'auto'
        The tree that the search starts from: a pruned greedy tree (cart), the tree and the bound of the exact
        search (which satisfies the side constraints that it supports), or none. auto: exact if columns have empty
        cells, else cart.
    exact_seconds : float from 0 to 86,400, default 5.0
        How long the exact search may look for the first tree and a bound, with first_tree=exact or auto.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    binarise : {'quantile-thresholds', 'quantile-buckets', 'all-thresholds', 'none'}, default 'quantile-thresholds'
        Yes/no questions: x > quantile (thresholds), x within two quantiles (buckets), or x > every value (all).
    bins : int from 2 to 1,000, default 5
        k quantiles give each numeric column k − 1 thresholds, or k buckets.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `n_jobs` for `threads`, `random_state` for `seed`.
    `get_params` returns the names above.

    References
    ----------
    Keegan, Forbes, Corry & Abolghasemi, accelerated BendOCT.
    """

    def __init__(
        self,
        *,
        depth: int = 3,
        leaf_penalty: float = 0.0,
        polishing: bool = True,
        path_bounds: bool = True,
        negative_samples: bool = True,
        structure: bool = True,
        endpoints_only: bool = False,
        at_integral: bool = True,
        objective_form: bool = False,
        split_bounds: bool = True,
        exact_bounds: bool = False,
        equivalent_points: Literal["none", "basic", "chain", "recursive"] = "recursive",
        separated: bool = True,
        disaggregated: bool = True,
        group_selection: bool = True,
        split_set: int = 2,
        set_limit: int = 5000,
        strengthened: bool = False,
        root_cuts: bool = False,
        cache: bool = True,
        max_leaves: int | None = None,
        max_columns: int | None = None,
        recall: str | Mapping[str, Any] = "",
        fairness: Literal["none", "parity", "opportunity"] = "none",
        fairness_column: str | Mapping[str, Any] = "",
        fairness_class: str | Mapping[str, Any] = "",
        fairness_delta: float = 0.05,
        forbidden_pairs: str | Mapping[str, Any] = "",
        monotone: str | Mapping[str, Any] = "",
        first_tree: Literal["auto", "cart", "exact", "none"] = "auto",
        exact_seconds: float = 5.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        binarise: Literal["quantile-thresholds", "quantile-buckets", "all-thresholds", "none"] = "quantile-thresholds",
        bins: int = 5,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class ODTClassifier(TreeClassifier):
    """Optimal trees of a fixed shape. A question is a set of categories, such as 'married or widowed', or a threshold
    between bins.

    Optimal over all trees of the topology with subset questions, on the training rows. Made for columns with up to
    about 15 categories and some thousand rows; depth 2 in seconds, depth 3 for smaller data.

    Parameters
    ----------
    depth : int from 0 to 4, default 2
        The largest number of questions between the root and a leaf; 'topology' overrides it.
    topology : str, default ''
        depth-2, depth-2.5, depth-3, imbalanced, or brackets such as [[..][..]]; auto: the best of these four by
        cross-validation; empty: complete to the depth.
    select : {'none', 'cart'}, default 'none'
        'cart' uses only the columns that a large greedy tree asks about; the claim then covers these columns only.
    max_card : int from 0 to 62, default 0
        A subset or its complement has at most this many categories; 0 means any number.
    sensitivity : float from 0 to 1, default None
        Minimum share of the positive rows that are classified correctly. The specificity is then maximised. Empty
        means no minimum.
    specificity : float from 0 to 1, default None
        Minimum share of the other rows that are classified correctly. The sensitivity is then maximised; with both
        given, the accuracy.
    positive : str, default ''
        The class that sensitivity refers to; empty means the last class.
    negative_weight : str, default '1'
        The weight of a correct row of the other class; a positive row counts 1. 'balanced' gives both classes the
        same total.
    frontier : bool, default False
        Also find every reachable pair of sensitivity and specificity that no other pair dominates; the model then
        has a slider to choose one. For two classes.
    bins : int from 2 to 60, default 10
        Numeric columns are cut into this many bins at their quantiles.
    first_tree : {'cart', 'exact', 'none'}, default 'cart'
        The tree the solver starts from: a greedy tree (CART), the tree of the exact search, or none.
    exact_seconds : float from 0 to 86,400, default 5.0
        How long the exact search may look for the first tree, with first_tree=exact.
    without : str, default ''
        Techniques of the paper to leave out, for comparison: anchor, relax, strengthen.
    solver : {'auto', 'search', 'scip', 'highs', 'gurobi'}, default 'auto'
        'search' (and 'auto') runs this method's own exact search; the others solve the paper's mixed-integer
        program.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `n_jobs` for `threads`, `random_state` for `seed`.
    `get_params` returns the names above.

    References
    ----------
    Günlük, Kalagnanam, Li, Menickelly & Scheinberg (2019).
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        topology: str | Mapping[str, Any] = "",
        select: Literal["none", "cart"] = "none",
        max_card: int = 0,
        sensitivity: float | None = None,
        specificity: float | None = None,
        positive: str | Mapping[str, Any] = "",
        negative_weight: str | Mapping[str, Any] = "1",
        frontier: bool = False,
        bins: int = 10,
        first_tree: Literal["cart", "exact", "none"] = "cart",
        exact_seconds: float = 5.0,
        without: str | Mapping[str, Any] = "",
        solver: Literal["auto", "search", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class CutHClassifier(TreeClassifier):
    """The best tree whose questions weigh all columns at once, by mixed-integer programming with cuts.

    Optimal: no better tree of this depth has questions that are hyperplanes separating their rows by at least 1e-7
    of the range. Proves trees for hundreds of rows if a perfect tree exists, otherwise for dozens. For larger data
    you get a tree and a bound.

    Parameters
    ----------
    depth : int from 0 to 6, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    paper_lambda : float from 0 to 0.999, default None
        Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the leaf
        penalty; empty means that the leaf penalty is used.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    hyperplanes : {'margin', 'svm', 'sparse'}, default 'margin'
        How a hyperplane is placed between its rows: with the widest margin, with a soft margin (as in the paper),
        or with the fewest columns, also among other equally good trees.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    then_fewest : bool, default False
        Among the trees with the best objective, find one with the fewest leaves; the proof covers that too.
    pareto : bool, default False
        Also find the best tree for every smaller number of leaves and for fewer coefficients, within the same time
        limit.
    balanced : bool, default False
        Search over trees in which every path has as many questions as the depth allows. Questions that separate no
        rows are left out of the tree that is shown.
    connect : {'all', 'lazy', 'I', 'II', 'III'}, default 'all'
        Rows that tie a correct row to its path: all at once, lazily, or lazily with root cuts of type I, II or III.
    tight : bool, default True
        Misclassified rows have no route in the model, so fewer points must be separated.
    full_routing : bool, default False
        Route every row to a leaf, also misclassified rows. A minimum number of rows per leaf turns this on.
    symmetry : bool, default True
        Keep only one of the mirrored forms of each tree.
    everywhere : bool, default True
        A set of points that no hyperplane can separate is forbidden at every node and mirrored, not only where it
        was found.
    several : int from 1 to 50, default 5
        How many minimal sets to look for at a node whose rows cannot be separated.
    first_trees : {'all', 'cart', 'none'}, default 'all'
        The trees that the local search starts from: the trees of cart, exact, bivariate and oc1 (all), only the
        tree of cart, or none.
    search_seconds : float from 0 to 86,400, default 30.0
        Time for first trees and local search before the solver starts, at most half of the time limit.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Alston, Validi & Hicks, CUT-H.
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        paper_lambda: float | None = None,
        min_leaf: int = 1,
        hyperplanes: Literal["margin", "svm", "sparse"] = "margin",
        max_leaves: int | None = None,
        then_fewest: bool = False,
        pareto: bool = False,
        balanced: bool = False,
        connect: Literal["all", "lazy", "I", "II", "III"] = "all",
        tight: bool = True,
        full_routing: bool = False,
        symmetry: bool = True,
        everywhere: bool = True,
        several: int = 5,
        first_trees: Literal["all", "cart", "none"] = "all",
        search_seconds: float = 30.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class CutwHClassifier(TreeClassifier):
    """CUT-H with its weaker rows: one for each leaf instead of one for each subtree.

    Optimal: no better tree of this depth has questions that are hyperplanes separating their rows by at least 1e-7
    of the range. Proves trees for hundreds of rows if a perfect tree exists, otherwise for dozens. For larger data
    you get a tree and a bound.

    Parameters
    ----------
    depth : int from 0 to 6, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    paper_lambda : float from 0 to 0.999, default None
        Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the leaf
        penalty; empty means that the leaf penalty is used.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    hyperplanes : {'margin', 'svm', 'sparse'}, default 'margin'
        How a hyperplane is placed between its rows: with the widest margin, with a soft margin (as in the paper),
        or with the fewest columns, also among other equally good trees.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    then_fewest : bool, default False
        Among the trees with the best objective, find one with the fewest leaves; the proof covers that too.
    pareto : bool, default False
        Also find the best tree for every smaller number of leaves and for fewer coefficients, within the same time
        limit.
    balanced : bool, default False
        Search over trees in which every path has as many questions as the depth allows. Questions that separate no
        rows are left out of the tree that is shown.
    connect : {'all', 'lazy', 'I', 'II', 'III'}, default 'all'
        Rows that tie a correct row to its path: all at once, lazily, or lazily with root cuts of type I, II or III.
    tight : bool, default True
        Misclassified rows have no route in the model, so fewer points must be separated.
    full_routing : bool, default False
        Route every row to a leaf, also misclassified rows. A minimum number of rows per leaf turns this on.
    symmetry : bool, default True
        Keep only one of the mirrored forms of each tree.
    everywhere : bool, default True
        A set of points that no hyperplane can separate is forbidden at every node and mirrored, not only where it
        was found.
    several : int from 1 to 50, default 5
        How many minimal sets to look for at a node whose rows cannot be separated.
    first_trees : {'all', 'cart', 'none'}, default 'all'
        The trees that the local search starts from: the trees of cart, exact, bivariate and oc1 (all), only the
        tree of cart, or none.
    search_seconds : float from 0 to 86,400, default 30.0
        Time for first trees and local search before the solver starts, at most half of the time limit.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Alston, Validi & Hicks, CUT_w-H.
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        paper_lambda: float | None = None,
        min_leaf: int = 1,
        hyperplanes: Literal["margin", "svm", "sparse"] = "margin",
        max_leaves: int | None = None,
        then_fewest: bool = False,
        pareto: bool = False,
        balanced: bool = False,
        connect: Literal["all", "lazy", "I", "II", "III"] = "all",
        tight: bool = True,
        full_routing: bool = False,
        symmetry: bool = True,
        everywhere: bool = True,
        several: int = 5,
        first_trees: Literal["all", "cart", "none"] = "all",
        search_seconds: float = 30.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class SOCTClassifier(TreeClassifier):
    """The best tree of hyperplanes by shattering inequalities, every row routed to a leaf: a baseline.

    Optimal: no better tree of this depth has questions that are hyperplanes separating their rows by at least 1e-7
    of the range. Like cut-h; if no perfect tree exists, its bounds move more slowly.

    Parameters
    ----------
    depth : int from 0 to 6, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    paper_lambda : float from 0 to 0.999, default None
        Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the leaf
        penalty; empty means that the leaf penalty is used.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    hyperplanes : {'margin', 'svm', 'sparse'}, default 'margin'
        How a hyperplane is placed between its rows: with the widest margin, with a soft margin (as in the paper),
        or with the fewest columns, also among other equally good trees.
    max_leaves : int from 1 to 256, default None
        The tree may have at most this many leaves; empty means no limit.
    big_m : {'none', 'data', 'paper'}, default 'none'
        Hyperplanes as variables instead of cuts, tied to rows by the largest difference between a row and the
        others (data) or 2 (paper); they then keep a distance of 0.005.
    everywhere : bool, default True
        A set of points that no hyperplane can separate is forbidden at every node and mirrored, not only where it
        was found.
    several : int from 1 to 50, default 5
        How many minimal sets to look for at a node whose rows cannot be separated.
    first_trees : {'all', 'cart', 'none'}, default 'all'
        The trees that the local search starts from: the trees of cart, exact, bivariate and oc1 (all), only the
        tree of cart, or none.
    search_seconds : float from 0 to 86,400, default 30.0
        Time for first trees and local search before the solver starts, at most half of the time limit.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Boutilier, Michini & Zhou (2023).
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        paper_lambda: float | None = None,
        min_leaf: int = 1,
        hyperplanes: Literal["margin", "svm", "sparse"] = "margin",
        max_leaves: int | None = None,
        big_m: Literal["none", "data", "paper"] = "none",
        everywhere: bool = True,
        several: int = 5,
        first_trees: Literal["all", "cart", "none"] = "all",
        search_seconds: float = 30.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...

class OCTHClassifier(TreeClassifier):
    """The best tree of hyperplanes that keep a distance from the rows, as one mixed-integer program: a baseline.

    Optimal among trees whose hyperplanes keep a distance of 0.005 from the rows on their right. Like cut-h if a
    perfect tree keeps this distance; otherwise dozens of rows.

    Parameters
    ----------
    depth : int from 0 to 6, default 2
        The largest number of questions between the root and a leaf.
    leaf_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every leaf: 0.01 means that a leaf must gain 1 % of the rows.
    paper_lambda : float from 0 to 0.999, default None
        Weight of the branchings in the paper's own objective, (1 − λ) correct − λ branchings. It replaces the leaf
        penalty; empty means that the leaf penalty is used.
    min_leaf : int from 1 to 1,000,000,000, default 1
        The smallest number of training rows that a leaf may have.
    hyperplanes : {'margin', 'svm', 'sparse'}, default 'margin'
        How a hyperplane is placed between its rows: with the widest margin, with a soft margin (as in the paper),
        or with the fewest columns, also among other equally good trees.
    coefficient_penalty : float from 0 to 0.999, default 0.0
        Subtracted from the training accuracy for every column that a question weighs: 0.01 means 1 % of the rows.
    big_m : {'data', 'paper'}, default 'data'
        The constants that tie rows to hyperplanes: the largest difference between a row and the others (data), or 2
        as in the paper.
    scaling : {'robust', 'range'}, default 'robust'
        The unit in which hyperplanes keep their distance: a column's range (range), or less if a few values are far
        from all others (robust): four times the range between the quartiles of its values.
    first_trees : {'all', 'cart', 'none'}, default 'all'
        The trees that the local search starts from: the trees of cart, exact, bivariate and oc1 (all), only the
        tree of cart, or none.
    search_seconds : float from 0 to 86,400, default 30.0
        Time for first trees and local search before the solver starts, at most half of the time limit.
    solver : {'auto', 'scip', 'highs', 'gurobi'}, default 'auto'
        'auto' uses Gurobi if a full licence is found, and otherwise the open solver SCIP.
    mip_gap : float from 0 to 1, default 0.0
        The search may stop at this relative gap; 0 asks for a full proof.
    costs : str, default ''
        Cost of an answer in a row of a true class: 'bad>good=5; good>bad=0.2*amount', or JSON. Costs that are not
        named are 0 for the true class and 1 for other answers. The search minimises the cost. The leaf penalty is
        then a share of the cost of the best single answer.
    cost_unit : str, default ''
        The unit in which costs are given and reported, for example EUR.
    time_limit : float from 0 to 604,800, default 600.0
        The training stops after this time and keeps the best tree found, with its gap.
    memory_limit : int from 64 to 1,000,000, default None
        Memory the training may use; empty means only the server's limit.
    threads : int from 1 to 256, default 1
        Number of processor threads. The tree does not depend on it.
    seed : int from 0 to 2,147,483,647, default 0
        Fixes every random choice, so that the same run gives the same tree again.
    unseen_missing : {'follow', 'refuse'}, default 'follow'
        An empty cell in a column that had none in training goes to the side with more training rows, and the answer
        is marked (follow); or the row gets no answer (refuse).
    missing : {'learn', 'drop', 'refuse'} or dict of these by column, default 'learn'
        How to handle empty cells. 'learn': splits learn where they go. 'drop': their rows are left out of the
        training and get no prediction. 'refuse': they are an error. Columns that a dictionary does not name learn.
    unknown : {'branch', 'warn', 'refuse', 'raise'}, default 'warn'
        How `predict` handles a category that training did not have. 'warn': it warns once per column and answers
        every question about the category with no. 'branch': the same without the warning. 'refuse' or 'raise': it
        raises an error. Another spelling of a known category is not unknown. The saved model keeps the choice.

    Notes
    -----
    Names of scikit-learn are accepted: `max_depth` for `depth`, `min_samples_leaf` for `min_leaf`, `n_jobs` for
    `threads`, `random_state` for `seed`. `get_params` returns the names above.

    References
    ----------
    Bertsimas & Dunn (2017).
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf_penalty: float = 0.0,
        paper_lambda: float | None = None,
        min_leaf: int = 1,
        hyperplanes: Literal["margin", "svm", "sparse"] = "margin",
        coefficient_penalty: float = 0.0,
        big_m: Literal["data", "paper"] = "data",
        scaling: Literal["robust", "range"] = "robust",
        first_trees: Literal["all", "cart", "none"] = "all",
        search_seconds: float = 30.0,
        solver: Literal["auto", "scip", "highs", "gurobi"] = "auto",
        mip_gap: float = 0.0,
        costs: str | Mapping[str, Any] = "",
        cost_unit: str | Mapping[str, Any] = "",
        time_limit: float = 600.0,
        memory_limit: int | None = None,
        threads: int = 1,
        seed: int = 0,
        unseen_missing: Literal["follow", "refuse"] = "follow",
        missing: Literal["learn", "drop", "refuse"] | Mapping[str, Literal["learn", "drop", "refuse"]] = "learn",
        unknown: Literal["branch", "warn", "refuse", "raise"] = "warn",
        max_depth: int | None = ...,
        min_samples_leaf: int = ...,
        n_jobs: int | None = ...,
        random_state: int | None = ...,
    ) -> None: ...
