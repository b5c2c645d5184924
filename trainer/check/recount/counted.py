"""Check a model against the counts that it was trained from.

The code shares nothing with counting and training (docs/counts.md). Each set of at most three questions has a count for each class and
fold. The rows with yes to P and no to N follow by inclusion and exclusion over the subsets of N.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from trainer.check.proof.model import (
    active_parameter,
    forbidden_column_pairs,
    minimum_recalls,
    read_fraction,
    split_items,
)
from trainer.check.proof.space.counted import counted_space
from trainer.check.proof.steps.sets import SetCounting, place_table
from trainer.check.proof.steps.within import VectorRecursion
from trainer.check.proof.subject import CountedSets, NoProof
from trainer.check.recount import claims
from trainer.check.recount.findings import TOLERANCE, Finding, damage, proof_finding, recount_finding, unjudged_finding
from trainer.check.recount.proof import check_counted_proof
from trainer.check.recount.restrictions import counted_restrictions, words_of
from trainer.check.recount.structure import structure, tree_trouble
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.costs import (
    MEASURES,
    AnswerCosts,
    check_cost_record,
    check_stated_cost,
    costs_of_counts,
    leaf_scale,
    measures_of_cost,
)
from trainer.check.recount.trees.counts import (
    check_metric,
    check_node_counts,
    check_objective,
    confusion_of,
    penalty,
    tree_objective,
)
from trainer.check.recount.trees.cross_validation import CLAIM, check_fold_means
from trainer.check.recount.wishes import check_wishes
from trainer.errors import ModelFileError

DEEPEST = 3
MOST_SEARCHED = 250  # with more questions, trees of depth 3 are not searched again
# members of the record that its digest covers
MEMBERS = "target classes class_type columns reading questions format depth key folds suppress rows left_out"
FILES = ("counts.json", "counts.npz")
Model = dict[str, Any]


@dataclass(frozen=True)
class CountedRows:
    """The counts of a folder: `low` and `high`, int64 of shape (folds, classes, sets), are the lower and upper bounds on each count."""

    record: dict[str, Any]
    low: np.ndarray
    high: np.ndarray

    def sets(self, costs: AnswerCosts | None) -> CountedSets:
        """Return the counts of all folds together or, with costs, the savings of the answers."""
        numbers = self.low.sum(axis=0)
        return CountedSets(self.record["depth"], numbers if costs is None else _gains(costs) @ numbers)

    @property
    def absent(self) -> int:
        """Return the number that represents no question."""
        return len(self.record["questions"])

    @cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """Return the position of each set's count: by size, then in the order of their members."""
        questions = range(len(self.record["questions"]))
        sets = [s for size in range(self.record["depth"] + 1) for s in combinations(questions, size)]
        return {members: at for at, members in enumerate(sets)}

    @cached_property
    def sha256(self) -> str:
        """Compute the digest of the counts again."""
        content = {name: self.record[name] for name in MEMBERS.split()}
        content["parts"] = sorted([part["sha256"], part["rows"]] for part in self.record["parts"])
        digest = sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
        for end in [self.low] if self.low is self.high else [self.low, self.high]:
            digest.update(b"\0" + end.astype("<i8").tobytes())
        return digest.hexdigest()

    def rows_with(self, yes: Sequence[int], no: Sequence[int], fold: int | None, high: bool = False) -> np.ndarray:
        """Count the rows of each class with these answers, at the lower or the upper end.

        `fold` is a fold, −1 − fold for all rows outside it, or None for all rows.
        """
        total = np.zeros(len(self.record["classes"]), np.int64)
        for size in range(len(no) + 1):
            for more in combinations(no, size):
                end = self.high if high == (size % 2 == 0) else self.low
                at = self.places[tuple(sorted({*yes, *more}))]
                total += (-1) ** size * _of_folds(end[:, :, at], fold)
        return np.maximum(total, 0)


def _of_folds(counts: np.ndarray, fold: int | None) -> np.ndarray:
    if fold is None:
        return np.asarray(counts.sum(axis=0))
    return np.asarray(counts[fold] if fold >= 0 else counts.sum(axis=0) - counts[-1 - fold])


