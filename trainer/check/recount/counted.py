"""Check a model against the counts that it was trained from: own reader, own inclusion and exclusion, own search over all trees.

Nothing here is shared with the code that counts and trains (docs/counts.md). A set of at most three questions has one count for each
class and fold; the rows with yes to P and no to N are the alternating sum over the subsets of N.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import combinations, combinations_with_replacement, permutations
from pathlib import Path
from typing import Any

import numpy as np

from trainer.check.proof.model import active_parameter, read_fraction, split_items
from trainer.check.recount import claims
from trainer.check.recount.findings import TOLERANCE, Finding, damage, proof_finding, recounted, unjudged
from trainer.check.recount.restrictions import words_of
from trainer.check.recount.structure import structure, tree_trouble
from trainer.check.recount.tree import leaves
from trainer.check.recount.trees.counts import confusion_of, metric, node_counts, objective, penalty, tree_objective
from trainer.check.recount.trees.crossed import CLAIM, check_fold_means
from trainer.errors import ModelFileError

DEEPEST = 3
MOST_SEARCHED = 250  # questions of trees of depth 3 that are searched again
MEMBERS = (
    "target classes class_type columns reading questions format depth key folds suppress rows left_out"  # of the digest
)
FILES = ("counts.json", "counts.npz")
Model = dict[str, Any]


@dataclass(frozen=True)
class CountedRows:
    """The counts of a folder: `low` and `high`, int64 (folds, classes, sets), are the ends of each."""

    record: dict[str, Any]
    low: np.ndarray
    high: np.ndarray

    @property
    def absent(self) -> int:
        """The number that stands for no question."""
        return len(self.record["questions"])

    @cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """Where the count of each set stands: by size, then in the order of their members."""
        questions = range(len(self.record["questions"]))
        sets = [s for size in range(self.record["depth"] + 1) for s in combinations(questions, size)]
        return {members: at for at, members in enumerate(sets)}

    @cached_property
    def sha256(self) -> str:
        """The digest of what was counted, written down again."""
        own = {name: self.record[name] for name in MEMBERS.split()}
        own["parts"] = sorted([part["sha256"], part["rows"]] for part in self.record["parts"])
        digest = sha256(json.dumps(own, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
        for end in [self.low] if self.low is self.high else [self.low, self.high]:
            digest.update(b"\0" + end.astype("<i8").tobytes())
        return digest.hexdigest()

    def rows_with(self, yes: Sequence[int], no: Sequence[int], fold: int | None, high: bool = False) -> np.ndarray:
        """The rows of each class with these answers, at one end; of one fold, of all without it (−1 − fold), or of all (None)."""
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


def verify_counts(model: Model, folder: str | Path) -> list[Finding]:
    """Check a model that was trained from counts against their folder.

    Raises ModelFileError where a file cannot be read.
    """
    with damage():
        found = structure(model)
    if any(f.verdict == "refuted" for f in found):
        return [*found, unjudged("all further claims", "This is not a tree, or not a tree of this method.")]
    with damage():
        counts = _counts(Path(folder))
        return [*found, *_of_counts(model, counts)]


def _read(path: Path) -> Model:
    try:
        model = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"'{path.name}' cannot be read: {error}.") from error
    if not isinstance(model, dict):
        raise ModelFileError(f"'{path.name}' holds no object.")
    return model


def _counts(folder: Path) -> CountedRows:
    record = _read(folder / FILES[0])
    if record.get("format") != "octweb-counts":
        raise ModelFileError(f"'{FILES[0]}' does not describe counts.")
    with np.load(folder / FILES[1], allow_pickle=False) as found:
        low = found["low"]
        high = found["high"] if "high" in found.files else low
    sets = sum(math.comb(len(record["questions"]), size) for size in range(record["depth"] + 1))
    shape = (max(record["folds"], 1), len(record["classes"]), sets)
    if not 1 <= record["depth"] <= DEEPEST or low.shape != shape or high.shape != shape or (low > high).any():
        raise ModelFileError("The numbers of the counts do not fit to their description.")
    return CountedRows(record, low, high)


def _of_counts(model: Model, counts: CountedRows) -> list[Finding]:
    certificate = model["certificate"]
    record = counts.record
    own = counts.sha256
    if certificate.get("counts") != own or record["sha256"] != own:
        words = "The model was trained from other counts, or one of the two was changed."
        return [recounted("counts file", False, words, "basis")]
    same = [model["target"], model["classes"], model["columns"]] == [
        record["target"],
        record["classes"],
        record["columns"],
    ]
    found = [recounted("counts file", same, f"SHA-256 {own}; its columns and classes are those of the model.", "basis")]
    paths = _paths(model["nodes"], record)
    if not same or isinstance(paths, str):
        return [*found, recounted("questions", same and not isinstance(paths, str), str(paths), "basis")]
    found.append(recounted("questions", True, "Each question of the tree is one of those that were counted.", "basis"))
    reached = [counts.rows_with(yes, no, None).tolist() for yes, no in paths]
    value = tree_objective(model, reached)
    rows = record["rows"]
    if record["suppress"]:  # the lower ends of the classes need not add up to the rows
        correct = sum(reached[v["id"]][model["classes"].index(v["class"])] for v in leaves(model["nodes"]))
        value = Fraction(correct, rows) - penalty(model) * len(leaves(model["nodes"]))
        found += [node_counts(model["nodes"], reached), *_secret(model, correct, value, rows)]
    else:
        found += [node_counts(model["nodes"], reached), *objective(model, reached, value)]
        found.append(metric("metrics train", model["metrics"]["train"], confusion_of(model, model["nodes"], reached)))
    found += _check_limits(model, reached)
    if "cross_validation" in model["metrics"]:
        found.append(_folds(model, counts))
    found += [claims.status(model), *claims.gap(certificate), _evidence(certificate, record), _scope(model, record)]
    if any(f.verdict == "refuted" for f in found):
        return [*found, unjudged("all further claims", "The count differs from the file.")]
    bound = _bound(model, counts)
    return [*found, bound, *claims.optimal(model, [bound], value), *claims.unknown(model), *claims.provenance(model)]


def _secret(model: Model, correct: int, value: Fraction, rows: int) -> list[Finding]:
    """What a tree of secret counts claims: its lower ends."""
    certificate = model["certificate"]
    own = {"n": rows, "correct": correct}
    holds = all(of[name] == value for of in (certificate, model["metrics"]["train"]) for name, value in own.items())
    holds = holds and abs(read_fraction(model["metrics"]["train"]["accuracy"]) - Fraction(correct, rows)) <= TOLERANCE
    return [
        recounted("correct", holds, f"at least {correct} of {rows} rows", "basis"),
        recounted(
            "objective",
            abs(read_fraction(certificate["objective"]) - value) <= TOLERANCE,
            f"recomputed {value}",
            "basis",
        ),
    ]


def _scope(model: Model, record: dict[str, Any]) -> Finding:
    """The sentence that says which trees the claim is about, made again."""
    kinds = {column["name"]: column["kind"] for column in model["columns"]}
    levels = sum(kinds[question["column"]] == "categorical" for question in record["questions"])
    numbers = len(record["questions"]) - levels
    words = [f"{numbers} question{'' if numbers == 1 else 's'} about numbers"] if numbers else []
    words += [f"{levels} categor{'y' if levels == 1 else 'ies'}"] if levels else []
    space = f"{' and '.join(words) or 'no question'} of the counts"
    parts = [f"depth ≤ {model['parameters']['depth']}", space, *words_of(model)]
    own = f"all trees with {', '.join(parts)}"
    said = model["certificate"].get("scope")
    return recounted("scope", said == own, f"'{own}'" if said == own else f"The parameters ask for: {own}.")


def _evidence(certificate: Model, record: dict[str, Any]) -> Finding:
    """Whether the evidence names the counts as they are."""
    own = {"kind": "counts", "source": record["source"], "parts": len(record["parts"]), "rows": record["rows"]}
    return recounted(
        "evidence", certificate["evidence"] == [own], f"{record['rows']} rows of {len(record['parts'])} parts"
    )


def _paths(nodes: Sequence[dict[str, Any]], record: dict[str, Any]) -> list[tuple[list[int], list[int]]] | str:
    """The questions with yes and with no on the way to each node; a text if one was not counted."""
    asked = {_key(*_split_of(question, record["columns"])): q for q, question in enumerate(record["questions"])}
    found: list[tuple[list[int], list[int]]] = [([], [])] * len(nodes)
    for node in nodes:
        if "split" not in node:
            continue
        yes, no = found[node["id"]]
        for one_left in (True, False):
            question = asked.get(_key(node["split"], one_left))
            if question is not None:
                break
        else:
            return f"The question of node {node['id']} is not among those that were counted."
        if len(yes) + len(no) >= record["depth"]:
            return f"Node {node['id']} lies deeper than the counts."
        ones, zeros = ("left", "right") if one_left else ("right", "left")
        found[node[ones]] = ([*yes, question], no)
        found[node[zeros]] = (yes, [*no, question])
    return found


def _key(split: dict[str, Any], one_left: bool) -> str:
    return json.dumps([split, one_left], sort_keys=True)


def _split_of(question: dict[str, Any], columns: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """The split that asks a question as a file writes it, and whether the answer yes goes left."""
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


def _check_limits(model: Model, reached: list[list[int]]) -> list[Finding]:
    """The limits that the settings ask for, on the tree."""
    own = leaves(model["nodes"])
    found = []
    most = active_parameter(model, "max_leaves")
    if most is not None:
        found.append(recounted("max_leaves", len(own) <= most, f"{len(own)} leaves"))
    least = active_parameter(model, "min_leaf") or 1
    if least > 1:
        fewest = min(sum(reached[v["id"]]) for v in own)
        found.append(recounted("min_leaf", fewest >= least, f"the smallest leaf has {fewest} rows"))
    banned = set(split_items(active_parameter(model, "forbidden")))
    if banned:
        used = {v["split"]["feature"] for v in model["nodes"] if "split" in v}
        found.append(recounted("forbidden", not used & banned, "No question asks a forbidden column."))
    if read_fraction(model["parameters"].get("leaf_penalty") or 0) != penalty(model):
        found.append(recounted("what is maximised", False, "The parameters ask for another price of a leaf."))
    return found


def _folds(model: Model, counts: CountedRows) -> Finding:
    """The cross-validation: the tree of each fold over the rows of the fold, and its counts over the others."""
    given = model["metrics"]["cross_validation"]
    trees = (model.get("rows") or {}).get("fold_trees") or []
    if given["folds"] != counts.record["folds"] or len(trees) != len(given["accuracies"]):
        return recounted(CLAIM, False, "Other folds were counted.")
    tables = []
    for fold, nodes in enumerate(trees):
        trouble, _ = tree_trouble(model, nodes)
        paths = trouble or _paths(nodes, counts.record)
        if isinstance(paths, str):
            return recounted(CLAIM, False, f"The tree of fold {fold + 1} does not hold: {paths}")
        trained = [counts.rows_with(yes, no, -1 - fold).tolist() for yes, no in paths]
        if [node["counts"] for node in nodes] != trained:
            return recounted(CLAIM, False, f"The tree of fold {fold + 1} lists rows that were not counted.")
        tables.append(confusion_of(model, nodes, [counts.rows_with(yes, no, fold).tolist() for yes, no in paths]))
    words = f"The trees of {len(trees)} folds were judged again by the counts of their fold."
    return check_fold_means(given, trees, tables, words)


def _bound(model: Model, counts: CountedRows) -> Finding:
    """The bound, by a search over all trees of the scope."""
    certificate = model["certificate"]
    depth = model["parameters"]["depth"]
    banned = set(split_items(active_parameter(model, "forbidden")))
    usable = [q for q, question in enumerate(counts.record["questions"]) if question["column"] not in banned]
    if depth > counts.record["depth"]:
        return recounted("bound", False, "The counts do not know trees of this depth.")
    if depth == DEEPEST and len(usable) > MOST_SEARCHED:
        return proof_finding(
            "bound", "cannot be judged", f"More than {MOST_SEARCHED} questions are not searched again."
        )
    own = _Search(counts, usable, active_parameter(model, "min_leaf") or 1)
    right = own.frontier([], depth)
    most = min(active_parameter(model, "max_leaves") or len(right), len(right))
    rows = counts.record["rows"]
    each = penalty(model)
    top = max(min(Fraction(right[size], rows), Fraction(1)) - each * (size + 1) for size in range(most))
    claimed = read_fraction(certificate["bound"])
    if claimed < top - TOLERANCE and not counts.record["suppress"]:
        return proof_finding("bound", "refuted", f"A tree of the scope reaches {top}.")
    if claimed < top - TOLERANCE:
        return proof_finding("bound", "cannot be judged", f"The secret counts allow {top}.")
    return proof_finding(
        "bound", "proved", f"No tree of the scope is above {float(top):.12g}, by a search over all of them.", top
    )


Answer = tuple[np.ndarray, bool]  # questions, int64 of any shape, and whether their answer is yes


class _Search:
    """The most rows right with at most 1, 2, … leaves, at the upper end of the counts."""

    def __init__(self, counts: CountedRows, usable: list[int], least: int) -> None:
        self.questions = np.array(usable, np.int64)
        self.least = least
        self.places = _place_table(counts.absent, counts.record["depth"])
        self.upper = counts.high.sum(axis=0)
        self.lower = counts.low.sum(axis=0)

    def frontier(self, path: list[Answer], depth: int) -> list[int]:
        """The most rows right below a path, by the number of leaves; −1 where no tree has so many."""
        best = [int(self._right(path)), *[-1] * (2**depth - 1)]
        if depth and len(self.questions):
            if depth < DEEPEST:
                own = self._of_all_roots(path, depth)
                best = [best[0], *own]
            else:
                for question in self.questions:
                    sides = [self.frontier([*path, (question, answer)], depth - 1) for answer in (True, False)]
                    best = [max(one, two) for one, two in zip(best, _together(*sides), strict=True)]
        return [max(best[: size + 1]) for size in range(len(best))]

    def _of_all_roots(self, path: list[Answer], depth: int) -> list[int]:
        """The best with 2, 3, … leaves over all first questions of a tree of depth 1 or 2."""
        first = self.questions[:, None] if depth == 2 else self.questions
        whole = [self._right([*path, (first, answer)]).ravel() for answer in (True, False)]
        found = [_sum(*whole)]
        if depth == 2:
            parted = []
            for answer in (True, False):
                leaf = [self._right([*path, (first, answer), (self.questions[None], last)]) for last in (True, False)]
                parted.append(_sum(*leaf).max(axis=1))
            found.append(np.maximum(_sum(parted[0], whole[1]), _sum(whole[0], parted[1])))
            found.append(_sum(*parted))
        return [int(own.max()) for own in found]

    def _right(self, answers: list[Answer]) -> np.ndarray:
        """The rows of the largest class with these answers, of the shape of all questions together; −1 where they are too few."""
        yes = [question for question, answer in answers if answer]
        no = [question for question, answer in answers if not answer]
        shape = np.broadcast_shapes(*(question.shape for question, _ in answers))
        own = np.zeros((len(self.upper), *shape), np.int64)
        for size in range(len(no) + 1):
            for more in combinations(no, size):
                end = self.lower if size % 2 else self.upper
                own += (-1) ** size * end[:, np.broadcast_to(self._at([*yes, *more]), shape)]
        own = np.maximum(own, 0)
        return np.where(own.sum(axis=0) >= self.least, own.max(axis=0), -1)

    def _at(self, members: list[np.ndarray]) -> np.ndarray:
        absent = np.array(len(self.places) - 1)
        filled = (*members, absent, absent, absent)
        return np.asarray(self.places[filled[0], filled[1], filled[2]])


def _sum(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The rows right in two leaves; −1 where one of them cannot be."""
    return np.where((one >= 0) & (two >= 0), one + two, -1)


