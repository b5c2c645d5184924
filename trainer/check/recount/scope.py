"""Recompute the scope of a claim from parameters and rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import LOCAL, OBLIQUE, THRESHOLDS, ModelTable, active_parameter, has_margin
from trainer.check.proof.space.questions import bin_questions, open_features, questions
from trainer.check.proof.space.space import has_empty_cell, topology_of
from trainer.check.proof.space.subsets import chosen_columns
from trainer.check.proof.subject import NoProof, Shape, depth_of, leaves_of
from trainer.check.recount.findings import Finding, recount_finding, unjudged_finding
from trainer.check.recount.restrictions import words_of
from trainer.check.recount.structure import METHODS
from trainer.check.recount.tree import branches

MAX_EXACT_DIFFERENCE = 1 << 26  # the product of two larger differences may be rounded in float64
LEAD = {
    "tree": "all trees with",
    "splits": "for each question that is marked as proved, all questions on at most two columns, in a tree with",
    "subtrees": "for each small subtree that is counted as proved, all subtrees in its place, in a tree with",
    "heuristic": "one tree, built step by step, with",
}
ANY_DEPTH_LEAD = "all trees of any depth with"
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
# (older words, current words). Each is replaced once: these words precede all names that a user chose, so no name is
# changed
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
    """Check that the scope of the file is that of its parameters, with all restrictions."""
    stated = _replace_older_words(str(model["certificate"].get("scope") or ""))
    if model.get("rows") is None and not stated.startswith((*LEAD.values(), ANY_DEPTH_LEAD)):
        return unjudged_finding(
            "scope",
            f"This checker does not know these words; it checked what the parameters say. The file says: {stated[:200] or 'nothing'}.",
        )
    if model["method"] == "converted":
        return recount_finding(
            "scope", stated == MADE, f"The file says: {stated or 'nothing'}; '{MADE}' is all that is known."
        )
    lead = LEAD[METHODS[model["method"]][0]]
    if model["method"] == "exact" and model["parameters"]["depth"] is None:
        lead = ANY_DEPTH_LEAD
    expected = [
        f"{lead} {', '.join([*_depth_words(model), *space, *_limit_words(model)])}"
        for space in _spaces(model, rows, stated)
    ]
    words = (
        f"'{stated}'"
        if stated in expected
        else f"The parameters ask for: {expected[0]}. The file says: {stated or 'nothing'}."
    )
    return recount_finding("scope", stated in expected, words)


def _replace_older_words(sentence: str) -> str:
    """Replace the older words of a scope by the current ones."""
    for older, today in OLDER:
        sentence = older.sub(today, sentence, count=1)
    return sentence


def _depth_words(model: dict[str, Any]) -> list[str]:
    depth = model["parameters"]["depth"]
    return [] if model["method"] == "odt" or depth is None else [f"depth ≤ {depth}"]


def _spaces(model: dict[str, Any], rows: ModelTable, stated: str) -> list[list[str]]:
    """Return the accepted wordings of the question space, each as a list of its parts."""
    method = model["method"]
    if METHODS[method][0] == "heuristic":
        return [[]]
    if method == "bivariate":
        return [[ROUNDED] if any(_needs_more_digits(values) for _, values in open_features(model, rows)) else []]
    if method == "odt":
        head = stated.removeprefix(LEAD["tree"] + " ")
        if limits := _limit_words(model):
            head = head.removesuffix(", " + ", ".join(limits))
        return [[head if _fits_topology(model, rows, head) else f"another topology than {head}"]]
    filled = FILLED if has_empty_cell(rows) else ""
    if has_margin(model):
        robust = active_parameter(model, "scaling") == "robust"
        return [[(FAR_ROBUST if robust else SCALED_DISTANCE_SCOPE) + filled]]
    if method in OBLIQUE:
        return [[NEAR + filled]]
    if method in THRESHOLDS | LOCAL:
        others = sum(column["kind"] == "categorical" for column in model["columns"])
        texts = ("all thresholds of", "numeric column"), ("single categories of", "other column")
        numbers = len(model["columns"]) - others, others
        words = [f"{verb} {_count_noun(n, noun)}" for (verb, noun), n in zip(texts, numbers, strict=True) if n]
        return [[*words, *_empty_words(rows)]]
    return [_question_words(model, questions(model, rows)[1], rows)]


TOPOLOGY = re.compile(
    r"this topology \(([0-9]+) questions, at most ([0-9]+) per row\), subsets of ([0-9]+) columns, numeric ones in at most ([0-9]+) bins"
    r"( with empty cells on either side)?(, no other columns than \(.*\))?",
    re.DOTALL,
)


def _fits_topology(model: dict[str, Any], rows: ModelTable, head: str) -> bool:
    """Return True if the tree fits the stated topology, and columns and bins are those of the parameters."""
    nodes = model["nodes"]
    match = TOPOLOGY.fullmatch(head)
    if match is None:
        return head == "no question" and len(nodes) == 1
    size, deepest, columns, bins = map(int, match.groups()[:4])
    chosen = chosen_columns(model)
    if bins != model["parameters"]["bins"] or chosen is None:
        return False
    parts = [
        len(np.unique(values)) > 1
        if column["kind"] == "categorical"
        else any(True for _ in bin_questions(values, bins))
        for column, values in zip(model["columns"], rows.columns, strict=True)
    ]
    usable = sum(part and listed_column for part, listed_column in zip(parts, chosen, strict=True))
    try:
        shape = topology_of(model)
    except NoProof:
        return False
    full = deepest == model["parameters"]["depth"] and size == 2**deepest - 1
    within_topology = full if shape is None else (size, deepest) == (leaves_of(shape) - 1, depth_of(shape))
    names = ", ".join(
        column["name"] for column, listed_column in zip(model["columns"], chosen, strict=True) if listed_column
    )
    listed = f", no other columns than ({names})" if active_parameter(model, "select") == "cart" else None
    columns_asked = zip(rows.columns, parts, chosen, strict=True)
    empty = any(part and listed_column and np.isnan(values).any() for values, part, listed_column in columns_asked)
    fits = match[6] == listed and columns == usable and (match[5] is not None) == empty
    within_topology = within_topology and (shape is None or _fits_shape(nodes, 0, shape))
    return within_topology and fits and len(branches(nodes)) <= size


def _fits_shape(nodes: Sequence[dict[str, Any]], at: int, shape: Shape) -> bool:
    """Return True if the subtree at a node fits the topology, up to swapped sides and omitted questions."""
    node = nodes[at]
    if "split" not in node:
        return True
    if shape is None:
        return False
    one, two = shape
    ways = [(node["left"], node["right"]), (node["right"], node["left"])]
    if any(_fits_shape(nodes, at, side) for side in shape):
        return True
    return any(_fits_shape(nodes, a, one) and _fits_shape(nodes, b, two) for a, b in ways)


def _question_words(model: dict[str, Any], columns: list[int], rows: ModelTable) -> list[str]:
    sizes = np.bincount(np.array(columns, np.int64), minlength=len(rows.columns)).tolist()
    numeric = list[int]()
    codes = 0
    levels = 0
    truths = 0
    for column, cells, size in zip(model["columns"], rows.columns, sizes, strict=True):
        empty = np.isnan(cells)
        # empty cells double every question about values and add one that asks whether the cell is empty
        if empty.any():
            size = (size - 1) // 2
        values = cells[~empty]
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


def _limit_words(model: dict[str, Any]) -> list[str]:
    """Return each restriction in words, then the wishes."""
    return words_of(model) + [f"the wish '{record['wish']}'" for record in model["certificate"].get("wishes") or ()]


def _needs_more_digits(values: np.ndarray) -> bool:
    """Return True unless all numbers are integers below 2^26 after shifting the decimal point by at most 8 places."""
    written = [Fraction(repr(value)) for value in np.unique(values[~np.isnan(values)]).tolist()]
    places = next((k for k in range(9) if all((10**k * w).denominator == 1 for w in written)), None)
    return places is None or max(map(abs, written)) * 10**places >= MAX_EXACT_DIFFERENCE


def _special_values(column: dict[str, Any], values: np.ndarray) -> int:
    """Count the questions about single special values."""
    present = np.unique(values)
    if column["kind"] == "categorical" or len(present) < 2 or set(present.tolist()) <= {0.0, 1.0}:
        return 0
    return int(np.isin(present, column.get("special") or []).sum())
