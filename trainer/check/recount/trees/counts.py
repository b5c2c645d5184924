"""What the rows say of a tree: the class counts of its nodes, and the objective and the metrics that follow from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, read_fraction
from trainer.check.recount.findings import TOLERANCE, Finding, recounted
from trainer.check.recount.table.rows import TableRows, take_rows, unweighted
from trainer.check.recount.tree import branches, leaves, places

Counts = list[list[int]]  # of each node the weight of each class


def route(nodes: Sequence[dict], columns: Sequence[dict], rows: ModelTable) -> np.ndarray:
    """The leaf of each row, int64 (n,)."""
    at = np.zeros(len(rows), np.int64)
    for i, own, left in split_rows(nodes, columns, rows):
        at[own] = np.where(left, nodes[i]["left"], nodes[i]["right"])
    return at


def split_rows(
    nodes: Sequence[dict], columns: Sequence[dict], rows: ModelTable
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Each question: its node, the numbers of the rows that come to it, and for each of them whether it goes to the left."""
    here = {0: np.arange(len(rows))}
    for i, node in enumerate(nodes):
        own = here.pop(i)
        if "split" in node:
            left = _goes_left(node["split"], columns, rows.columns, own)
            here[node["left"]], here[node["right"]] = own[left], own[~left]
            yield i, own, left


def _goes_left(split: dict, columns: Sequence[dict], values: Sequence[np.ndarray], own: np.ndarray) -> np.ndarray:
    place = {c["name"]: j for j, c in enumerate(columns)}
    kind = split["kind"]
    empty_left = split.get("missing") == "left"
    if kind == "linear":
        total = np.zeros(len(own))  # from 0 in the listed order, as the format says
        tests = split.get("categories") or [None] * len(split["features"])
        for name, factor, category in zip(split["features"], split["coefficients"], tests, strict=True):
            total = total + factor * _term(columns[place[name]], values[place[name]][own], category, split)
        return np.where(np.isnan(total), empty_left, total <= split["threshold"])
    value = values[place[split["feature"]]][own]
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


def _term(column: dict, value: np.ndarray, category: str | None, split: dict) -> np.ndarray:
    """Return what a term of a sum reads in each row, float64 (n,), NaN for an empty cell that nothing fills."""
    if category is None:
        return np.where(np.isnan(value), column["fill"], value) if split.get("missing") == "fill" else value
    if column["kind"] == "categorical":
        return (value == column["categories"].index(category)).astype(np.float64)
    return np.isnan(value).astype(np.float64)


def count_nodes(model: dict[str, Any], nodes: Sequence[dict], rows: ModelTable) -> tuple[np.ndarray, Counts]:
    """The leaf of each row, and the class counts of every node."""
    leaf = route(nodes, model["columns"], rows)
    counts = np.zeros((len(nodes), len(model["classes"])), np.int64)
    np.add.at(counts, (leaf, rows.labels), rows.weights)
    for v in reversed(branches(nodes)):  # children come after their parent
        counts[v["id"]] = counts[v["left"]] + counts[v["right"]]
    return leaf, counts.tolist()


def node_counts(nodes: Sequence[dict], counts: Counts) -> Finding:
    """Whether every node is reached by the rows that the file lists for it."""
    for node, own in zip(nodes, counts, strict=True):
        if node["counts"] != own:
            return recounted("counts", False, f"Node {node['id']} is reached by {own}, not {node['counts']}.", "basis")
    return recounted("counts", True, "Every node is reached by the rows that the file lists.", "basis")


def penalty(model: dict[str, Any]) -> Fraction:
    """What a leaf costs, a share of the rows."""
    return read_fraction(model["certificate"].get("leaf_penalty") or "0")


def value_of(model: dict[str, Any], nodes: Sequence[dict], counts: Counts) -> tuple[int, Fraction]:
    """The rows that are right in their leaf, and the objective of the certificate without a goal."""
    classes = model["classes"]
    own = leaves(nodes)
    correct = sum(counts[v["id"]][classes.index(v["class"])] for v in own)
    value = Fraction(correct, sum(counts[0])) - penalty(model) * len(own)
    if model["certificate"].get("coefficient_penalty"):
        value -= read_fraction(model["certificate"]["coefficient_penalty"]) * terms(model, nodes)
    return correct, value


def objective(model: dict[str, Any], counts: Counts, value: Fraction) -> list[Finding]:
    """The numbers of the certificate that follow from the counts; `value`: of what is maximised, as it was counted."""
    certificate = model["certificate"]
    nodes = model["nodes"]
    out = []
    correct = value_of(model, nodes, counts)[0]
    if certificate.get("goal"):
        _, kept = _goal(certificate["goal"], model["classes"], counts, nodes)
        out.append(recounted("required shares", kept, "Sensitivity and specificity recounted."))
    depth = max(map(len, places(nodes)))
    for claim, own in (("correct", correct), ("leaves", len(leaves(nodes))), ("depth", depth), ("n", sum(counts[0]))):
        if claim in certificate:
            words = f"recounted {own}, claimed {certificate[claim]}"
            out.append(recounted(claim, certificate[claim] == own, words, "basis"))
    if certificate.get("objective") is not None:
        words = f"recomputed {value} = {float(value):.12g}, claimed {certificate['objective']}"
        out.append(
            recounted("objective", abs(read_fraction(certificate["objective"]) - value) <= TOLERANCE, words, "basis")
        )
    return out


