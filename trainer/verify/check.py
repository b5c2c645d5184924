"""Independent check of what a model file claims, from the rows alone: own loader, own router, own encoder, own search.

Nothing here is shared with the code that trains. Arithmetic is exact: numbers are compared as they are, sums as fractions of rows.
A verdict is "verified" (recomputed and equal), "consistent" (not contradicted), "unverifiable" (says why) or "refuted".
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from trainer.errors import DataError, ModelFileError
from trainer.verify.limits import Finding, Verdict, class_factors, exact, restrictions, terms
from trainer.verify.planes import ceiling, disputed, groups

TOLERANCE = Fraction(1, 10**9)
CLOSED = Fraction(1, 10**6)  # a gap that is called closed
EMPTY = {"", "na", "n/a", "#n/a", "nan", "null", "?"}
WORK = 4e9  # multiplications that a second search may take
RESTRICTIONS = ("max_leaves", "max_columns", "recall", "fairness", "forbidden_pairs", "monotone", "forbidden")
OBLIQUE = {"cut-h", "cutw-h", "s-oct", "oct-h"}
SAME_OBJECTIVE = {"exact", "flowoct", "bendoct", "bendoct-accelerated", "oct"}


@dataclass(frozen=True)
class _Rows:
    columns: list[np.ndarray]  # float64: numbers, or positions in the list of categories; NaN: missing
    labels: np.ndarray  # positions in the list of classes


def verify(model_path: str | Path, data_path: str | Path) -> list[Finding]:
    """Check a model file against the rows it was trained on; raises ModelFileError or DataError where one cannot be read."""
    try:
        model = json.loads(Path(model_path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The model file cannot be read: {error}.") from error
    with _damage():
        structure = _structure(model)
        _check_shape(model)
    if structure.verdict == "refuted":
        return [structure]
    rows = _load(Path(data_path), model)
    with _damage():
        return [structure, *_recount(model, rows)]


def _recount(model: dict[str, Any], rows: _Rows) -> list[Finding]:
    """What the rows say of every claim of a tree whose structure holds."""
    certificate = model.get("certificate", {})
    held_out = float(model.get("parameters", {}).get("test_share") or 0) > 0
    fingerprint = _fingerprint(model, rows, held_out)
    if fingerprint.verdict != "verified":
        why = "They speak of the rows used for training, and these are not the rows of the file as a whole."
        return [fingerprint, Finding(claim="all further claims", verdict="unverifiable", detail=why)]
    counts = _route(model["nodes"], model["columns"], rows, len(model["classes"]))
    factors = class_factors(counts[0], model)
    counts = [[c * f for c, f in zip(row, factors, strict=True)] for row in counts]
    if int(certificate.get("n") or 0) not in (0, sum(counts[0])):
        why = "The rows were weighted, and the file has no weights."
        return [fingerprint, Finding(claim="counts", verdict="unverifiable", detail=why)]
    return [
        fingerprint,
        _counts(model["nodes"], counts),
        *_objective(model, counts),
        *restrictions(model, counts),
        *_bound(model, rows, factors),
        *_gap(certificate),
    ]


@contextmanager
def _damage() -> Iterator[None]:
    """What is missing or of a wrong type in a model file, as one error that says so."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ModelFileError(f"The model file is damaged ({type(error).__name__}: {str(error)[:200]}).") from error


def _check_shape(model: dict[str, Any]) -> None:
    """What the reading of the rows needs; raises TypeError or LookupError where it is missing or of a wrong type."""
    names = [model["target"], *model["classes"]]
    for column in model["columns"]:
        names += [column["name"], column["kind"], *(column.get("categories") or [])]
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"{str(wrong[0])[:80]} is not a name")


def refuted(findings: Iterable[Finding]) -> bool:
    """True if any claim is contradicted."""
    return any(f.verdict == "refuted" for f in findings)


# -- structure ---------------------------------------------------------------------------------------------------------


