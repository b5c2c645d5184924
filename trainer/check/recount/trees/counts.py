"""Count classes in the nodes of a tree; compute objective and metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, read_fraction
from trainer.check.recount.findings import TOLERANCE, Finding, recount_finding
from trainer.check.recount.table.rows import TableRows, take_rows, without_class_weights
from trainer.check.recount.tree import branches, leaves, places

Counts = list[list[int]]  # the weight of each class at each node


def route(nodes: Sequence[dict[str, Any]], columns: Sequence[dict[str, Any]], rows: ModelTable) -> np.ndarray:
    """Return the leaf of each row, int64 of shape (n,)."""
    at = np.zeros(len(rows), np.int64)
    for i, node_rows, left in split_rows(nodes, columns, rows):
        at[node_rows] = np.where(left, nodes[i]["left"], nodes[i]["right"])
    return at


def split_rows(
    nodes: Sequence[dict[str, Any]], columns: Sequence[dict[str, Any]], rows: ModelTable
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each branch: its node, the rows that reach it, and for each of them whether it goes left."""
    waiting = {0: np.arange(len(rows))}
    for i, node in enumerate(nodes):
        node_rows = waiting.pop(i)
        if "split" in node:
            left = _goes_left(node["split"], columns, rows.columns, node_rows)
            waiting[node["left"]] = node_rows[left]
            waiting[node["right"]] = node_rows[~left]
            yield i, node_rows, left


def _goes_left(
    split: dict[str, Any], columns: Sequence[dict[str, Any]], values: Sequence[np.ndarray], node_rows: np.ndarray
) -> np.ndarray:
    place = {c["name"]: j for j, c in enumerate(columns)}
    kind = split["kind"]
    empty_left = split.get("missing") == "left"
    if kind == "linear":
        # the sum starts at 0 and adds in the listed order, as the format prescribes, because rounding depends on the
        # order
        total = np.zeros(len(node_rows))
        tests = split.get("categories") or [None] * len(split["features"])
        for name, factor, category in zip(split["features"], split["coefficients"], tests, strict=True):
            total = total + factor * _term_values(columns[place[name]], values[place[name]][node_rows], category, split)
        return np.where(np.isnan(total), empty_left, total <= split["threshold"])
    value = values[place[split["feature"]]][node_rows]
    if kind == "missing":
        return np.isnan(value)
    if kind == "subset":
        names = columns[place[split["feature"]]]["categories"]
        return np.isin(value, [names.index(word) for word in split["categories"]])
    if kind == "threshold":
        left = value <= split["threshold"]
    else:
        low = -math.inf if split["low"] is None else split["low"]
        high = math.inf if split["high"] is None else split["high"]
        left = (low < value) & (value <= high)
    return np.where(np.isnan(value), empty_left, left)


def _term_values(column: dict[str, Any], value: np.ndarray, category: str | None, split: dict[str, Any]) -> np.ndarray:
    """Return the value of a term of a sum in each row, float64 of shape (n,), NaN for an empty cell without a fill."""
    if category is None:
        return np.where(np.isnan(value), column["fill"], value) if split.get("missing") == "fill" else value
    if column["kind"] == "categorical":
        return (value == column["categories"].index(category)).astype(np.float64)
    return np.isnan(value).astype(np.float64)


def count_nodes(model: dict[str, Any], nodes: Sequence[dict[str, Any]], rows: ModelTable) -> tuple[np.ndarray, Counts]:
    """Return the leaf of each row, and the class counts of every node."""
    leaf = route(nodes, model["columns"], rows)
    counts = np.zeros((len(nodes), len(model["classes"])), np.int64)
    np.add.at(counts, (leaf, rows.labels), rows.weights)
    for v in reversed(branches(nodes)):  # children follow their parent in the list, so the reverse order sums bottom-up
        counts[v["id"]] = counts[v["left"]] + counts[v["right"]]
    return leaf, counts.tolist()


def check_node_counts(nodes: Sequence[dict[str, Any]], counts: Counts) -> Finding:
    """Check the class counts that the file lists for each node."""
    for node, counted in zip(nodes, counts, strict=True):
        if node["counts"] != counted:
            return recount_finding(
                "counts", False, f"Node {node['id']} is reached by {counted}, not {node['counts']}.", "basis"
            )
    return recount_finding("counts", True, "Every node is reached by the rows that the file lists.", "basis")


def penalty(model: dict[str, Any]) -> Fraction:
    """Return the price of a leaf as a share of the rows."""
    return read_fraction(model["certificate"].get("leaf_penalty") or "0")