def verify_counts(model: Model, folder: str | Path, proof: Path | None = None) -> list[Finding]:
    """Check a model that was trained from counts against their folder, and its proof if there is one.

    Raises ModelFileError for unreadable files.
    """
    with damage():
        findings = structure(model)
    if any(f.verdict == "refuted" for f in findings):
        return [
            *findings,
            unjudged_finding(
                "all further claims", "They were not checked, since the nodes form no tree, or no tree of this method."
            ),
        ]
    with damage():
        counts = _read_counts(Path(folder))
        return [*findings, *_check_counts(model, counts, proof)]


def _read_object(path: Path) -> Model:
    try:
        model = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"'{path.name}' cannot be read: {error}.") from error
    if not isinstance(model, dict):
        raise ModelFileError(f"'{path.name}' is not a JSON object. Give the folder that the command 'count' wrote.")
    return model


def _read_counts(folder: Path) -> CountedRows:
    record = _read_object(folder / FILES[0])
    if record.get("format") != "octweb-counts":
        raise ModelFileError(f"'{FILES[0]}' does not describe counts. Give the folder that the command 'count' wrote.")
    with np.load(folder / FILES[1], allow_pickle=False) as arrays:
        low = arrays["low"]
        high = arrays["high"] if "high" in arrays.files else low
    sets = sum(math.comb(len(record["questions"]), size) for size in range(record["depth"] + 1))
    shape = (max(record["folds"], 1), len(record["classes"]), sets)
    if not 1 <= record["depth"] <= DEEPEST or low.shape != shape or high.shape != shape or (low > high).any():
        raise ModelFileError(
            f"The numbers in '{FILES[1]}' do not fit '{FILES[0]}'. Give both files of one folder of counts."
        )
    return CountedRows(record, low, high)


def _check_counts(model: Model, counts: CountedRows, proof: Path | None) -> list[Finding]:
    certificate = model["certificate"]
    record = counts.record
    digest = counts.sha256
    if certificate.get("counts") != digest or record["sha256"] != digest:
        words = (
            "The model was trained from other counts, or one of the two was changed. Give the counts of the training."
        )
        return [recount_finding("counts file", False, words, "basis")]
    names = ("target", "classes", "columns")
    same = [model[name] for name in names] == [record[name] for name in names]
    findings = [
        recount_finding(
            "counts file", same, f"SHA-256 {digest}; its columns and classes are those of the model.", "basis"
        )
    ]
    paths = _paths(model["nodes"], record)
    if not same or isinstance(paths, str):
        return [*findings, recount_finding("questions", same and not isinstance(paths, str), str(paths), "basis")]
    findings.append(
        recount_finding("questions", True, "Each question of the tree is one of those that were counted.", "basis")
    )
    reached = [counts.rows_with(yes, no, None).tolist() for yes, no in paths]
    rows = record["rows"]
    costs = costs_of_counts(model, counts.rows_with([], [], None))
    value, cost_findings = _check_counted_costs(model, costs, reached)
    if record["suppress"] and costs is not None:
        return [*findings, recount_finding("costs", False, "Suppressed counts do not determine costs.")]
    if record["suppress"]:  # suppressed class counts are lower bounds, which need not add up to the number of rows
        correct = sum(reached[v["id"]][model["classes"].index(v["class"])] for v in leaves(model["nodes"]))
        value = Fraction(correct, rows) - penalty(model) * len(leaves(model["nodes"]))
        findings += [check_node_counts(model["nodes"], reached), *_check_secret_counts(model, correct, value, rows)]
    else:
        findings += [
            check_node_counts(model["nodes"], reached),
            *check_objective(model, reached, value),
            *cost_findings,
        ]
        findings.append(
            check_metric("metrics train", model["metrics"]["train"], confusion_of(model, model["nodes"], reached))
        )
    findings += [*_check_limits(model, reached, leaf_scale(costs)), *check_wishes(model)]
    if "cross_validation" in model["metrics"]:
        findings.append(_check_folds(model, counts))
    findings += [
        claims.status(model),
        *claims.gap(certificate),
        _check_evidence(certificate, record),
        _check_scope(model, record),
    ]
    if any(f.verdict == "refuted" for f in findings):
        return [*findings, unjudged_finding("all further claims", "The count differs from the file.")]
    if proof is None:
        bound = _check_bound(model, counts, costs, value)
    else:
        bound = _check_proof(model, counts, costs, proof)
    return [
        *findings,
        bound,
        *_check_prices(model, counts, costs, value),
        *claims.optimal(model, [bound], value),
        *claims.unknown_members(model),
        *claims.provenance(model),
    ]