def _structure(model: dict[str, Any]) -> Finding:
    nodes, names = model["nodes"], {c["name"] for c in model["columns"]}
    seen, depth = {0}, {0: 0}
    for i, node in enumerate(nodes):
        if node["id"] != i or i not in seen:
            return Finding(claim="structure", verdict="refuted", detail=f"Node {i} has no parent, or a wrong id.")
        if "split" not in node:
            if node.get("class") not in model["classes"]:
                return Finding(claim="structure", verdict="refuted", detail=f"Leaf {i} has a class that is not listed.")
            continue
        used = node["split"].get("features") or [node["split"].get("feature")]
        if not set(used) <= names:
            return Finding(claim="structure", verdict="refuted", detail=f"Node {i} tests a column that is not listed.")
        for child in (node["left"], node["right"]):
            if child <= i or child >= len(nodes) or child in seen:
                return Finding(
                    claim="structure", verdict="refuted", detail=f"Node {i} has a child that is not its own."
                )
            seen.add(child)
            depth[child] = depth[i] + 1
    parameters, deepest = model.get("parameters", {}), max(depth.values())
    limit = None if parameters.get("topology") else parameters.get("depth")  # a topology takes the place of the depth
    if limit is not None and deepest > limit:
        return Finding(
            claim="structure", verdict="refuted", detail=f"The tree has depth {deepest}, over the limit {limit}."
        )
    return Finding(claim="structure", verdict="verified", detail=f"{len(nodes)} nodes, depth {deepest}.")


# -- rows --------------------------------------------------------------------------------------------------------------


def _load(path: Path, model: dict[str, Any]) -> _Rows:
    header, table = _parquet(path) if path.suffix.lower() in {".parquet", ".pq"} else _csv(path)
    place = {name: j for j, name in enumerate(header)}
    wanted = [c["name"] for c in model["columns"]] + [model["target"]]
    absent = [name for name in wanted if name not in place]
    if absent:
        raise DataError(f"The file has no column '{absent[0]}'. Give the file that the model was trained on.")
    kept: list[list[float]] = []
    labels: list[int] = []
    number_of = {name: k for k, name in enumerate(model["classes"])}
    codes = [{name: k for k, name in enumerate(c.get("categories") or [])} for c in model["columns"]]
    for row in table:
        label = row[place[model["target"]]]
        if label not in number_of:
            continue
        values: list[float] = []
        for column, code in zip(model["columns"], codes, strict=True):
            text = row[place[column["name"]]]
            empty = text.strip().lower() in EMPTY and text not in code
            if empty and column.get("missing") != "category":
                break
            if column["kind"] == "categorical":
                values.append(float(code.get("(missing)" if empty else text, -1)))
            else:
                values.append(_number(text))
        else:
            kept.append(values)
            labels.append(number_of[label])
    matrix = np.array(kept, dtype=np.float64).reshape(len(kept), len(model["columns"]))
    return _Rows([np.ascontiguousarray(matrix[:, j]) for j in range(matrix.shape[1])], np.array(labels, np.int32))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        try:
            return float(text.replace(",", "."))
        except ValueError:
            return math.nan


def _csv(path: Path) -> tuple[list[str], list[list[str]]]:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            text = content.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise DataError("The file is neither UTF-8 nor Windows-1252 text.")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    lines = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    if not lines:
        raise DataError("The file of rows is empty.")
    header = [name.strip() for name in lines[0]]
    return header, [[cell.strip() for cell in row] for row in lines[1:] if len(row) == len(header)]


