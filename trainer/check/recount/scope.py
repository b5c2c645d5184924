"""The sentence that says which trees a claim is about, made again from the parameters and the rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import OBLIQUE, THRESHOLDS, ModelTable, active_parameter, has_margin
from trainer.check.proof.space.questions import bin_questions, open_features, questions
from trainer.check.proof.space.space import has_empty_cell, topology_of
from trainer.check.proof.space.subsets import chosen_columns
from trainer.check.proof.subject import NoProof, Shape, depth_of, leaves_of
from trainer.check.recount.findings import Finding, recounted, unjudged
from trainer.check.recount.restrictions import words_of
from trainer.check.recount.structure import METHODS
from trainer.check.recount.tree import branches

MAX_EXACT_DIFFERENCE = 1 << 26  # beyond which products of two differences may be rounded
LEAD = {
    "tree": "all trees with",
    "splits": "for each question that is marked as proved, all questions on at most two columns, in a tree with",
    "heuristic": "one tree, built step by step, with",
}
MADE = "one tree, made by another program"
PLANES = "questions that weigh all columns at once, "
NEAR = PLANES + "each parting its rows by at least 1e-7 (columns scaled to [0, 1])"
DISTANT = PLANES + "the rows on the right keeping a distance of 0.005 from their hyperplane "
SCALED_DISTANCE_SCOPE = DISTANT + "(columns scaled to [0, 1], coefficients of total size 1)"
FAR_ROBUST = (
    DISTANT
    + "(each column divided by its range or, where that is less, by four times the inter-quartile range of its values, coefficients "
    "of total size 1)"
)
FILLED = ", empty cells filled with the training median, with an indicator"
# (words of files made before, words of today), each for its first place: none of them comes after a name that a person chose
OLDER = (
    (re.compile(r"\(([0-9]+(?: to [0-9]+)?) a column\)"), r"(\1 per column)"),
    (re.compile(r"questions, at most ([0-9]+) a row\), subsets"), r"questions, at most \1 per row), subsets"),
    (re.compile(r"at most 1 categories in a subset"), "at most 1 category in a subset"),
    (re.compile(r"no other columns than those that a CART tree uses \("), "no other columns than ("),
)
ROUNDED = (
    "some columns with more digits than can be compared exactly: lines that pass the rows by less than 1e-14 of a column's range "
    "are not counted"
)


def scope(model: dict[str, Any], rows: ModelTable) -> Finding:
    """Whether the file's claim is about the trees that its parameters ask for, all restrictions named."""
    said = _in_words_of_today(str(model["certificate"].get("scope") or ""))
    if model.get("rows") is None and not said.startswith(tuple(LEAD.values())):
        return unjudged(
            "scope",
            f"Words that this checker does not know; the parameters count. The file says: {said[:200] or 'nothing'}.",
        )
    if model["method"] == "converted":
        return recounted("scope", said == MADE, f"The file says: {said or 'nothing'}; '{MADE}' is all that is known.")
    lead = LEAD[METHODS[model["method"]][0]]
    own = [f"{lead} {', '.join([*_depth(model), *space, *_limits(model)])}" for space in _spaces(model, rows, said)]
    words = f"'{said}'" if said in own else f"The parameters ask for: {own[0]}. The file says: {said or 'nothing'}."
    return recounted("scope", said in own, words)


def _in_words_of_today(said: str) -> str:
    """The sentence of a file made with older words; any other sentence as it is."""
    for older, today in OLDER:
        said = older.sub(today, said, count=1)
    return said


def _depth(model: dict[str, Any]) -> list[str]:
    return [] if model["method"] == "odt" else [f"depth ≤ {model['parameters']['depth']}"]


def _spaces(model: dict[str, Any], rows: ModelTable, said: str) -> list[list[str]]:
    """What may be said of the questions: one text, or the ones that depend on how columns are written or chosen."""
    method = model["method"]
    if METHODS[method][0] == "heuristic":
        return [[]]
    if method == "bivariate":
        return [[ROUNDED] if any(_fine(values) for _, values in open_features(model, rows)) else []]
    if method == "odt":
        head = said.removeprefix(LEAD["tree"] + " ")
        if limits := _limits(model):
            head = head.removesuffix(", " + ", ".join(limits))
        return [[head if _topology(model, rows, head) else f"another topology than {head}"]]
    filled = FILLED if has_empty_cell(rows) else ""
    if has_margin(model):
        robust = active_parameter(model, "scaling") == "robust"
        return [[(FAR_ROBUST if robust else SCALED_DISTANCE_SCOPE) + filled]]
    if method in OBLIQUE:
        return [[NEAR + filled]]
    if method in THRESHOLDS:
        others = sum(column["kind"] == "categorical" for column in model["columns"])
        texts = ("all thresholds of", "numeric column"), ("single categories of", "other column")
        numbers = len(model["columns"]) - others, others
        words = [f"{verb} {_count_noun(n, noun)}" for (verb, noun), n in zip(texts, numbers, strict=True) if n]
        return [[*words, *_empty_words(rows)]]
    return [_of_questions(model, questions(model, rows)[1], rows)]