def _check_counted_costs(
    model: Model, costs: AnswerCosts | None, reached: list[list[int]]
) -> tuple[Fraction, list[Finding]]:
    """Return the objective of the tree with these class counts of its nodes, and the findings about costs."""
    stated = {name: value for name, value in model["metrics"]["train"].items() if name in MEASURES}
    counted: dict[str, Any] = {}
    cost = 0
    value = tree_objective(model, reached)
    if costs is not None:
        by_class = confusion_of(model, model["nodes"], reached) * costs.each
        cost = int(by_class.sum())
        if model["certificate"].get("costs"):  # else the next check refutes the file
            counted = measures_of_cost(model, costs, by_class)
        gain = int(costs.values.max(axis=1).sum()) - cost
        value = Fraction(gain, costs.weight) - penalty(model) * len(leaves(model["nodes"]))
    return value, [*check_cost_record(model, costs, cost), check_stated_cost("train", stated, counted)]


def _check_secret_counts(model: Model, correct: int, value: Fraction, rows: int) -> list[Finding]:
    """Check correct rows and objective of a tree of suppressed counts against their lower bounds."""
    certificate = model["certificate"]
    totals = {"n": rows, "correct": correct}
    holds = all(of[name] == value for of in (certificate, model["metrics"]["train"]) for name, value in totals.items())
    holds = holds and abs(read_fraction(model["metrics"]["train"]["accuracy"]) - Fraction(correct, rows)) <= TOLERANCE
    return [
        recount_finding("correct", holds, f"at least {correct} of {rows} rows", "basis"),
        recount_finding(
            "objective",
            abs(read_fraction(certificate["objective"]) - value) <= TOLERANCE,
            f"recomputed {value}",
            "basis",
        ),
    ]


def _check_scope(model: Model, record: dict[str, Any]) -> Finding:
    """Recompute the scope of the claim and compare it."""
    kinds = {column["name"]: column["kind"] for column in model["columns"]}
    levels = sum(kinds[question["column"]] == "categorical" for question in record["questions"])
    numbers = len(record["questions"]) - levels
    words = []
    if numbers:
        words.append("1 question about numbers" if numbers == 1 else f"{numbers} questions about numbers")
    if levels:
        words.append("1 category" if levels == 1 else f"{levels} categories")
    space = f"{' and '.join(words) or 'no question'} of the counts"
    parts = [f"depth ≤ {model['parameters']['depth']}", space, *words_of(model)]
    expected = f"all trees with {', '.join(parts)}"
    stated = model["certificate"].get("scope")
    return recount_finding(
        "scope", stated == expected, f"'{expected}'" if stated == expected else f"The parameters ask for: {expected}."
    )


def _check_evidence(certificate: Model, record: dict[str, Any]) -> Finding:
    """Check that the evidence describes these counts."""
    expected = {"kind": "counts", "source": record["source"], "parts": len(record["parts"]), "rows": record["rows"]}
    if "snapshot" in (record.get("origin") or {}):
        expected["snapshot"] = record["origin"]["snapshot"]
    stated = [part for part in certificate["evidence"] if part.get("kind") != "proof"]
    return recount_finding("evidence", stated == [expected], f"{record['rows']} rows of {len(record['parts'])} parts")


def _paths(nodes: Sequence[dict[str, Any]], record: dict[str, Any]) -> list[tuple[list[int], list[int]]] | str:
    """Return the questions with yes and with no on the path to each node; a text if one was not counted."""
    numbers = {_key(*_split_of(question, record["columns"])): q for q, question in enumerate(record["questions"])}
    numbers |= _mirrored(record)
    paths: list[tuple[list[int], list[int]]] = [([], [])] * len(nodes)
    for node in nodes:
        if "split" not in node:
            continue
        yes, no = paths[node["id"]]
        for one_left in (True, False):
            question = numbers.get(_key(node["split"], one_left))
            if question is not None:
                break
        else:
            return f"The question of node {node['id']} is not among those that were counted."
        if len(yes) + len(no) >= record["depth"]:
            return f"Node {node['id']} lies deeper than the counts."
        ones, zeros = ("left", "right") if one_left else ("right", "left")
        paths[node[ones]] = ([*yes, question], no)
        paths[node[zeros]] = (yes, [*no, question])
    return paths