def _parquet(path: Path) -> tuple[list[str], list[list[str]]]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)
    columns = [["" if v is None else _text(v) for v in column.to_pylist()] for column in table.columns]
    return list(table.column_names), [list(row) for row in zip(*columns, strict=True)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def _fingerprint(model: dict[str, Any], rows: _Rows, held_out: bool) -> Finding:
    digest = hashlib.sha256()
    for column, values in zip(model["columns"], rows.columns, strict=True):
        digest.update(repr(sorted(column.items())).encode())
        digest.update((values + 0.0).astype("<f8").tobytes())
    digest.update(repr((model["target"], tuple(model["classes"]))).encode())
    digest.update(rows.labels.astype("<i4").tobytes())
    if digest.hexdigest() == model.get("fingerprint"):
        return Finding(
            claim="data", verdict="verified", detail=f"SHA-256 of {len(rows.labels)} rows is that of the training."
        )
    if held_out:
        return Finding(
            claim="data",
            verdict="unverifiable",
            detail="A part of the rows was held out, and the model does not list which.",
        )
    return Finding(claim="data", verdict="refuted", detail="These are not the rows that the model was trained on.")


# -- routing -----------------------------------------------------------------------------------------------------------


def _route(nodes: list[dict], columns: list[dict], rows: _Rows, classes: int) -> list[list[int]]:
    """Class counts of every node, by one row at a time."""
    place = {c["name"]: j for j, c in enumerate(columns)}
    counts = [[0] * classes for _ in nodes]
    cells = [column.tolist() for column in rows.columns]
    for i, label in enumerate(rows.labels.tolist()):
        at = 0
        while True:
            counts[at][label] += 1
            node = nodes[at]
            if "split" not in node:
                break
            at = node["left"] if _goes_left(node["split"], cells, i, place, columns) else node["right"]
    return counts


def _goes_left(split: dict, cells: list[list[float]], i: int, place: dict[str, int], columns: list[dict]) -> bool:
    kind = split["kind"]
    if kind == "linear":
        total = 0.0
        tests = split.get("categories") or [None] * len(split["features"])
        for name, factor, category in zip(split["features"], split["coefficients"], tests, strict=True):
            value = cells[place[name]][i]
            if category is not None:
                value = float(value >= 0 and columns[place[name]]["categories"][int(value)] == category)
            total += factor * value
        return total <= split["threshold"]
    value = cells[place[split["feature"]]][i]
    if kind == "threshold":
        return value <= split["threshold"]
    if kind == "interval":
        low = -math.inf if split["low"] is None else split["low"]
        high = math.inf if split["high"] is None else split["high"]
        return low < value <= high
    names = columns[place[split["feature"]]]["categories"]
    return value >= 0 and names[int(value)] in split["categories"]


def _counts(nodes: list[dict], counts: list[list[int]]) -> Finding:
    for node, own in zip(nodes, counts, strict=True):
        if node["counts"] != own:
            return Finding(
                claim="counts",
                verdict="refuted",
                detail=f"Node {node['id']} is reached by {own}, not {node['counts']}.",
            )
    return Finding(claim="counts", verdict="verified", detail="Every node is reached by the rows that the file lists.")


# -- objective and bound -----------------------------------------------------------------------------------------------


def _penalty(model: dict[str, Any]) -> Fraction:
    return exact(model.get("certificate", {}).get("leaf_penalty", "0"))


def _objective(model: dict[str, Any], counts: list[list[int]]) -> list[Finding]:
    certificate, classes = model["certificate"], model["classes"]
    leaves = [v for v in model["nodes"] if "split" not in v]
    correct = sum(counts[v["id"]][classes.index(v["class"])] for v in leaves)
    n = sum(counts[0])
    value = Fraction(correct, n) - _penalty(model) * len(leaves)
    if certificate.get("coefficient_penalty"):
        value -= exact(certificate["coefficient_penalty"]) * terms(model)
    out = []
    if certificate.get("goal"):
        value, kept = _goal(certificate["goal"], classes, counts, leaves)
        out.append(Finding(claim="required shares", verdict="verified" if kept else "refuted",
                           detail="Sensitivity and specificity recounted."))  # fmt: skip
    for claim, own in (("correct", correct), ("leaves", len(leaves)), ("n", n)):
        if claim in certificate:
            verdict: Verdict = "verified" if certificate[claim] == own else "refuted"
            out.append(Finding(claim=claim, verdict=verdict, detail=f"recounted {own}, claimed {certificate[claim]}"))
    if certificate.get("objective") is not None:
        verdict = "verified" if abs(exact(certificate["objective"]) - value) <= TOLERANCE else "refuted"
        out.append(
            Finding(claim="objective", verdict=verdict, detail=f"recomputed {value} = {float(value):.12g}, "
                    f"claimed {certificate['objective']}")
        )  # fmt: skip
    return out


def _goal(
    goal: dict[str, Any], classes: list[str], counts: list[list[int]], leaves: list[dict]
) -> tuple[Fraction, bool]:
    """The maximised share, and whether the required ones are kept."""
    k = classes.index(goal["positive"])
    positives, negatives = counts[0][k], sum(counts[0]) - counts[0][k]
    tp = sum(counts[v["id"]][k] for v in leaves if v["class"] == classes[k])
    tn = sum(sum(counts[v["id"]]) - counts[v["id"]][k] for v in leaves if v["class"] != classes[k])
    found = {
        "sensitivity": Fraction(tp, positives) if positives else Fraction(1),
        "specificity": Fraction(tn, negatives) if negatives else Fraction(1),
    }
    kept = all(goal.get(name) is None or own >= exact(goal[name]) - TOLERANCE for name, own in found.items())
    weight = exact(goal.get("weight") or 1)
    found["accuracy"] = (tp + weight * tn) / (positives + weight * negatives)
    return found[goal["maximise"]], kept


def _gap(certificate: dict[str, Any]) -> list[Finding]:
    """The gap is that of bound and objective; "optimal" needs a closed one, or one that was asked for."""
    bound, objective = certificate.get("bound"), certificate.get("objective")
    if bound is None or objective is None:
        return []
    size = max(abs(exact(objective)), Fraction(1, 10**10))
    own = abs(exact(bound) - exact(objective)) / size
    claimed, words = certificate.get("gap"), f"recomputed {float(own):.6g}, claimed {certificate.get('gap')}"
    rounding = TOLERANCE * max(own, Fraction(1)) + Fraction(1, 10**15) / size
    if claimed is None or abs(exact(claimed) - own) > rounding:
        return [Finding(claim="gap", verdict="refuted", detail=words)]
    if certificate.get("status") == "optimal" and own > max(CLOSED, exact(certificate.get("mip_gap") or 0)) + rounding:
        return [Finding(claim="gap", verdict="refuted", detail=f"'optimal' is said of a gap of {float(own):.6g}.")]
    return [Finding(claim="gap", verdict="verified", detail=words)]


def _bound(model: dict[str, Any], rows: _Rows, factors: list[int]) -> list[Finding]:
    certificate = model["certificate"]
    bound, objective = certificate.get("bound"), certificate.get("objective")
    if bound is None:
        return []
    sizes = [c * f for c, f in zip(np.bincount(rows.labels, minlength=len(factors)).tolist(), factors, strict=True)]
    majority = Fraction(max(sizes), sum(sizes)) - _penalty(model)
    if exact(bound) < exact(objective) - TOLERANCE:
        return [Finding(claim="bound", verdict="refuted", detail="It lies below the objective of the tree itself.")]
    if model["method"] in SAME_OBJECTIVE | OBLIQUE and exact(bound) < majority - TOLERANCE:
        return [Finding(claim="bound", verdict="refuted", detail="It lies below the objective of a single leaf.")]
    if model["method"] in OBLIQUE and disputed(model, rows.columns, rows.labels):
        words = "The errors that it names for rows in a plane are not those that can be counted there."
        return [Finding(claim="bound", verdict="refuted", detail=words)]
    if (
        model["method"] in OBLIQUE
        and (proof := ceiling(model, rows.columns, rows.labels, _penalty(model))) <= exact(bound) + TOLERANCE
    ):
        words = "Equal rows share a leaf, t leaves predict t classes"
        words += ", errors on disjoint sets of rows add up" if groups(model) else ""
        words += f": no tree exceeds {float(proof):.12g}."
        out = [Finding(claim="bound", verdict="verified", detail=words)]
        if certificate.get("status") == "optimal" and exact(objective) >= proof - TOLERANCE:
            out.append(Finding(claim="optimal", verdict="verified", detail="The tree meets that value."))
        return out
    inside = _univariate(model, rows, factors) if model["method"] in OBLIQUE else None
    if inside is not None and exact(bound) < inside - TOLERANCE:
        words = f"A tree of questions on single columns reaches {float(inside):.12g}."
        return [Finding(claim="bound", verdict="refuted", detail=words)]
    best, why = _search_again(model, rows, factors)
    if best is None:
        return [Finding(claim="bound", verdict="consistent", detail=f"Not contradicted; not solved again: {why}.")]
    if exact(bound) < best - TOLERANCE:
        return [
            Finding(
                claim="bound", verdict="refuted", detail=f"A plain search finds {float(best):.12g}, which is better."
            )
        ]
    out = [Finding(claim="bound", verdict="verified", detail=f"A plain search finds {float(best):.12g} at best.")]
    if certificate.get("status") == "optimal":
        # a larger gap may have been asked for, and is then part of the claim
        gap = exact(certificate.get("mip_gap") or 0) * abs(exact(objective))
        optimal = abs(best - exact(objective)) <= TOLERANCE + gap
        out.append(
            Finding(
                claim="optimal", verdict="verified" if optimal else "refuted", detail="Compared with a plain search."
            )
        )
    return out


def _univariate(model: dict[str, Any], rows: _Rows, factors: list[int]) -> Fraction | None:
    """The best objective over a few thresholds a column, which no bound of hyperplanes may be below; None where it is not of their class."""
    parameters = model.get("parameters", {})
    other = [parameters.get(name) not in (None, "", "none", False) for name in ("balanced", "big_m", *RESTRICTIONS)]
    if model["method"] == "oct-h" or any(other) or model["certificate"].get("coefficient_penalty"):
        return None
    for values in rows.columns:  # nearer values than a plane must part need not be told apart
        steps = np.diff(np.unique(values))
        if len(steps) and not steps.min() > 1e-5 * np.ptp(values):
            return None
    return _plain_value(model, _encode(model["columns"], rows, "quantile-thresholds", 5), rows, factors)


def _search_again(model: dict[str, Any], rows: _Rows, factors: list[int]) -> tuple[Fraction | None, str]:
    """The best objective by the plain recurrence over an encoding made here, or None and the reason."""
    parameters = model.get("parameters", {})
    if model["method"] not in SAME_OBJECTIVE or model["certificate"].get("goal"):
        return None, f"the trees of '{model['method']}' are not those of the plain search"
    restricted = [name for name in RESTRICTIONS if parameters.get(name) not in (None, "", "none")]
    if restricted:
        return None, f"the trees were restricted ({restricted[0]})"
    X = _encode(model["columns"], rows, parameters.get("binarise", "none"), int(parameters.get("bins") or 5))
    found = _plain_value(model, X, rows, factors)
    return (None, "it is too large for a plain search") if found is None else (found, "")


def _plain_value(model: dict[str, Any], X: np.ndarray, rows: _Rows, factors: list[int]) -> Fraction | None:
    """The best objective over the yes/no questions X, or None where the search is too large."""
    parameters = model["parameters"]
    depth, classes = min(int(parameters["depth"]), X.shape[1]), len(model["classes"])
    if depth > 1 and float(X.shape[1]) ** depth * len(X) * classes > WORK:
        return None
    Y = np.zeros((len(X), classes))
    Y[np.arange(len(X)), rows.labels] = np.array(factors, np.float64)[rows.labels]
    n = int(Y.sum())
    cost = _plain(X, Y, depth, _penalty(model) * n, int(parameters.get("min_leaf") or 1))
    return (n - cost) / n


def _plain(X: np.ndarray, Y: np.ndarray, depth: int, penalty: Fraction, min_leaf: int) -> Fraction:
    """Smallest errors + penalty * leaves; counts in float64 are exact below 2^53."""
    totals = Y.sum(axis=0)
    best = Fraction(int(totals.sum() - totals.max())) + penalty
    if depth == 0:
        return best
    ones = X.T @ Y
    sizes = ones.sum(axis=1)
    usable = np.flatnonzero((sizes >= max(1, min_leaf)) & (totals.sum() - sizes >= max(1, min_leaf)))
    if depth == 1:
        if len(usable):
            errors = totals.sum() - ones[usable].max(axis=1) - (totals - ones[usable]).max(axis=1)
            best = min(best, Fraction(int(errors.min())) + 2 * penalty)
        return best
    for f in usable:
        one = X[:, f] > 0
        low = _plain(X[~one], Y[~one], depth - 1, penalty, min_leaf)
        best = min(best, low + _plain(X[one], Y[one], depth - 1, penalty, min_leaf))
    return best


def _encode(columns: Sequence[dict], rows: _Rows, scheme: str, bins: int) -> np.ndarray:
    """The yes/no questions of the training, made from its description: levels, thresholds or buckets."""
    out: list[np.ndarray] = []
    for column, values in zip(columns, rows.columns, strict=True):
        if column["kind"] == "categorical":
            present = np.unique(values)
            out += (
                [values == level for level in (present[1:] if len(present) == 2 else present)]
                if len(present) > 1
                else []
            )
        elif set(np.unique(values).tolist()) <= {0.0, 1.0}:
            out.append(values == 1)
        elif scheme == "quantile-buckets":
            edges = np.unique(np.quantile(values, np.arange(bins + 1) / bins))
            inner = [-math.inf, *edges[1:-1].tolist(), math.inf]
            out += [(values > a) & (values <= b) for a, b in itertools.pairwise(inner)]
        elif scheme == "all-thresholds":
            out += [values > value for value in np.unique(values)[:-1]]
        elif scheme == "quantile-thresholds":
            ordered = np.sort(values)
            for r in range(1, bins):
                exact = Fraction((len(ordered) - 1) * r, bins)
                low, high = ordered[math.floor(exact)], ordered[math.ceil(exact)]
                out.append(values > (low + high) / 2 + 1e-8)
    return np.array(out, dtype=np.float64).T.reshape(len(rows.labels), len(out))