def value_of(model: dict[str, Any], nodes: Sequence[dict[str, Any]], counts: Counts) -> tuple[int, Fraction]:
    """Return the correct rows of a tree, and its objective without a goal."""
    classes = model["classes"]
    tree_leaves = leaves(nodes)
    correct = sum(counts[v["id"]][classes.index(v["class"])] for v in tree_leaves)
    value = Fraction(correct, sum(counts[0])) - penalty(model) * len(tree_leaves)
    if model["certificate"].get("coefficient_penalty"):
        value -= read_fraction(model["certificate"]["coefficient_penalty"]) * terms(model, nodes)
    return correct, value


def check_objective(model: dict[str, Any], counts: Counts, value: Fraction) -> list[Finding]:
    """Check the numbers of the certificate that follow from the counts; `value` is the recomputed objective."""
    certificate = model["certificate"]
    nodes = model["nodes"]
    out = []
    correct = value_of(model, nodes, counts)[0]
    if certificate.get("goal"):
        _, meets_shares = _goal(certificate["goal"], model["classes"], counts, nodes)
        out.append(recount_finding("required shares", meets_shares, "Sensitivity and specificity recounted."))
    depth = max(map(len, places(nodes)))
    for claim, counted in (
        ("correct", correct),
        ("leaves", len(leaves(nodes))),
        ("depth", depth),
        ("n", sum(counts[0])),
    ):
        if claim in certificate:
            words = f"recounted {counted}, claimed {certificate[claim]}"
            out.append(recount_finding(claim, certificate[claim] == counted, words, "basis"))
    if certificate.get("objective") is not None:
        words = f"recomputed {value} = {float(value):.12g}, claimed {certificate['objective']}"
        out.append(
            recount_finding(
                "objective", abs(read_fraction(certificate["objective"]) - value) <= TOLERANCE, words, "basis"
            )
        )
    return out


def check_weight_counts(model: dict[str, Any], data: TableRows, leaf: np.ndarray) -> list[Finding]:
    """Check the rows that the certificate counts besides their weights; `leaf` is the leaf of each training row."""
    rows = model.get("rows") or {}
    stated, classes = (model["certificate"].get(name) for name in ("weights", "class_weights"))
    labels = data.training.labels
    answers = np.array([model["classes"].index(v.get("class", model["classes"][0])) for v in model["nodes"]])
    counted = {"rows": len(labels), "correct_rows": int((answers[leaf] == labels).sum())}
    words = f"{counted['correct_rows']} of {counted['rows']} rows are right"
    found = []
    if stated is not None or rows.get("weight"):
        expected = counted | {name: rows.get("weight", {}).get(name) for name in ("column", "step")}
        found.append(recount_finding("rows beside weights", stated == expected, words))
    balanced = (model.get("parameters") or {}).get("class_weight") == "balanced"
    error = class_weight_error(model, data.training) if balanced else 0.0
    if classes is not None or error:
        factors = class_factors(model, data.training)
        expected = counted | {"weights": factors} | ({"error": error} if error else {})
        is_weighted = set(factors.values()) != {"1"} or error > 0
        found.append(recount_finding("weights of classes", is_weighted and classes == expected, words))
    return found


def class_factors(model: dict[str, Any], rows: ModelTable) -> dict[str, str]:
    """Return what a row of each class counts in the objective, per step of its own weight, as a fraction."""
    classes = range(len(model["classes"]))
    sums = [[int(weights[rows.labels == k].sum()) for k in classes] for weights in (rows.weights, rows.plain)]
    return {
        name: str(Fraction(weight, plain)) for name, weight, plain in zip(model["classes"], *sums, strict=True) if plain
    }


def class_weight_error(model: dict[str, Any], rows: ModelTable) -> float:
    """Return how much rounded class weights change a mean of recalls at most: half of what shares of rows differ from the exact ones."""
    parts = [rows.labels == k for k in range(len(model["classes"]))]
    parts = [part for part in parts if rows.plain[part].any()]
    total = int(rows.weights.sum())
    error = Fraction(0)
    for part in parts:
        heavy = len(parts) * int(rows.plain[part].sum())
        differences = (
            abs(w * heavy - p * total)
            for w, p in zip(rows.weights[part].tolist(), rows.plain[part].tolist(), strict=True)
        )
        error += Fraction(sum(differences), total * heavy)
    return float(error / 2)


def tree_objective(model: dict[str, Any], counts: Counts) -> Fraction:
    """Return the exact objective of the tree of the file."""
    goal = model["certificate"].get("goal")
    nodes = model["nodes"]
    if not goal:
        return value_of(model, nodes, counts)[1]
    return _goal(goal, model["classes"], counts, nodes)[0] - penalty(model) * len(leaves(nodes))


def _goal(
    goal: dict[str, Any], classes: list[str], counts: Counts, nodes: Sequence[dict[str, Any]]
) -> tuple[Fraction, bool]:
    """Return the maximised share, and whether the tree meets the required ones."""
    k = classes.index(goal["positive"])
    positives = counts[0][k]
    negatives = sum(counts[0]) - counts[0][k]
    tp = sum(counts[v["id"]][k] for v in leaves(nodes) if v["class"] == classes[k])
    tn = sum(sum(counts[v["id"]]) - counts[v["id"]][k] for v in leaves(nodes) if v["class"] != classes[k])
    return goal_value(goal, tp, positives, tn, negatives)


