"""Describe one node of the tree for the inspector."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from octweb.figures.split.impurity import best_threshold, gini_rows
from octweb.registry.page.scene import TRAINING, ModelScene
from trainer.table import ColumnKind, EmptySide
from trainer.training import single_leaf
from trainer.tree.describe import counted_words, headline, is_weighted, number_text, split_text
from trainer.tree.idle import idle_questions
from trainer.tree.nodes import Node, Tree
from trainer.tree.numbers import schema_number
from trainer.tree.render.layout import CARD_NAME, leaves_below
from trainer.tree.render.names import short_names
from trainer.tree.render.outline import class_bar
from trainer.tree.render.palette import NAME_LENGTH, swatch
from trainer.tree.splits import Threshold, goes_left

LABEL = 16  # letters of a class in the table that compares both answers
HEAVY = 3  # the headline of a hyperplane names this many terms
MAX_SINGLE_CELLS = 4_000_000  # rows × columns; in larger data, the best single column is not searched


def node_facts(scene: ModelScene) -> dict[str, Any]:
    """Return number, path, rule or answer, rows and class bar of the node.

    For a tree with one leaf, also the reason.
    """
    v = scene.node
    tree = scene.tree
    return {
        "id": v.id,
        "leaf": v.is_leaf,
        "answers": _answers(tree, v.id),
        "rows": v.rows,
        "all": tree.nodes[0].rows,
        "counted": len(scene.reaching(v.id, TRAINING))
        if scene.rows is not None and is_weighted(scene.file.certificate)
        else None,
        "unit": counted_words(scene.file.certificate),
        "title": headline(tree, v),
        "reason": single_leaf.reason(scene.file),
        "exact": split_text(v.split, tree.schema) + v.split.empty_note() if v.split is not None else "",
        "bar": class_bar(tree, v),
        "parent": tree.parents[v.id],
        "below": 0 if v.is_leaf else len(leaves_below(tree, v.id)),
    }


def _answers(tree: Tree, node: int) -> list[str]:
    """Return the answers on the path from the root."""
    return ["yes" if b == tree.nodes[a].left else "no" for a, b in itertools.pairwise(tree.path_to(node))]


def path_rules(scene: ModelScene, node: int) -> list[dict[str, Any]]:
    """Return the splits on the path to a node, with their answers."""
    tree = scene.tree
    steps = []
    for a, b in itertools.pairwise(tree.path_to(node)):
        v = tree.nodes[a]
        steps.append({"id": a, "rule": headline(tree, v).rstrip("?"), "answer": "yes" if b == v.left else "no"})
    return steps


def sides(scene: ModelScene) -> list[dict[str, Any]]:
    """Return for both children: rows, class, share on training rows, share on unseen rows with its interval. [] for a leaf."""
    v = scene.node
    tree = scene.tree
    if v.is_leaf:
        return []
    tests = _tests(scene)
    return [
        _side(scene, answer, tests[answer], tree.nodes[child]) for answer, child in (("yes", v.left), ("no", v.right))
    ]


def _tests(scene: ModelScene) -> dict[str, str]:
    """Return the condition for each answer of a threshold split, such as "≤ 75"."""
    split = scene.node.split
    cut = split.cut if split is not None else None
    if split is None or cut is None or scene.tree.schema[cut[0]].kind is ColumnKind.BINARY:
        return {"yes": "", "no": ""}
    column = scene.tree.schema[cut[0]]
    word = column.rank_word(cut[1])
    threshold = schema_number(column, cut[1])
    tests = {"yes": f"≤\u00a0{threshold}", "no": f">\u00a0{threshold}"}
    if word is not None:
        tests = {"yes": f"at most {word}", "no": f"above {word}"}
    if split.missing in (EmptySide.LEFT, EmptySide.RIGHT) and split.missing_seen:
        tests["yes" if split.missing is EmptySide.LEFT else "no"] += " or empty"
    return tests


def _side(scene: ModelScene, answer: str, test: str, child: Node) -> dict[str, Any]:
    right, n = scene.unseen_of(child)
    return {
        "answer": answer,
        "test": test,
        "id": child.id,
        "rows": child.rows,
        "label": short_names(scene.tree.class_words, LABEL)[child.label],
        "full": scene.tree.class_words[child.label],
        "look": swatch(child.label, len(scene.tree.classes)),
        "share": child.counts[child.label] / child.rows if child.rows else None,
        "unseen": right / n if n else None,
        "unseen_rows": n,
        "interval": scene.unseen_interval_of(child),
    }


def answer_facts(scene: ModelScene) -> dict[str, Any]:
    """Return the facts about a leaf: training and unseen rows per class, and the share of correct unseen rows."""
    v = scene.node
    tree = scene.tree
    right, n = scene.unseen_of(v)
    unseen = scene.unseen_counts[v.id]
    classes: list[dict[str, Any]] = [
        {
            "label": label,
            "look": swatch(k, len(tree.classes)),
            "rows": v.counts[k],
            "share": v.counts[k] / v.rows if v.rows else None,
            "unseen": int(unseen[k]),
        }
        for k, label in enumerate(tree.classes)
        if v.counts[k] or unseen[k]
    ]
    classes.sort(key=lambda c: -c["rows"])
    return {
        "classes": classes,
        "unseen_rows": n,
        "unseen": right / n if n else None,
        "interval": scene.unseen_interval_of(v),
    }


def leaves_under(scene: ModelScene) -> list[dict[str, Any]]:
    """Return the leaves below the node, largest first, each with its last split."""
    tree = scene.tree
    leaves: list[dict[str, Any]] = []
    for leaf in leaves_below(tree, scene.node.id):
        parent = tree.nodes[tree.parents[leaf.id]]
        leaves.append(
            {
                "id": leaf.id,
                "label": tree.class_words[leaf.label],
                "look": swatch(leaf.label, len(tree.classes)),
                "rows": leaf.rows,
                "share": leaf.counts[leaf.label] / leaf.rows if leaf.rows else None,
                "last": headline(tree, parent).rstrip("?"),
                "answer": "yes" if leaf.id == parent.left else "no",
            }
        )
    return sorted(leaves, key=lambda leaf: -leaf["rows"])


def idle_at(scene: ModelScene) -> int:
    """Count the splits at or below the node that change no prediction."""
    below = scene.below(scene.node.id)
    return sum(bool(below[v]) for v in idle_questions(scene.tree))


# The functions below describe multivariate splits.


def terms(scene: ModelScene) -> dict[str, Any] | None:
    """Return the weighted sum of the node's split as a table, or None for other splits.

    Each term has its coefficient, its weight per standard deviation, and its share of the total weight. Standard
    deviations are those of the training rows that reach the node. A positive weight favours "no".
    """
    return _terms(scene, scene.node)


def heaviest(scene: ModelScene) -> dict[int, tuple[str, ...]]:
    """Return for each multivariate split the lines of its card: its heaviest columns, and the number of others."""
    lines_by_node = {}
    for v in scene.tree.branches:
        if v.split is not None and v.split.many and (weighed := _terms(scene, v, CARD_NAME)) is not None:
            lines = [f"{t['short']}  {100 * t['share']:.0f}\u202f%" for t in weighed["heavy"]]
            lines_by_node[v.id] = (*lines, f"+ {weighed['more']} more") if weighed["more"] else tuple(lines)
    return lines_by_node


def _terms(scene: ModelScene, v: Node, length: int = NAME_LENGTH) -> dict[str, Any] | None:
    """Return the terms of a node, with names of about `length` characters. None if its split is not a weighted sum."""
    tree = scene.tree
    if v.split is None or v.split.weighted is None:
        return None
    weighed, threshold = v.split.weighted
    names = short_names([c.name for c in tree.schema], length)
    X = scene.rows.matrix[scene.reaching(v.id, "training")] if scene.rows is not None else None
    terms: list[dict[str, Any]] = []
    for f, level, a in weighed:
        column = tree.schema[f]
        value = None
        if X is not None:
            value = X[:, f] if level < 0 else (X[:, f] == level).astype(float)
        spread = None if value is None or not np.isfinite(value).any() else float(np.nanstd(value))
        terms.append(
            {
                "name": column.name if level < 0 else f"{column.name} is {column.categories[level]}",
                "short": names[f] if level < 0 else f"{names[f]} is {column.categories[level]}",
                "unit": column.unit,
                "coefficient": number_text(a, full=True),
                "weight": None if spread is None else a * spread,
                "size": abs(a if spread is None else a * spread),
            }
        )
    terms.sort(key=lambda t: -t["size"])
    total = sum(t["size"] for t in terms) or 1.0
    for t in terms:
        t["share"] = t["size"] / total
        t["weight_text"] = None if t["weight"] is None else number_text(t["weight"])
    return {
        "terms": terms,
        "heavy": terms[:HEAVY],
        "more": max(0, len(terms) - HEAVY),
        "first_ten": sum(t["share"] for t in terms[:10]),
        "threshold": number_text(threshold, full=True),
        "many": len(terms) > 2,
    }


def best_single(scene: ModelScene) -> dict[str, Any] | None:
    """Return the threshold split on one numeric column with the lowest Gini impurity, with the impurity of the node's split.

    Return None for leaves, without rows, for too large tables, and if no threshold separates rows.
    """
    v = scene.node
    tree = scene.tree
    rows = scene.rows
    if rows is None or v.split is None:
        return None
    at = scene.reaching(v.id, "training")
    if len(at) * len(tree.schema) > MAX_SINGLE_CELLS:
        return None
    X = rows.matrix[at]
    codes = rows.codes[at]
    classes = len(tree.classes)
    best = None
    for j, column in enumerate(tree.schema):
        if column.kind is ColumnKind.CATEGORICAL:
            continue
        candidate = best_threshold(X[:, j], codes, classes)
        if candidate is not None and (best is None or candidate[1] < best[0]):
            best = (candidate[1], j, candidate[0])
    if best is None:
        return None
    impurity, j, cut = best
    node_impurity = gini_rows(codes, goes_left(v.split, X), classes)
    return {
        "rule": split_text(Threshold(feature=j, threshold=cut), tree.schema),
        "impurity": impurity,
        "own": node_impurity,
        "before": gini_rows(codes, np.ones(len(codes), bool), classes),
        "same": v.split.cut is not None and v.split.cut[0] == j and abs(impurity - node_impurity) < 1e-9,
    }