def _together(ones: list[int], zeros: list[int]) -> list[int]:
    """The best of both sides by the number of leaves of both."""
    best = [-1] * (len(ones) + len(zeros))
    for a, right in enumerate(ones, 1):
        for b, other in enumerate(zeros, 1):
            if min(right, other) >= 0:
                best[a + b - 1] = max(best[a + b - 1], right + other)
    return best


def _place_table(questions: int, depth: int) -> np.ndarray:
    """The place of the set of three members in any order, int32; the number of questions stands for no member."""
    table = np.full((questions + 1,) * 3, -1, np.int32)
    absent = questions
    table[absent, absent, absent] = 0
    at = 1
    for size in range(1, depth + 1):
        sets = np.array(list(combinations(range(questions), size)), np.int64).reshape(-1, size).T
        places = np.arange(at, at + sets.shape[1])
        at += sets.shape[1]
        fills = [(*sets, *more) for more in _fills(sets, absent, DEEPEST - size)]
        for members in fills:
            for order in permutations(members):
                table[order] = places
    return table


def _fills(sets: np.ndarray, absent: int, free: int) -> list[tuple[Any, ...]]:
    """What may stand at the free places of a set: nothing, or a member again."""
    choices = [absent, *sets]
    return [tuple(choices[i] for i in picks) for picks in combinations_with_replacement(range(len(choices)), free)]