def goal_value(
    goal: dict[str, Any], tp: int | Fraction, positives: int, tn: int | Fraction, negatives: int
) -> tuple[Fraction, bool]:
    """Return the maximised share, and whether the required ones are met, from the correct rows of both classes."""
    measures = {
        "sensitivity": Fraction(tp, positives) if positives else Fraction(1),
        "specificity": Fraction(tn, negatives) if negatives else Fraction(1),
    }
    meets_shares = all(
        goal.get(name) is None or measure >= read_fraction(goal[name]) - TOLERANCE for name, measure in measures.items()
    )
    weight = read_fraction(goal.get("weight") or 1)
    measures["accuracy"] = (tp + weight * tn) / (positives + weight * negatives)
    predicted_positive = tp + negatives - tn
    measures["f1"] = Fraction(2 * tp, predicted_positive + positives) if predicted_positive + positives else Fraction(1)
    measures["mcc"] = _matthews(
        tp * tn - (positives - tp) * (negatives - tn),
        positives * negatives * predicted_positive * (positives + negatives - predicted_positive),
    )
    return measures[goal["maximise"]], meets_shares


def _matthews(difference: int | Fraction, product: int | Fraction) -> Fraction:
    """Divide the difference by the root of the product, rounded to 30 digits; 0 for a product of 0."""
    if not product:
        return Fraction(0)
    root = Fraction(math.isqrt(difference**2 * 10**60 // product), 10**30)
    return root if difference >= 0 else -root


def terms(model: dict[str, Any], nodes: Sequence[dict[str, Any]]) -> int:
    """Count the terms of all splits.

    A sum has its terms. A set of categories has the size of the smaller of the set and its complement, at least 1.
    """
    levels = {c["name"]: len(c.get("categories") or []) for c in model["columns"]}
    number = 0
    for split in (v["split"] for v in branches(nodes)):
        if split["kind"] == "linear":
            number += len(split["features"])
        elif split["kind"] == "subset":
            size = len(split["categories"])
            number += max(1, min(size, levels[split["feature"]] - size))
        else:
            number += 1
    return number


# -- metrics -----------------------------------------------------------------------------------------------------------


def check_metrics(model: dict[str, Any], data: TableRows, counts: Counts) -> list[Finding]:
    """Check the accuracies on the training rows, whose class counts are `counts`, and on the held-out rows."""
    stated = model.get("metrics") or {}
    part_counts = {"train": counts} if "train" in stated else {}
    if "test" in stated:
        part_counts["test"] = count_nodes(
            model, model["nodes"], without_class_weights(take_rows(data.rows, data.held_out))
        )[1]
    tables = {
        name: confusion_of(model, model["nodes"], node_counts_of_part)
        for name, node_counts_of_part in part_counts.items()
    }
    numbers = {"train": int(data.trains.sum()), "test": int(data.held_out.sum())}
    for name in part_counts:
        if stated[name].get("rows", numbers[name]) != numbers[name]:
            words = f"{numbers[name]} rows of positive weight are counted, not {str(stated[name]['rows'])[:40]}."
            return [recount_finding(f"metrics {name}", False, words)]
    weights = {"train": data.training.weights, "test": data.rows.plain[data.held_out]}
    return [
        check_metric(f"metrics {name}", stated[name], table, counted_unit(weights[name]))
        for name, table in tables.items()
    ]


def counted_unit(weights: np.ndarray) -> str:
    """Return the unit of counts of rows with these weights: "rows" or "weights"."""
    return "rows" if (weights == 1).all() else "weights"


def confusion_of(model: dict[str, Any], nodes: Sequence[dict[str, Any]], counts: Counts) -> np.ndarray:
    """Return the confusion matrix: rows of each class by predicted class."""
    confusion = np.zeros((len(model["classes"]),) * 2, np.int64)
    for v in leaves(nodes):
        confusion[:, model["classes"].index(v["class"])] += counts[v["id"]]
    return confusion


def check_metric(claim: str, stated: dict[str, Any], confusion: np.ndarray, unit: str = "rows") -> Finding:
    n = int(confusion.sum())
    correct = int(np.trace(confusion))
    counted: dict[str, Any] = {"n": n, "correct": correct, "confusion": confusion.tolist()}
    holds = n > 0 and all(stated.get(name, value) == value for name, value in counted.items())
    holds = holds and (
        "accuracy" not in stated or abs(read_fraction(stated["accuracy"]) - Fraction(correct, n)) <= TOLERANCE
    )
    return recount_finding(claim, holds, f"{correct} of {n} {unit} are right")