def weight_counts(model: dict[str, Any], data: TableRows, leaf: np.ndarray) -> list[Finding]:
    """Judge the rows that the certificate counts beside their weights; `leaf`: of each training row."""
    stated = model["certificate"].get("weights")
    rows = model.get("rows") or {}
    if stated is None and not rows.get("weight"):
        return []
    labels = data.training.labels
    answers = np.array([model["classes"].index(v.get("class", model["classes"][0])) for v in model["nodes"]])
    own = {"rows": len(labels), "correct_rows": int((answers[leaf] == labels).sum())}
    own |= {name: rows.get("weight", {}).get(name) for name in ("column", "step")}
    return [recounted("rows beside weights", stated == own, f"{own['correct_rows']} of {own['rows']} rows are right")]


def tree_objective(model: dict[str, Any], counts: Counts) -> Fraction:
    """What the tree of the file reaches of what is maximised, not rounded."""
    goal = model["certificate"].get("goal")
    nodes = model["nodes"]
    if not goal:
        return value_of(model, nodes, counts)[1]
    return _goal(goal, model["classes"], counts, nodes)[0] - penalty(model) * len(leaves(nodes))


def _goal(goal: dict[str, Any], classes: list[str], counts: Counts, nodes: Sequence[dict]) -> tuple[Fraction, bool]:
    """The maximised share, and whether the required ones are kept."""
    k = classes.index(goal["positive"])
    positives = counts[0][k]
    negatives = sum(counts[0]) - counts[0][k]
    tp = sum(counts[v["id"]][k] for v in leaves(nodes) if v["class"] == classes[k])
    tn = sum(sum(counts[v["id"]]) - counts[v["id"]][k] for v in leaves(nodes) if v["class"] != classes[k])
    return goal_value(goal, tp, positives, tn, negatives)


def goal_value(
    goal: dict[str, Any], tp: int | Fraction, positives: int, tn: int | Fraction, negatives: int
) -> tuple[Fraction, bool]:
    """The maximised share, and whether the required ones are kept, with so many right of both classes."""
    found = {
        "sensitivity": Fraction(tp, positives) if positives else Fraction(1),
        "specificity": Fraction(tn, negatives) if negatives else Fraction(1),
    }
    kept = all(goal.get(name) is None or own >= read_fraction(goal[name]) - TOLERANCE for name, own in found.items())
    weight = read_fraction(goal.get("weight") or 1)
    found["accuracy"] = (tp + weight * tn) / (positives + weight * negatives)
    told = tp + negatives - tn
    found["f1"] = Fraction(2 * tp, told + positives) if told + positives else Fraction(1)
    found["mcc"] = _matthews(
        tp * tn - (positives - tp) * (negatives - tn), positives * negatives * told * (positives + negatives - told)
    )
    return found[goal["maximise"]], kept


def _matthews(difference: int | Fraction, product: int | Fraction) -> Fraction:
    """The difference over the root of the product, rounded to 30 digits; 0 for the root of nothing."""
    if not product:
        return Fraction(0)
    root = Fraction(math.isqrt(difference**2 * 10**60 // product), 10**30)
    return root if difference >= 0 else -root


def terms(model: dict[str, Any], nodes: Sequence[dict]) -> int:
    """The number of terms in all splits: for a sum its terms; for a set of categories the smaller of the set and its complement, at least one."""
    levels = {c["name"]: len(c.get("categories") or []) for c in model["columns"]}
    found = 0
    for split in (v["split"] for v in branches(nodes)):
        if split["kind"] == "linear":
            found += len(split["features"])
        elif split["kind"] == "subset":
            own = len(split["categories"])
            found += max(1, min(own, levels[split["feature"]] - own))
        else:
            found += 1
    return found


# -- metrics -----------------------------------------------------------------------------------------------------------


def metrics(model: dict[str, Any], data: TableRows, counts: Counts) -> list[Finding]:
    """The accuracies on the rows that trained, which `counts` are of, and on those held out."""
    given = model.get("metrics") or {}
    found = {"train": counts} if "train" in given else {}
    if "test" in given:
        found["test"] = count_nodes(model, model["nodes"], unweighted(take_rows(data.rows, data.held_out)))[1]
    tables = {name: confusion_of(model, model["nodes"], own) for name, own in found.items()}
    return [metric(f"metrics {name}", given[name], table) for name, table in tables.items()]


def confusion_of(model: dict[str, Any], nodes: Sequence[dict], counts: Counts) -> np.ndarray:
    """How many rows of each class the tree predicts as each class."""
    found = np.zeros((len(model["classes"]),) * 2, np.int64)
    for v in leaves(nodes):
        found[:, model["classes"].index(v["class"])] += counts[v["id"]]
    return found


def metric(claim: str, given: dict[str, Any], confusion: np.ndarray) -> Finding:
    n = int(confusion.sum())
    correct = int(np.trace(confusion))
    own: dict[str, Any] = {"n": n, "correct": correct, "confusion": confusion.tolist()}
    holds = n > 0 and all(given.get(name, value) == value for name, value in own.items())
    holds = holds and (
        "accuracy" not in given or abs(read_fraction(given["accuracy"]) - Fraction(correct, n)) <= TOLERANCE
    )
    return recounted(claim, holds, f"{correct} of {n} rows are right")
