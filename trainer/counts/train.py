"""Train a tree from counts alone: search, certificate and model file."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainer.certificate import Certificate, Evidence, Guarantee, Status, relative_gap
from trainer.constraints import forbidden_pairs, recalls
from trainer.constraints.text import split_items
from trainer.counts.folder import Counts
from trainer.counts.objective import CountedObjective, counted_objective
from trainer.counts.proof import proof_lines
from trainer.counts.recalls import RecallSearch
from trainer.counts.search import BestByLeaves, Shape, TreeSearch
from trainer.data.encoding import Test
from trainer.data.problem import SettingNames
from trainer.dtypes import BoolArray, CountArray
from trainer.errors import InfeasibleError, ParameterError
from trainer.methods.base import AUTO, Settings
from trainer.methods.capabilities import Role
from trainer.methods.scope import count_noun, scope_sentence
from trainer.registry import get, method_for
from trainer.table import ColumnKind
from trainer.training.claims import read_claim
from trainer.training.metrics import crossed_metrics, unseen_accuracy
from trainer.training.proof_file import MAX_PROOF_BYTES, write_lines
from trainer.training.summary import cost_summary
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Node, Tree
from trainer.tree.splits import Split, Subset
from trainer.version import VERSION

METHOD = method_for(Role.ONE_PROVED).id  # a training from counts has the settings and the claim of this method
KEPT = (
    "depth",
    "leaf_penalty",
    "max_leaves",
    "min_leaf",
    "forbidden",
    "forbidden_pairs",
    "recall",
    "costs",
    "cost_unit",
)  # settings that also work on counts
# settings that are accepted and have no effect on counts
PLAIN = ("time_limit", "memory_limit", "threads", "seed", "unseen_missing")
ASKED = ("binarise", "bins")  # settings that were fixed when the rows were counted


@dataclass(frozen=True, kw_only=True)
class CountedTree:
    """A model trained from counts, and the record that `train --json` prints."""

    model: ModelFile
    certificate: Certificate
    summary: dict[str, Any]


def train_counts(
    counts: Counts,
    parameters: Mapping[str, Any] | None = None,
    *,
    name: str = "",
    proof: Path | None = None,
    proof_size: int = MAX_PROOF_BYTES,
) -> CountedTree:
    """Find an optimal tree over the questions of the counts.

    Parameters
    ----------
    counts : Counts
    parameters : Mapping, optional
        Settings of `exact`: depth, leaf_penalty, max_leaves, min_leaf, forbidden, forbidden_pairs, recall, costs and cost_unit.
    name : str
        A name for the model file.
    proof : Path, optional
        File for the proof of the bound, of at most `proof_size` bytes.

    Raises
    ------
    ParameterError
        If a setting needs more than the counts have, such as a greater depth or other questions.
    InfeasibleError
        If no tree satisfies the settings.
    """
    start = time.monotonic()
    settings = counted_settings(parameters or {}, asked=counts.questions.asked, depth=counts.depth)
    low, high = counts.total
    objective = counted_objective(
        settings, setting_names(counts), low[:, 0], rows=counts.rows, suppressed=bool(counts.suppress)
    )
    search = tree_search(counts, settings, low, high, objective.gains)
    tree = tree_of(best_shape(search, settings, objective, setting_names(counts)), counts, objective)
    upper = None if high is low else tree_search(counts, settings, high, low).best
    certificate = certify_counts(counts, settings, tree, objective, time.monotonic() - start, upper)
    if proof is not None:
        lines = partial(proof_lines, counts, settings, objective, gain_of(tree, objective), tree.n_leaves)
        written = write_lines(proof, lines, proof_size)
        certificate = replace(certificate, evidence=(*certificate.evidence, written))
    return counted_tree(counts, settings, tree, objective, certificate, name=name)


def counted_tree(
    counts: Counts,
    settings: Settings,
    tree: Tree,
    objective: CountedObjective,
    certificate: Certificate,
    *,
    claim: Mapping[str, Any] | None = None,
    name: str,
) -> CountedTree:
    """Return the model of a tree with its metrics; `claim` are the members of its certificate about wishes.

    The folds do not judge a tree with wishes, which were chosen with knowledge of all rows.
    """
    metrics: dict[str, Any] = {"train": _judge(tree, counts, None) | _cost_metrics(tree, objective)}
    fold_trees: list[Tree] = []
    folds = 0 if claim else counts.folds
    if folds:
        metrics["cross_validation"], fold_trees = cross_validate(counts, settings, objective)
    model = ModelFile(
        tree=tree,
        target=counts.questions.target,
        method=METHOD,
        name=name,
        parameters=settings.to_json() | {"test_share": 0.0, "folds": folds},
        metrics=metrics,
        certificate=certificate.to_json() | dict(claim or {}),
        rows=_rows(counts, fold_trees if folds else None),
        reading=counts.questions.reading,
        class_type=counts.questions.class_type,
    )
    return CountedTree(model=model, certificate=certificate, summary=_summary(model, certificate, counts))


def best_shape(search: TreeSearch, settings: Settings, objective: CountedObjective, names: SettingNames) -> Shape:
    """Return the best tree within the settings; raise InfeasibleError if there is none."""
    leaves = cheapest(search.best, objective.price, settings["max_leaves"])
    if search.best.correct[leaves - 1] < 0:
        raise InfeasibleError(f"No tree has {settings['min_leaf']} rows or more in each leaf. Set a lower min_leaf.")
    shape = search.shape(leaves)
    required = [(names.classes.index(name), share) for name, share in recalls(settings, names)]
    if not required:
        return shape
    within = RecallSearch(search=search, recalls=required, price=objective.price, max_leaves=settings["max_leaves"])
    return shape if within.keeps(shape) else within.best()


def gain_of(tree: Tree, objective: CountedObjective) -> int:
    """Return the correct rows of a tree, or the savings of its answers."""
    return sum(int(objective.gain_of(np.array(leaf.counts, np.int64))[leaf.label]) for leaf in tree.leaves)


def counted_settings(parameters: Mapping[str, Any], *, asked: Mapping[str, Any], depth: int) -> Settings:
    """Return checked settings of a training from counts, with those that were fixed when the rows were counted.

    Parameters
    ----------
    parameters : Mapping
        Settings of `exact`.
    asked : Mapping
        How the questions were made, see `CountedQuestions`.
    depth : int
        The depth of the counts.

    Raises
    ------
    ParameterError
        If a setting needs more than the counts have.
    """
    method = get(METHOD)
    values = dict(parameters)
    values.setdefault("depth", min(depth, 3))
    if values.get("leaf_penalty") in (None, AUTO):
        values["leaf_penalty"] = 0.0  # choosing a penalty needs held-out rows, which counts do not have
    settings = method.settings(values)
    for parameter in method.parameters:
        if parameter.name in KEPT or parameter.name in PLAIN or settings[parameter.name] == parameter.default:
            continue
        if parameter.name in ASKED and settings[parameter.name] == asked.get(parameter.name):
            continue
        reason = (
            "was fixed when the rows were counted. Count again"
            if parameter.name in ASKED
            else "needs the rows. Train from the table"
        )
        raise ParameterError(
            {
                parameter.name: f"it {reason}. With counts you can change {', '.join(KEPT)}, and the limits of the search."
            }
        )
    if settings["depth"] is None or settings["depth"] > depth:
        raise ParameterError({"depth": f"choose at most {depth}, the depth of the counts, not {settings['depth']}."})
    return method.settings(values | {name: asked[name] for name in ASKED if name in asked})


def _allowed_questions(counts: Counts, settings: Settings) -> BoolArray:
    """Return the mask of the allowed questions; raise ParameterError for a forbidden column that does not exist."""
    names = setting_names(counts)
    banned = {names.column(name, "forbidden") for name in split_items(settings["forbidden"])}
    features = counts.questions.encoding.features
    return np.array([names.columns[feature.column] not in banned for feature in features], bool)


def _pairs_apart(counts: Counts, settings: Settings) -> BoolArray | None:
    """Return the pairs of questions that no path may use, bool (questions, questions); None without such pairs."""
    names = setting_names(counts)
    columns = np.array([names.columns[feature.column] for feature in counts.questions.encoding.features])
    apart = np.zeros((len(columns), len(columns)), bool)
    for first, second in forbidden_pairs(settings, names):
        apart |= np.outer(columns == first, columns == second) | np.outer(columns == second, columns == first)
    return apart if apart.any() else None


def check_constraints(settings: Settings, names: SettingNames, class_rows: CountArray, *, suppressed: bool) -> None:
    """Raise ParameterError for constraints that counts of these classes, int64 (classes,), do not show."""
    forbidden_pairs(settings, names)
    for name in ("recall", "forbidden_pairs"):
        if settings[name] and suppressed:
            raise ParameterError(
                {name: "small numbers of these counts are secret, so they do not show it. Leave it out."}
            )
    if settings["recall"] and settings["costs"]:
        raise ParameterError({"recall": "counts do not show it together with costs. Leave one of the two out."})
    for name, _ in recalls(settings, names):
        if not class_rows[names.classes.index(name)]:
            raise ParameterError({"recall": f"No row has the class '{name}'. Leave this class out."})


def setting_names(counts: Counts) -> SettingNames:
    """Return the columns and classes that settings may name."""
    columns = tuple(column.name for column in counts.questions.encoding.schema)
    return SettingNames(columns=columns, classes=counts.questions.classes)


def tree_search(
    counts: Counts, settings: Settings, low: CountArray, other: CountArray, gains: CountArray | None = None
) -> TreeSearch:
    """Return the search over all trees of the settings; `low` are its counts, and `other` their opposite bounds."""
    check_constraints(settings, setting_names(counts), counts.total[0][:, 0], suppressed=bool(counts.suppress))
    return TreeSearch(
        own=low,
        other=other,
        allowed=_allowed_questions(counts, settings),
        depth=settings["depth"],
        min_leaf=settings["min_leaf"] or 1,
        gains=gains,
        apart=_pairs_apart(counts, settings),
    )


def cheapest(best: BestByLeaves, price: Fraction, most: int | None) -> int:
    """Return the number of leaves whose best tree has the highest objective, the smallest among equals.

    `price` is that of a leaf, in correct rows or in their gain.
    """
    numbers = range(1, min(most or len(best.correct), len(best.correct)) + 1)
    return max(numbers, key=lambda leaves: (best.correct[leaves - 1] - price * leaves, -leaves))


class Oriented(NamedTuple):
    """A split, the counted question that it asks, and whether the answer yes to this question goes left."""

    base: int
    split: Split
    one_left: bool


def mirrored_questions(counts: Counts) -> list[int]:
    """Return the questions about a category whose column has no other question.

    Wishes distinguish the sides of a split, so the question about the other categories follows the counted ones.
    """
    features = counts.questions.encoding.features
    columns = [feature.column for feature in features]
    return [q for q, f in enumerate(features) if f.test is Test.LEVEL and columns.count(f.column) == 1]


def oriented(counts: Counts, question: int) -> Oriented:
    """Return the split of a question; from the number of counted questions on, they are the mirrored ones."""
    encoding = counts.questions.encoding
    if question < len(encoding.features):
        return Oriented(question, *encoding.features[question].split())
    base = mirrored_questions(counts)[question - len(encoding.features)]
    feature = encoding.features[base]
    categories = range(len(encoding.schema[feature.column].categories))
    others = tuple(code for code in categories if code != feature.level)
    return Oriented(base, Subset(feature=feature.column, codes=others), False)


def tree_of(shape: Shape, counts: Counts, objective: CountedObjective) -> Tree:
    """Return the tree of a shape with the counts of every node; suppressed numbers count as their lower bounds."""
    encoding = counts.questions.encoding
    nodes: list[Node] = []
    queue: deque[tuple[Shape, set[int], set[int], int]] = deque([(shape, set(), set(), 0)])
    while queue:
        item, yes, no, above = queue.popleft()
        counts_of_node, _ = counts.of_path(yes, no)
        label = int(objective.gain_of(counts_of_node).argmax()) if counts_of_node.any() else above
        number = len(nodes)
        tally = tuple(counts_of_node.tolist())
        if not isinstance(item, tuple):
            nodes.append(Node(id=number, counts=tally, label=label if item < 0 else item))
            continue
        question, zero, one = item
        base, split, one_left = oriented(counts, question)
        child = len(nodes) + len(queue) + 1
        nodes.append(Node(id=number, counts=tally, label=label, split=split, left=child, right=child + 1))
        below = [(one, yes | {base}, no, label), (zero, yes, no | {base}, label)]
        queue.extend(below if one_left else below[::-1])
    return Tree(schema=encoding.schema, classes=counts.questions.classes, nodes=tuple(nodes))


def node_paths(tree: Tree, counts: Counts) -> list[tuple[int, set[int], set[int]]]:
    """Return each node with the questions that its rows answer with yes and with no."""
    numbers = range(len(counts.questions) + len(mirrored_questions(counts)))
    question_of_split = {(split, one_left): q for q, split, one_left in (oriented(counts, k) for k in numbers)}
    paths = []
    queue: list[tuple[int, set[int], set[int]]] = [(0, set(), set())]
    while queue:
        number, yes, no = queue.pop()
        paths.append((number, yes, no))
        node = tree.nodes[number]
        if node.split is None:
            continue
        one_left = (node.split, True) in question_of_split
        question = question_of_split[node.split, one_left]
        queue.append((node.left if one_left else node.right, yes | {question}, no))
        queue.append((node.right if one_left else node.left, yes, no | {question}))
    return paths


def _judge(tree: Tree, counts: Counts, fold: int | None) -> dict[str, Any]:
    """Return rows, correct rows, accuracy and confusion matrix of one fold or of all rows.

    With suppression, the correct rows are a lower bound, and there is no confusion matrix.
    """
    classes = len(tree.classes)
    confusion = np.zeros((classes, classes), np.int64)
    for number, yes, no in node_paths(tree, counts):
        if tree.nodes[number].split is None:
            confusion[:, tree.nodes[number].label] += counts.of_path(yes, no, fold)[0]
    correct = int(np.trace(confusion))
    if counts.suppress:  # suppressed counts are lower bounds, whose sum is not the number of rows
        return {"n": counts.rows, "correct": correct, "accuracy": correct / counts.rows}
    n = int(confusion.sum())
    return {"n": n, "correct": correct, "accuracy": correct / n if n else 0.0, "confusion": confusion.tolist()}


def _cost_metrics(tree: Tree, objective: CountedObjective) -> dict[str, Any]:
    """Return the members of the training metrics about costs; empty without costs."""
    costs = objective.costs
    if costs is None:
        return {}
    rows = np.zeros_like(costs.values)
    for leaf in tree.leaves:
        rows[:, leaf.label] += np.array(leaf.counts, np.int64)
    by_class = rows * costs.values
    cost = int(by_class.sum())
    return {
        "cost": costs.in_unit(cost),
        "cost_per_row": costs.in_unit(Fraction(cost, objective.rows)),
        "constant_cost": costs.in_unit(costs.constants[costs.best_constant]),
        "cost_confusion": [[costs.in_unit(int(cell)) for cell in row] for row in by_class],
    }


def _rows(counts: Counts, fold_trees: list[Tree] | None) -> dict[str, Any]:
    """Return the record of rows for the model file: how many were counted, and the trees of the folds."""
    trees = None if fold_trees is None else [tree.to_json() for tree in fold_trees]
    return {"used": counts.rows, "held_out": None, "folds": None, "weights": None, "fold_trees": trees}


def cross_validate(
    counts: Counts, settings: Settings, objective: CountedObjective
) -> tuple[dict[str, Any], list[Tree]]:
    """Cross-validate the settings: evaluate the best tree of the other folds on each fold.

    Return the metrics and the trees.
    """
    total = counts.total[0]
    classes = len(counts.questions.classes)
    confusion = np.zeros((classes, classes), np.int64)
    accuracies: list[float] = []
    trees: list[Tree] = []
    for fold, fold_counts in enumerate(counts.low):
        training_counts = total - fold_counts
        rows = int(training_counts[:, 0].sum())
        if not rows or not fold_counts[:, 0].any():
            ended = f"fold {fold + 1} of {counts.folds} has no rows to judge or to train on"
            return {"folds": counts.folds, "finished": fold, "accuracies": accuracies, "ended": ended}, trees
        trained = objective.of_rows(training_counts[:, 0])
        search = tree_search(counts, settings, training_counts, training_counts, trained.gains)
        try:
            shape = best_shape(search, settings, trained, setting_names(counts))
        except InfeasibleError as error:
            ended = f"fold {fold + 1} of {counts.folds}: {error}"
            return {"folds": counts.folds, "finished": fold, "accuracies": accuracies, "ended": ended}, trees
        tree = tree_of(shape, _without(counts, training_counts), trained)
        judged = _judge(tree, counts, fold)
        confusion += np.asarray(judged["confusion"])
        accuracies.append(judged["accuracy"])
        trees.append(tree)
    judged_rows = int(np.trace(confusion)), int(confusion.sum())
    sizes = [tree.n_leaves for tree in trees]
    return crossed_metrics(counts.folds, accuracies, sizes, confusion, judged_rows), trees


def _without(counts: Counts, rest: CountArray) -> Counts:
    """Return the counts of the rows of all folds but one."""
    one = rest[None]
    return replace(counts, low=one, high=one, key=None)


def certify_counts(
    counts: Counts,
    settings: Settings,
    tree: Tree,
    objective: CountedObjective,
    seconds: float,
    upper: BestByLeaves | None = None,
) -> Certificate:
    """Return the claim: the bound is the highest objective that the counts allow.

    `upper` are the best trees at the upper ends of suppressed counts. Without it, the tree is optimal.
    """
    n = counts.rows
    correct = sum(leaf.counts[leaf.label] for leaf in tree.leaves)
    gain = gain_of(tree, objective)
    value = objective.value(gain, tree.n_leaves)
    bound = value
    if upper is not None:
        # upper bounds from suppressed counts may exceed the number of rows
        capped = replace(upper, correct=tuple(min(most, objective.total) for most in upper.correct))
        leaves = cheapest(capped, objective.price, settings["max_leaves"])
        bound = max(objective.value(capped.correct[leaves - 1], leaves), value)
    closed = bound == value
    secret = (
        ""
        if not counts.suppress
        else f"Numbers below {counts.suppress} are secret: the tree is right in at least {correct} rows, and each node has at "
        "least the rows that it lists."
    )
    return Certificate(
        method=METHOD,
        guarantee=Guarantee.TREE,
        status=Status.OPTIMAL if closed else Status.INTERVALS,
        objective=float(value),
        bound=float(bound),
        gap=0.0 if closed else relative_gap(float(value), float(bound)),
        scope=scope_sentence(get(METHOD), settings, space_words(counts)),
        correct=correct,
        n=n,
        leaves=tree.n_leaves,
        depth=tree.depth,
        leaf_penalty=str(objective.price / objective.total),
        seconds=seconds,
        solver="octweb",
        solver_version=VERSION,
        evidence=(_evidence(counts),),
        note=secret,
        costs=_cost_record(objective, gain, tree.n_leaves),
        counts=counts.sha256,
    )


def _cost_record(objective: CountedObjective, gain: int, leaves: int) -> dict[str, Any] | None:
    """Return the record of costs for the certificate of an optimal tree; None without costs."""
    costs = objective.costs
    if costs is None:
        return None
    cost = costs.most - gain
    return costs.record(cost=cost, price=objective.price, least=cost + objective.price * leaves)


def _evidence(counts: Counts) -> dict[str, Any]:
    """Return what the certificate states about the source: rows and parts, and the snapshot of a database."""
    record = {"kind": Evidence.COUNTS, "source": counts.source, "parts": len(counts.parts), "rows": counts.rows}
    return record | ({"snapshot": counts.origin["snapshot"]} if "snapshot" in counts.origin else {})


def space_words(counts: Counts) -> str:
    """Describe the number and the kinds of the questions of the counts."""
    encoding = counts.questions.encoding
    levels = sum(encoding.schema[f.column].kind is ColumnKind.CATEGORICAL for f in encoding.features)
    others = len(encoding.features) - levels
    parts = [count_noun(others, "question about numbers", "questions about numbers")] if others else []
    parts += [count_noun(levels, "category", "categories")] if levels else []
    return f"{' and '.join(parts) or 'no question'} of the counts"


def _summary(model: ModelFile, certificate: Certificate, counts: Counts) -> dict[str, Any]:
    """Return the record that `train --json` prints."""
    claim = read_claim(model.certificate)
    summary = {
        "method": METHOD, "status": str(certificate.status), "claim": claim.words, "proved_optimal": claim.proved_optimal,
        "objective": certificate.objective, "bound": certificate.bound, "gap": certificate.gap, "scope": certificate.scope,
        "unproved": certificate.unproved, "note": certificate.note, "train_accuracy": certificate.correct / certificate.n,
        "correct": certificate.correct, "n": certificate.n, "features": len(counts.questions.encoding.schema),
        "encoded_features": len(counts.questions), "classes": list(counts.questions.classes), "depth": certificate.depth,
        "leaves": certificate.leaves, "count_unit": "rows", "seconds": certificate.seconds, "solver": certificate.solver,
        "solver_version": certificate.solver_version, "version": model.version, "counts": counts.sha256,
        "counted": {"rows": counts.rows, "source": counts.source, "parts": len(counts.parts), "suppress": counts.suppress},
        "metrics": {name: {k: v for k, v in m.items() if k != "confusion"} for name, m in model.metrics.items()},
    }  # fmt: skip
    summary |= cost_summary(certificate)
    summary["proof"] = next((e for e in certificate.evidence if e["kind"] == Evidence.PROOF), None)
    unseen = unseen_accuracy(model.metrics)
    return summary if unseen is None else summary | {"unseen_accuracy": unseen}