def _mirrored(record: dict[str, Any]) -> dict[str, int]:
    """Return the split about the other categories for each column of categories with a single question; yes goes right."""
    columns = [question["column"] for question in record["questions"]]
    categories = {column["name"]: column.get("categories") for column in record["columns"]}
    mirrored = {}
    for q, question in enumerate(record["questions"]):
        name = question["column"]
        if question["test"] == "level" and columns.count(name) == 1:
            others = [category for category in categories[name] if category != question["category"]]
            mirrored[_key({"kind": "subset", "feature": name, "categories": others}, False)] = q
    return mirrored


def _key(split: dict[str, Any], one_left: bool) -> str:
    return json.dumps([split, one_left], sort_keys=True)


def _split_of(question: dict[str, Any], columns: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return the split of a question as a file writes it, and whether the answer yes goes left."""
    name = question["column"]
    test = question["test"]
    low = question.get("low")
    high = question.get("high")
    if test == "level":
        return {"kind": "subset", "feature": name, "categories": [question["category"]]}, True
    if test == "empty":
        return {"kind": "missing", "feature": name}, True
    empty = question.get("empty")
    above = test == "above" or high is None
    one_left = not above
    split: dict[str, Any] = {"kind": "threshold", "feature": name, "threshold": low if above else high}
    if not above and low is not None:
        split = {"kind": "interval", "feature": name, "low": low, "high": high}
    if empty is not None:
        split["missing"] = "left" if empty == one_left else "right"
    return split, one_left


def _check_limits(model: Model, reached: list[list[int]], scale: Fraction) -> list[Finding]:
    """Check the limits of the settings on the tree; `scale` is the factor of the price of a leaf."""
    findings = counted_restrictions(model, reached)
    if read_fraction(model["parameters"].get("leaf_penalty") or 0) * scale != penalty(model):
        findings.append(recount_finding("what is maximised", False, "The parameters ask for another price of a leaf."))
    return findings


def _check_folds(model: Model, counts: CountedRows) -> Finding:
    """Check the tree of each fold: its counts on the training rows, and its predictions on the fold."""
    stated = model["metrics"]["cross_validation"]
    trees = (model.get("rows") or {}).get("fold_trees") or []
    if stated["folds"] != counts.record["folds"] or len(trees) != len(stated["accuracies"]):
        return recount_finding(CLAIM, False, "Other folds were counted.")
    tables = []
    for fold, nodes in enumerate(trees):
        trouble, _ = tree_trouble(model, nodes)
        paths = trouble or _paths(nodes, counts.record)
        if isinstance(paths, str):
            return recount_finding(CLAIM, False, f"The tree of fold {fold + 1} does not hold: {paths}")
        trained = [counts.rows_with(yes, no, -1 - fold).tolist() for yes, no in paths]
        if any(f.verdict == "refuted" for f in counted_restrictions(model | {"nodes": nodes}, trained)):
            return recount_finding(CLAIM, False, f"The tree of fold {fold + 1} does not keep the restrictions.")
        if [node["counts"] for node in nodes] != trained:
            return recount_finding(CLAIM, False, f"The tree of fold {fold + 1} lists rows that were not counted.")
        tables.append(confusion_of(model, nodes, [counts.rows_with(yes, no, fold).tolist() for yes, no in paths]))
    words = f"The trees of {len(trees)} folds were judged again by the counts of their fold."
    return check_fold_means(stated, trees, tables, words)


def _check_proof(model: Model, counts: CountedRows, costs: AnswerCosts | None, proof: Path) -> Finding:
    """Check the bound by a proof."""
    if counts.record["suppress"]:
        return proof_finding("bound", "cannot be judged", "There are no proof steps for suppressed counts.")
    return check_counted_proof(model, counts.sets(costs), counts.record["questions"], counts.sha256, proof)


def _check_restricted_bound(model: Model, counts: CountedRows, costs: AnswerCosts | None, value: Fraction) -> Finding:
    """Check the bound within recalls, forbidden pairs and wishes by the search that checks such steps of a proof.

    `value` is the objective of the tree.
    """
    claimed = read_fraction(model["certificate"]["bound"])
    top = value if abs(claimed - value) <= TOLERANCE else claimed
    try:
        best = _best_above(model, counts, costs, top)
    except NoProof as reason:
        return proof_finding("bound", "cannot be judged", f"It was not searched again: {reason}.")
    if best is not None:
        return proof_finding("bound", "refuted", f"A tree of the scope reaches {best}.")
    words = f"No tree of the scope is above {float(top):.12g}, by a search over all of them."
    return proof_finding("bound", "proved", words, top)


def _best_above(model: Model, counts: CountedRows, costs: AnswerCosts | None, top: Fraction) -> Fraction | None:
    """Return the best objective of a tree of the scope if it is above `top`, else None; raise NoProof."""
    space = counted_space(model, counts.sets(costs), counts.record["questions"], counts.sha256)
    assert space.sets is not None
    Q = space.penalty.denominator
    engine = SetCounting(space, space.sets, Q, space.penalty.numerator)
    total = int(space.weights.sum())
    goal = max(0, math.ceil((1 - top) * total * Q))
    cheaper = VectorRecursion(engine).cover(engine.root(), space.depth, goal)
    return 1 - Fraction(int(cheaper[:, 0].min()), total * Q) if len(cheaper) else None


def _check_prices(model: Model, counts: CountedRows, costs: AnswerCosts | None, value: Fraction) -> list[Finding]:
    """Check the optimum without wishes and the price of each wish; `value` is the objective of the tree."""
    certificate = model["certificate"]
    wishes = certificate.get("wishes") or []
    stated = [(f"price of the wish '{w['wish']}'", w["price"], [v for v in wishes if v is not w]) for w in wishes]
    if certificate.get("optimum") is not None:
        optimum = certificate["optimum"]
        if optimum["proved"] is not True or optimum["objective"] != optimum["bound"]:
            return [proof_finding("optimum without wishes", "refuted", "The bound is not that of the optimum.")]
        gained = read_fraction(optimum["objective"]) - read_fraction(certificate["objective"])
        stated.append(("optimum without wishes", gained, []))
    findings = []
    for claim, price, others in stated:
        free = model | {"certificate": certificate | {"wishes": others}}
        try:
            best = _best_above(free, counts, costs, value) or value
        except NoProof as reason:
            findings.append(proof_finding(claim, "cannot be judged", f"It was not searched again: {reason}."))
            continue
        fits = price is not None and abs(best - value - read_fraction(price)) <= TOLERANCE
        words = "Searched again." if fits else "A search finds another value."
        findings.append(proof_finding(claim, "proved" if fits else "refuted", words))
    return findings


def _gains(costs: AnswerCosts) -> np.ndarray:
    """Return the saving of each answer in a row of each class, int64 (answers, classes)."""
    return np.asarray((costs.each.max(axis=1, keepdims=True) - costs.each).T)


def _check_bound(model: Model, counts: CountedRows, costs: AnswerCosts | None, value: Fraction) -> Finding:
    """Check the bound by a search over all trees of the scope; `value` is the objective of the tree."""
    certificate = model["certificate"]
    depth = model["parameters"]["depth"]
    banned = set(split_items(active_parameter(model, "forbidden")))
    usable = [q for q, question in enumerate(counts.record["questions"]) if question["column"] not in banned]
    if depth > counts.record["depth"]:
        return recount_finding("bound", False, "The counts do not know trees of this depth.")
    if minimum_recalls(model) or forbidden_column_pairs(model) or model["certificate"].get("wishes"):
        return _check_restricted_bound(model, counts, costs, value)
    if depth == DEEPEST and len(usable) > MOST_SEARCHED:
        return proof_finding(
            "bound", "cannot be judged", f"More than {MOST_SEARCHED} questions are not searched again."
        )
    gains = None if costs is None else _gains(costs)
    search = _Search(counts, usable, active_parameter(model, "min_leaf") or 1, gains)
    right = search.frontier([], depth)
    most = min(active_parameter(model, "max_leaves") or len(right), len(right))
    total = counts.record["rows"] if costs is None else costs.weight
    each = penalty(model)
    top = max(min(Fraction(right[size], total), Fraction(1)) - each * (size + 1) for size in range(most))
    claimed = read_fraction(certificate["bound"])
    if claimed < top - TOLERANCE and not counts.record["suppress"]:
        return proof_finding("bound", "refuted", f"A tree of the scope reaches {top}.")
    if claimed < top - TOLERANCE:
        return proof_finding("bound", "cannot be judged", f"The secret counts allow {top}.")
    return proof_finding(
        "bound", "proved", f"No tree of the scope is above {float(top):.12g}, by a search over all of them.", top
    )


Answer = tuple[np.ndarray, bool]  # question numbers, int64 of any shape, and whether their answer is yes


class _Search:
    """A search for the most correct rows with at most 1, 2, … leaves, at the upper end of the counts.

    With `gains`, int64 (answers, classes), it searches for the largest gain of the answers.
    """

    def __init__(self, counts: CountedRows, usable: list[int], least: int, gains: np.ndarray | None) -> None:
        self.gains = np.eye(len(counts.record["classes"]), dtype=np.int64) if gains is None else gains
        self.questions = np.array(usable, np.int64)
        self.least = least
        self.places = place_table(counts.absent, counts.record["depth"])
        self.upper = counts.high.sum(axis=0)
        self.lower = counts.low.sum(axis=0)

    def frontier(self, path: list[Answer], depth: int) -> list[int]:
        """Return the most correct rows below a path with at most 1, 2, … leaves; −1 if there is no such tree."""
        best = [int(self._right(path)), *[-1] * (2**depth - 1)]
        if depth and len(self.questions):
            if depth < DEEPEST:
                with_root = self._of_all_roots(path, depth)
                best = [best[0], *with_root]
            else:
                for question in self.questions:
                    sides = [self.frontier([*path, (question, answer)], depth - 1) for answer in (True, False)]
                    best = [max(one, two) for one, two in zip(best, _combine_sides(*sides), strict=True)]
        return [max(best[: size + 1]) for size in range(len(best))]

    def _of_all_roots(self, path: list[Answer], depth: int) -> list[int]:
        """Return the most correct rows with 2, 3, … leaves over all roots of a tree of depth 1 or 2."""
        first = self.questions[:, None] if depth == 2 else self.questions
        single = [self._right([*path, (first, answer)]).ravel() for answer in (True, False)]
        best = [_sum(*single)]
        if depth == 2:
            split = []
            for answer in (True, False):
                leaf = [self._right([*path, (first, answer), (self.questions[None], last)]) for last in (True, False)]
                split.append(_sum(*leaf).max(axis=1))
            best.append(np.maximum(_sum(split[0], single[1]), _sum(single[0], split[1])))
            best.append(_sum(*split))
        return [int(correct.max()) for correct in best]

    def _right(self, answers: list[Answer]) -> np.ndarray:
        """Return the rows of the largest class with these answers, of the broadcast shape; −1 if a leaf would be too small."""
        yes = [question for question, answer in answers if answer]
        no = [question for question, answer in answers if not answer]
        shape = np.broadcast_shapes(*(question.shape for question, _ in answers))
        counts = np.zeros((len(self.upper), *shape), np.int64)
        for size in range(len(no) + 1):
            for more in combinations(no, size):
                end = self.lower if size % 2 else self.upper
                counts += (-1) ** size * end[:, np.broadcast_to(self._at([*yes, *more]), shape)]
        counts = np.maximum(counts, 0)
        return np.where(counts.sum(axis=0) >= self.least, np.tensordot(self.gains, counts, axes=1).max(axis=0), -1)

    def _at(self, members: list[np.ndarray]) -> np.ndarray:
        absent = np.array(len(self.places) - 1)
        filled = (*members, absent, absent, absent)
        return np.asarray(self.places[filled[0], filled[1], filled[2]])


def _sum(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Add the correct rows of two leaves; −1 if one of them does not exist."""
    return np.where((one >= 0) & (two >= 0), one + two, -1)


def _combine_sides(ones: list[int], zeros: list[int]) -> list[int]:
    """Combine two sides: return the most correct rows for each total number of leaves."""
    best = [-1] * (len(ones) + len(zeros))
    for a, right in enumerate(ones, 1):
        for b, other in enumerate(zeros, 1):
            if min(right, other) >= 0:
                best[a + b - 1] = max(best[a + b - 1], right + other)
    return best