TOPOLOGY = re.compile(
    r"this topology \(([0-9]+) questions, at most ([0-9]+) per row\), subsets of ([0-9]+) columns, numeric ones in at most ([0-9]+) bins"
    r"( with empty cells on either side)?(, no other columns than \(.*\))?",
    re.DOTALL,
)


def _topology(model: dict[str, Any], rows: ModelTable, head: str) -> bool:
    """Whether the tree keeps within the stated topology, and columns and bins are as in the parameters."""
    nodes = model["nodes"]
    found = TOPOLOGY.fullmatch(head)
    if found is None:
        return head == "no question" and len(nodes) == 1
    size, deepest, columns, bins = map(int, found.groups()[:4])
    chosen = chosen_columns(model)
    if bins != model["parameters"]["bins"] or chosen is None:
        return False
    parts = [
        len(np.unique(values)) > 1
        if column["kind"] == "categorical"
        else any(True for _ in bin_questions(values, bins))
        for column, values in zip(model["columns"], rows.columns, strict=True)
    ]
    named = sum(part and own for part, own in zip(parts, chosen, strict=True))
    try:
        shape = topology_of(model)
    except NoProof:
        return False
    full = deepest == model["parameters"]["depth"] and size == 2**deepest - 1
    held = full if shape is None else (size, deepest) == (leaves_of(shape) - 1, depth_of(shape))
    names = ", ".join(column["name"] for column, own in zip(model["columns"], chosen, strict=True) if own)
    listed = f", no other columns than ({names})" if active_parameter(model, "select") == "cart" else None
    asked = zip(rows.columns, parts, chosen, strict=True)
    empty = any(part and own and np.isnan(values).any() for values, part, own in asked)
    fits = found[6] == listed and columns == named and (found[5] is not None) == empty
    held = held and (shape is None or _grows(nodes, 0, shape))
    return held and fits and len(branches(nodes)) <= size


def _grows(nodes: Sequence[dict[str, Any]], at: int, shape: Shape) -> bool:
    """Whether the tree from this node on is one of the topology: any side may be the left one, and a question may be left out."""
    node = nodes[at]
    if "split" not in node:
        return True
    if shape is None:
        return False
    one, two = shape
    ways = [(node["left"], node["right"]), (node["right"], node["left"])]
    if any(_grows(nodes, at, side) for side in shape):
        return True
    return any(_grows(nodes, a, one) and _grows(nodes, b, two) for a, b in ways)


def _of_questions(model: dict[str, Any], columns: list[int], rows: ModelTable) -> list[str]:
    sizes = np.bincount(np.array(columns, np.int64), minlength=len(rows.columns)).tolist()
    numeric = list[int]()
    codes = 0
    levels = 0
    truths = 0
    for column, own, size in zip(model["columns"], rows.columns, sizes, strict=True):
        empty = np.isnan(own)
        if empty.any():  # each question of its values twice, and the one whether the cell is empty
            size = (size - 1) // 2
        values = own[~empty]
        if column["kind"] == "categorical":
            levels += size
        elif set(np.unique(values).tolist()) <= {0.0, 1.0}:
            truths += size
        else:
            special = _special_values(column, values)
            codes += special
            numeric += [size - special] if size > special else []
    out = []
    if numeric:
        each = f"{min(numeric)}" if min(numeric) == max(numeric) else f"{min(numeric)} to {max(numeric)}"
        noun = "interval" if active_parameter(model, "binarise") == "quantile-buckets" else "threshold"
        out.append(f"{_count_noun(sum(numeric), noun)} ({each} per column)")
    if codes:
        out.append(_count_noun(codes, "special value"))
    if levels:
        out.append("1 category" if levels == 1 else f"{levels} categories")
    if truths:
        out.append(_count_noun(truths, "yes/no column"))
    out += _empty_words(rows)
    return out or ["no question"]


def _empty_words(rows: ModelTable) -> list[str]:
    number = sum(bool(np.isnan(values).any()) for values in rows.columns)
    return [f"empty cells of {_count_noun(number, 'column')} on either side or asked about"] if number else []


def _count_noun(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _limits(model: dict[str, Any]) -> list[str]:
    """Each restriction in words, and the wishes after them."""
    return words_of(model) + [f"the wish '{record['wish']}'" for record in model["certificate"].get("wishes") or ()]


def _fine(values: np.ndarray) -> bool:
    """Whether a column has numbers that cannot be written as whole numbers below 2^26 of the same decimal place, the eighth at most."""
    written = [Fraction(repr(value)) for value in np.unique(values[~np.isnan(values)]).tolist()]
    places = next((k for k in range(9) if all((10**k * w).denominator == 1 for w in written)), None)
    return places is None or max(map(abs, written)) * 10**places >= MAX_EXACT_DIFFERENCE


def _special_values(column: dict, values: np.ndarray) -> int:
    """How many questions `_of_column` asks about single special values."""
    present = np.unique(values)
    if column["kind"] == "categorical" or len(present) < 2 or set(present.tolist()) <= {0.0, 1.0}:
        return 0
    return int(np.isin(present, column.get("special") or []).sum())
