"""Build the questions of `odt`: subsets of categories and ends of bins.

If the training selected columns, they are read from the scope of the claim. See docs/proof-format.md, "Questions of `odt`".
"""

from __future__ import annotations

import re

import numpy as np

from trainer.check.proof.model import Model, ModelTable, active_parameter
from trainer.check.proof.space.questions import answer_matrix, bin_questions
from trainer.check.proof.subject import NoProof

MOST_SUBSETS = 1000
BEFORE = re.compile(
    r" columns, numeric ones in at most [0-9]+ bins(?: with empty cells on either side)?, no other columns than (?:those that a CART tree uses )?\("
)
MOST_WAYS = 5000


def chosen_columns(model: Model) -> list[bool] | None:
    """Return for each column whether trees may use it; None if the list in the scope is ambiguous or missing.

    Names may contain commas and brackets, so that a list may be ambiguous. Without a selection all columns are True.
    """
    if model["method"] != "odt" or active_parameter(model, "select") is None:
        return [True] * len(model["columns"])
    scope = str(model["certificate"].get("scope") or "")
    start = BEFORE.search(scope)
    if start is None:
        return None
    names = [str(column["name"]) for column in model["columns"]]
    text = scope[start.end() :]

    def ends_list(end: int) -> bool:
        return text[end:] == ")" or text.startswith("), ", end)

    # possible readings of the text so far: (end of the prefix, columns that it lists). `complete` holds those that end
    # before a closing bracket, since a column's name may itself contain commas
    readings = [(0, frozenset[int]())]
    complete = [frozenset[int]()] if ends_list(0) else []
    for j, name in enumerate(names):
        for at, columns in list(readings):
            word = f", {name}" if columns else name
            if text.startswith(word, at):
                readings.append((at + len(word), columns | {j}))
                complete += [columns | {j}] if ends_list(at + len(word)) else []
        if len(readings) > MOST_WAYS or len(complete) > 1:
            return None
    return [j in complete[0] for j in range(len(names))] if complete else None


def subsets(model: Model, rows: ModelTable, most: int = MOST_SUBSETS) -> tuple[np.ndarray, list[int]]:
    """Return the answers to the questions of `odt`, shape (n, m), and the column of each.

    Subsets come in the order of their bits and leave out the first category, since their complements make the same
    partition. With wishes they include it, since places distinguish the two sides. Raises NoProof if there are more
    than `most` questions.
    """
    if (usable := chosen_columns(model)) is None:
        raise NoProof("the scope does not say clearly which columns the trees may ask")
    first = 0 if model["certificate"].get("wishes") else 1
    card = int(active_parameter(model, "max_card") or 0)
    answers = list[np.ndarray]()
    asks = list[int]()
    for j in np.flatnonzero(usable).tolist():
        values = rows.columns[j]
        levels = np.unique(rows.columns[j])
        if model["columns"][j]["kind"] != "categorical":
            answers += bin_questions(values, int(model["parameters"]["bins"]))
        elif (k := len(levels)) <= 10 or 1 << (k - first) <= most:
            for mask in range(1, (1 << (k - first)) - 1 + first):
                category_subset = [levels[i + first] for i in range(k - first) if mask >> i & 1]
                if not card or min(len(category_subset), k - len(category_subset)) <= card:
                    answers.append(np.isin(values, category_subset))
        else:
            raise NoProof(
                f"column '{model['columns'][j]['name']}' has more than {most} subsets, the limit of the check"
            )
        asks += [j] * (len(answers) - len(asks))
    if len(answers) > most:
        raise NoProof(f"there are {len(answers)} subsets, and the limit of the check is {most}")
    return answer_matrix(answers, rows), asks
