"""Check claims that no other subtree of a small height is better in the place of a node.

Counts of the classes on both sides of each pair of questions give the best subtree of height two; for height three, this is
repeated on both sides of each question.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter
from trainer.check.proof.space.questions import answer_matrix, threshold_features
from trainer.check.recount.findings import Finding, proof_finding, recount_finding
from trainer.check.recount.structure import METHODS
from trainer.check.recount.table.rows import take_rows
from trainer.check.recount.tree import branches
from trainer.check.recount.trees.counts import Counts, penalty, split_rows

WORK = 4e9  # limit on rows × classes × pairs of questions, over all nodes
MAX_NODE_CELLS = 20_000_000  # limit on rows × questions of a node
BLOCK = 4_000_000  # counts that are held at a time
KIND = "subtrees"


def check_subtrees(model: dict[str, Any], rows: ModelTable, counts: Counts) -> list[Finding]:
    """Check the number of small subtrees, and that none of the proved ones can be replaced by a better one."""
    certificate = model["certificate"]
    parts = [part for part in certificate.get("evidence") or [] if part.get("kind") == KIND]
    if METHODS[model["method"]][0] != KIND:
        odd = bool(parts) or any(certificate.get(name) is not None for name in ("subtrees", "subtrees_proved"))
        return [recount_finding(KIND, False, f"'{model['method']}' proves no subtrees.")] if odd else []
    heights = _heights(model["nodes"])
    limit = int(active_parameter(model, "height") or 0)
    small = [i for i, height in enumerate(heights) if height <= limit]
    trouble = _trouble(parts, small, limit) or _starts_trouble(parts, int(active_parameter(model, "starts") or 0))
    claimed = [i for i in small if i not in parts[0]["open"]] if parts and not trouble else []
    if trouble or (certificate.get("subtrees"), certificate.get("subtrees_proved")) != (len(small), len(claimed)):
        words = trouble or f"{len(claimed)} of {len(small)} small subtrees are claimed to be proved."
        return [recount_finding(KIND, False, words)]
    if not claimed:
        return [recount_finding(KIND, True, f"None of {len(small)} small subtrees is claimed to be proved.")]
    return [_check_nodes(model, take_rows(rows, rows.weights > 0), counts, claimed)]


def _trouble(parts: Sequence[dict[str, Any]], small: Sequence[int], limit: int) -> str:
    """Return a contradiction of the evidence, empty if there is none."""
    if len(parts) > 1:
        return "There are several lists of subtrees."
    if not parts:
        return ""
    if parts[0]["height"] != limit:
        return f"The parameters ask for subtrees of height {limit}, not {parts[0]['height']}."
    if sorted(set(parts[0]["open"]) & set(small)) != list(parts[0]["open"]):
        return "The list of open subtrees names a node twice, or a higher subtree, or is not in order."
    return ""


def _starts_trouble(parts: Sequence[dict[str, Any]], wanted: int) -> str:
    """Return a contradiction of the number of finished starts, empty if there is none; a start tree is one more start."""
    number = parts[0]["starts"] if parts else 0
    if type(number) is int and 0 <= number <= wanted + 1:
        return ""
    return f"The parameters ask for {wanted} starts, not {str(number)[:20]}."


def _heights(nodes: Sequence[dict[str, Any]]) -> list[int]:
    heights = [0] * len(nodes)
    for v in reversed(branches(nodes)):
        heights[v["id"]] = 1 + max(heights[v["left"]], heights[v["right"]])
    return heights


def _check_nodes(model: dict[str, Any], rows: ModelTable, counts: Counts, claimed: Sequence[int]) -> Finding:
    """Search the best subtree of each claimed node again, small nodes first."""
    nodes = model["nodes"]
    reach = {0: np.arange(len(rows))}
    depth = {0: 0}
    for i, node_rows, left in split_rows(nodes, model["columns"], rows):
        reach |= {nodes[i]["left"]: node_rows[left], nodes[i]["right"]: node_rows[~left]}
        depth |= {nodes[i]["left"]: depth[i] + 1, nodes[i]["right"]: depth[i] + 1}
    prices = _Prices(penalty(model) * sum(counts[0]))
    most = model["parameters"]["depth"]
    proved = 0
    left_work = WORK
    for i in sorted(claimed, key=lambda i: (len(reach[i]), i)):
        search = _Subtrees(model, take_rows(rows, reach[i]), prices)
        cost = _cost_below(nodes, counts, i, prices)
        height = min(int(model["parameters"]["height"]), most - depth[i])
        if search.class_bound(height) >= cost:
            proved += 1
            continue
        work = search.work(height)
        whole = work <= left_work
        left_work -= work if whole else 0
        best = search.least(height if whole else min(1, height))
        if best < cost:
            words = f"Node {i} is claimed to have the best subtree. It costs {prices.words(cost)}, and another one {prices.words(best)}."
            return proof_finding(KIND, "refuted", words)
        proved += whole
    words = f"{proved} of {len(claimed)} small subtrees were searched again, and none can be replaced by a better one"
    words += "." if proved == len(claimed) else "; the others are too large for that."
    return proof_finding(KIND, "proved" if proved == len(claimed) else "cannot be judged", words)


class _Prices:
    """Integer costs: `error` of a unit of weight, and `leaf` of a leaf."""

    def __init__(self, leaf: Fraction) -> None:
        self.error = leaf.denominator
        self.leaf = leaf.numerator

    def words(self, cost: int) -> str:
        """Return a cost in errors."""
        return f"{float(Fraction(cost, self.error)):.9g} errors with its leaves"


def _cost_below(nodes: Sequence[dict[str, Any]], counts: Counts, i: int, prices: _Prices) -> int:
    node = nodes[i]
    if "split" not in node:
        return (sum(counts[i]) - max(counts[i])) * prices.error + prices.leaf
    return _cost_below(nodes, counts, node["left"], prices) + _cost_below(nodes, counts, node["right"], prices)


class _Subtrees:
    """The subtrees over the rows of a node: every threshold of every feature is a question."""

    def __init__(self, model: dict[str, Any], rows: ModelTable, prices: _Prices) -> None:
        self.prices = prices
        self.least_leaf = int(active_parameter(model, "min_leaf") or 1)
        self.W = np.zeros((len(rows), len(model["classes"])))
        self.W[np.arange(len(rows)), rows.labels] = rows.weights
        self.W = self.W[:, self.W.any(axis=0)]
        self.features = [x for _, x in threshold_features(model, rows)]
        self.levels = [np.unique(x) for x in self.features]
        self.size = sum(len(levels) - 1 for levels in self.levels)
        self.rows = rows

    def class_bound(self, height: int) -> int:
        """Return the least cost of a tree whose t leaves classify all rows of t classes correctly."""
        largest = np.cumsum(np.sort(self.W.sum(axis=0))[::-1]).astype(np.int64).tolist()
        leaves = range(1, min(1 << height, len(largest)) + 1)
        return min((largest[-1] - largest[t - 1]) * self.prices.error + t * self.prices.leaf for t in leaves)

    def work(self, height: int) -> float:
        """Return the size of the search."""
        if height < 2:
            return float(len(self.features) * self.W.size)
        if self.size * len(self.rows) > MAX_NODE_CELLS:
            return float("inf")
        return float(self.size**2) * self.W.size * (self.size if height > 2 else 1)

    def least(self, height: int) -> int:
        """Return the least cost of a subtree of at most this height."""
        if height < 2:
            return self._least_of_one(height)
        yes = [
            x > level for x, levels in zip(self.features, self.levels, strict=True) for level in levels[:-1].tolist()
        ]
        answers = answer_matrix(yes, self.rows, float)
        return self._least(answers, self.W, height)

    def _least_of_one(self, height: int) -> int:
        """Return the least cost of a subtree of at most one question, without a column for each question."""
        total = self.W.sum(axis=0)
        best = self._leaf_costs(total[None])[0]
        for x in self.features if height else ():
            order = np.argsort(x, kind="stable")
            ends = np.flatnonzero(x[order[:-1]] < x[order[1:]])
            best = min(best, self._split_costs(total, total - np.cumsum(self.W[order], axis=0)[ends]))
        return best

    def _least(self, answers: np.ndarray, W: np.ndarray, height: int) -> int:
        total = W.sum(axis=0)
        best = self._leaf_costs(total[None])[0]
        if height and answers.shape[1]:
            high = answers.T @ W
            best = min(best, self._split_costs(total, high))
        if height == 2:
            best = min(best, self._pairs(answers, W))
        if height > 2:
            for k in range(answers.shape[1]):
                side = answers[:, k] > 0
                if min(W[side].sum(), W[~side].sum()) >= self.least_leaf:
                    low = self._least(answers[~side], W[~side], height - 1)
                    best = min(best, low + self._least(answers[side], W[side], height - 1))
        return best

    def _pairs(self, answers: np.ndarray, W: np.ndarray) -> int:
        """Return the least cost of a tree whose both sides have at most one question."""
        total = W.sum(axis=0)
        high = answers.T @ W
        best = self._leaf_costs(total[None])[0]
        step = max(1, BLOCK // max(1, answers.shape[1] * W.shape[1]))
        for first in range(0, answers.shape[1], step):
            block = answers[:, first : first + step]
            both = np.stack([(block * w[:, None]).T @ answers for w in W.T], axis=-1)
            for k in range(block.shape[1]):
                inside = high[first + k]
                if min(inside.sum(), (total - inside).sum()) >= self.least_leaf:
                    sides = ((inside, both[k]), (total - inside, high - both[k]))
                    best = min(best, sum(min(self._leaf_costs(s[None])[0], self._split_costs(s, b)) for s, b in sides))
        return best

    def _leaf_costs(self, counts: np.ndarray) -> list[int]:
        errors = counts.sum(axis=1) - counts.max(axis=1, initial=0)
        return [int(e) * self.prices.error + self.prices.leaf for e in errors]

    def _split_costs(self, total: np.ndarray, high: np.ndarray) -> int:
        """Return the least cost of a tree with one question, from the class counts of its high side."""
        low = total - high
        errors = total.sum() - high.max(axis=1) - low.max(axis=1)
        heavy = np.minimum(high.sum(axis=1), low.sum(axis=1)) >= self.least_leaf
        least = errors[heavy].min(initial=total.sum())
        return int(least) * self.prices.error + 2 * self.prices.leaf
