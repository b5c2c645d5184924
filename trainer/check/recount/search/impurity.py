"""Check impurities, and claims that splits are best for their rows.

A sweep over all lines in each two features (`trainer.check.recount.search.lines`) proves a node. If that takes too long, the
thresholds of all columns are tried, which can only refute.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter, read_fraction
from trainer.check.proof.space.questions import open_features
from trainer.check.recount.findings import TOLERANCE, Finding, proof_finding, recount_finding
from trainer.check.recount.search.lines import as_integers, sides
from trainer.check.recount.structure import METHODS
from trainer.check.recount.table.rows import take_rows
from trainer.check.recount.tree import branches
from trainer.check.recount.trees.counts import Counts, split_rows

WORK = 300_000_000  # limit on the sum of squared point counts, over all pairs of features and nodes
SLACK = float(TOLERANCE)


def check_splits(model: dict[str, Any], rows: ModelTable, counts: Counts, unit: float = 1.0) -> list[Finding]:
    """Check impurities and splits that claim a proof; a unit of weight counts as `unit` rows."""
    certificate = model["certificate"]
    nodes = branches(model["nodes"])
    stated = [v for v in nodes if v.get("impurity") is not None]
    out = [*([_check_impurities(model, stated, counts, unit)] if stated else []), *_check_gains(model, nodes, counts)]
    if METHODS[model["method"]][0] != "splits":
        odd = any(certificate.get(name) is not None for name in ("splits", "splits_proved"))
        odd = odd or any(v.get("impurity_bound") is not None for v in nodes)
        return [*out, recount_finding("splits", False, f"'{model['method']}' proves no splits.")] if odd else out
    bounded = [v for v in nodes if v.get("impurity_bound") is not None]
    if bare := [v for v in bounded if v.get("impurity") is None]:
        return [*out, recount_finding("splits", False, f"Node {bare[0]['id']} has a bound, and no impurity.")]
    met = [
        v for v in bounded if read_fraction(v["impurity"]) - read_fraction(v["impurity_bound"]) <= TOLERANCE * _size(v)
    ]
    if (len(nodes), len(met)) != (certificate.get("splits"), certificate.get("splits_proved")):
        return [*out, recount_finding("splits", False, f"{len(met)} of {len(nodes)} splits meet their bounds.")]
    return [*out, *_check_bounds(model, take_rows(rows, rows.weights > 0), bounded, unit, len(met))] if bounded else out


def _size(node: dict[str, Any]) -> int:
    return max(1, sum(node["counts"]))


def _check_impurities(model: dict[str, Any], stated: list[dict[str, Any]], counts: Counts, unit: float) -> Finding:
    for v in stated:
        measure = v.get("measure") or active_parameter(model, "impurity")
        counted = _impurity(str(measure), v, counts) * unit
        if measure != (active_parameter(model, "impurity") or "gini") or abs(
            counted - float(v["impurity"])
        ) > SLACK * _size(v):
            return recount_finding(
                "impurity", False, f"Node {v['id']} has {counted:.9g}, not {v['impurity']} ({measure})."
            )
    return recount_finding("impurity", True, f"{len(stated)} splits were counted again.")


def _check_gains(model: dict[str, Any], nodes: list[dict[str, Any]], counts: Counts) -> list[Finding]:
    """Check that each question lowers the impurity by at least `min_gain`."""
    least = float(active_parameter(model, "min_gain") or 0)
    if not least:
        return []
    n = sum(counts[0])
    measure = str(active_parameter(model, "impurity") or "gini")
    gains = [
        float(phi(measure, np.array([counts[v["id"]]], float)).sum() - _impurity(measure, v, counts)) for v in nodes
    ]
    smallest = min(gains, default=n)
    return [
        recount_finding(
            "min_gain", smallest >= (least - SLACK) * n, f"the smallest gain is {smallest / n:.6g} of the rows"
        )
    ]


def _impurity(measure: str, node: dict[str, Any], counts: Counts) -> float:
    """Return the impurity of both sides of a question, in rows."""
    return float(phi(measure, np.array([counts[node["left"]], counts[node["right"]]], float)).sum())


def phi(measure: str, counts: np.ndarray) -> np.ndarray:
    """Return the impurity in rows of each line of class counts, float64 of shape (m, classes)."""
    total = counts.sum(axis=1)
    if measure == "error":
        return total - counts.max(axis=1)
    if measure == "gini":
        return total - (counts**2).sum(axis=1) / np.maximum(total, 1)
    if measure != "entropy":
        raise ValueError(f"unknown impurity {measure[:40]!r}")
    logs = [x * np.log(np.maximum(x, 1)) for x in (total, counts)]
    return np.maximum(0.0, logs[0] - logs[1].sum(axis=1))


def _check_bounds(
    model: dict[str, Any], rows: ModelTable, bounded: list[dict[str, Any]], unit: float, met: int
) -> list[Finding]:
    left = WORK
    proved = 0
    reach = {v: node_rows for v, node_rows, _ in split_rows(model["nodes"], model["columns"], rows)}
    # if the scope excludes lines that pass very near to rows, a better line does not refute the claim
    certain = "are not counted" not in str(model["certificate"].get("scope"))
    for v in sorted(bounded, key=_size):  # small nodes come first, so that the work limit suffices for many
        bound = (float(v["impurity_bound"]) - SLACK * _size(v)) / unit
        sweep = _Sweep(model, take_rows(rows, reach[v["id"]]))
        words = f"Node {v['id']} claims that no split is below {v['impurity_bound']};"
        if bound > sweep.single():
            return [proof_finding("splits", "refuted", f"{words} a threshold has {sweep.single() * unit:.9g}.")]
        if bound <= 0:
            proved += 1
            continue
        best = sweep.pairs(left)
        left -= sweep.work
        if best is not None and bound > best and certain:
            return [proof_finding("splits", "refuted", f"{words} a line has {best * unit:.9g}.")]
        proved += best is not None and bound <= best
    words = f"{met} splits meet their bounds; {proved} of {len(bounded)} bounds were proved again by plain sweeps"
    words += "." if proved == len(bounded) else ", the other nodes are too large for that."
    return [proof_finding("splits", "proved" if proved == len(bounded) else "cannot be judged", words)]


class _Sweep:
    """The best splits of the rows of a node on one and on two features; categories are features of 0 and 1."""

    def __init__(self, model: dict[str, Any], rows: ModelTable) -> None:
        self.measure = str(active_parameter(model, "impurity") or "gini")
        self.least = int(active_parameter(model, "min_leaf") or 1)
        self.work = 0  # sum of squared point counts of the last call of `pairs`
        self.Y = np.zeros((len(rows), len(model["classes"])))
        self.Y[np.arange(len(rows)), rows.labels] = rows.weights
        self.features = [x for _, x in open_features(model, rows)]

    def single(self) -> float:
        """Return the least impurity of a threshold on one feature; infinite if none separates the rows."""
        best = np.inf
        for feature in self.features:
            empty = np.isnan(feature)
            _, place = np.unique(feature[~empty], return_inverse=True)
            counts = np.zeros((place.max() + 1, self.Y.shape[1]))
            np.add.at(counts, place, self.Y[~empty])
            best = min(best, self._both(np.cumsum(counts, axis=0)[:-1], empty))
        return float(best)

    def _both(self, part: np.ndarray, empty: np.ndarray) -> float:
        """Return the least impurity of splits with these counts on one side and rows with an empty cell on either."""
        if not empty.any():
            return self._least(part)
        block = self.Y[empty].sum(axis=0)
        return self._least(np.concatenate([part, part + block, block[None]]))

    def pairs(self, work: int) -> float | None:
        """Return the least impurity of a line over two features; None if it takes more than `work`, or cannot be exact."""
        columns = [as_integers(feature[~np.isnan(feature)]) for feature in self.features]
        if any(column is None for column in columns):
            return None
        empty = [np.isnan(feature) for feature in self.features]
        pairs = list(itertools.combinations(range(len(columns)), 2))
        planes = [self._plane(columns, empty, pair) for pair in pairs]
        self.work = sum(len(points) ** 2 for points, _ in planes)
        if self.work > work:
            self.work = 0
            return None
        impurities = [self.single()]
        for (i, j), (points, counts) in zip(pairs, planes, strict=True):
            impurities += [self._both(part, empty[i] | empty[j]) for part in sides(points, counts)]
        return min(impurities)

    def _plane(
        self, columns: Sequence[Any], empty: Sequence[np.ndarray], pair: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct points of the rows with both cells of a pair of columns, and their class counts."""
        full = ~(empty[pair[0]] | empty[pair[1]])
        one, other = (columns[i][full[~empty[i]]] for i in pair)
        return self._points(one, other, self.Y[full])

    def _points(self, one: Any, other: Any, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct points of two columns, and their class counts."""
        levels = [np.unique(column, return_inverse=True) for column in (one, other)]
        height = len(levels[1][0])
        cells, where = np.unique(levels[0][1] * height + levels[1][1], return_inverse=True)
        counts = np.zeros((len(cells), Y.shape[1]))
        np.add.at(counts, where, Y)
        return np.column_stack([levels[0][0][cells // height], levels[1][0][cells % height]]), counts

    def _least(self, part: np.ndarray) -> float:
        """Return the least impurity of the splits with these counts on one side."""
        other = self.Y.sum(axis=0) - part
        fits = (part.sum(axis=1) >= self.least) & (other.sum(axis=1) >= self.least)
        impurities = (phi(self.measure, part) + phi(self.measure, other))[fits]
        return float(impurities.min()) if len(impurities) else float("inf")
